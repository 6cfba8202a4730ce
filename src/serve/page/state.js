// @ts-check
// The state of the page, which is part of its address: the line, the filters and the open game.

/** @typedef {Record<string, string>} Filters Filters by their names in the API. Several values of a filter stand on a line each. */
/**
 * @typedef {object} View
 * @property {string} variant The name of the variant, or an empty string for standard chess.
 * @property {string} fen The position at which the line begins, or an empty string for the usual one.
 * @property {string[]} play The moves that lead to the position.
 * @property {Filters} filters
 * @property {string} game The id of the open game, or an empty string.
 * @property {string} tab The chosen view of the position, or an empty string for the moves.
 * @property {string} me The names of the user for whom a preparation is made, one on each line, or an empty string for the stored
 *   ones.
 * @property {string} list The result of the games to list, as in the filter, or an empty string for all. The counts ignore it.
 * @property {string} sort The order of the games that the user chose: "rating" or "recent", or an empty string.
 * @property {string} order The column by which the user sorted the openings, after "-" if descending, or an empty string.
 * @property {string} halfLife The number of years after which a game counts half in the chances of a preparation, or an empty string.
 * @property {string} repertoire The name of the chosen repertoire, or an empty string for the first one of the side at the bottom.
 * @property {string} flip How the user turned the board: "1" for Black below, "0" for White below, or an empty string.
 */

/** The names of the filters that the dialog contains, in their order in the address. */
export const FILTERS = "player color opponent opponentRating result since until requireDate ratings speeds event eco opening position minPly duplicates source".split(" ");

/** Further names of filters in the address. */
const ALIASES = new Map(Object.entries({ speed: "speeds", rating: "ratings", minPlies: "minPly" }));

/**
 * @param {string} search The query string of an address.
 * @param {string[]} [conditions] The names of all filters that the server knows.
 * @returns {View}
 */
export function readView(search, conditions = []) {
  const parameters = new URLSearchParams(search);
  const text = (/** @type {string} */ name) => parameters.get(name) ?? "";
  /** @type {Filters} */
  const filters = {};
  for (const given of new Set([...FILTERS, ...conditions])) {
    const name = ALIASES.get(given) ?? given;
    const value = joined(parameters.getAll(given));
    // For these filters, an empty value is an empty list. It selects no game, so it must be kept.
    if (value || (parameters.has(given) && ["ratings", "speeds"].includes(name))) filters[name] = value;
  }
  return {
    variant: text("variant"),
    fen: text("fen"),
    play: text("play").split(",").filter(Boolean),
    filters,
    game: text("game"),
    tab: text("view"),
    me: joined(parameters.getAll("me")),
    list: text("list"),
    sort: text("sort"),
    order: text("order"),
    halfLife: text("halfLife"),
    repertoire: text("repertoire"),
    flip: text("flip"),
  };
}

/**
 * Returns the parameters of the variant and the filters, without a position.
 * @param {{ variant: string, filters: Filters }} view
 */
export function filterQuestion({ variant, filters }) {
  const parameters = new URLSearchParams();
  if (variant) parameters.set("variant", variant);
  for (const name of new Set([...FILTERS, ...Object.keys(filters)])) {
    const value = filters[name];
    for (const one of value?.split("\n") ?? []) parameters.append(name, one);
  }
  return parameters;
}

/**
 * Joins names of one player to a text with one name on each line.
 * @param {string[]} names
 */
export function joined(names) {
  return namesIn(names.join("\n")).join("\n");
}

/**
 * Returns the names in a text with one name on each line.
 * @param {string | undefined} text
 */
export function namesIn(text) {
  return (text ?? "").split("\n").map((name) => name.trim()).filter(Boolean);
}

/**
 * Formats the names in a text, which has one name on each line, for display.
 * @param {string | undefined} text
 */
export function nameText(text) {
  return namesIn(text).join(" / ");
}

/**
 * Returns the parameters that request a position with the filters.
 * @param {View} view
 */
export function question(view) {
  const parameters = filterQuestion(view);
  if (view.fen) parameters.set("fen", view.fen);
  if (view.play.length) parameters.set("play", view.play.join(","));
  return parameters;
}

/**
 * Returns the address of a view.
 * @param {View} view
 */
export function address(view) {
  const parameters = question(view);
  const others = { game: view.game, view: view.tab, list: view.list, sort: view.sort, order: view.order, halfLife: view.halfLife, repertoire: view.repertoire, flip: view.flip };
  for (const [name, value] of Object.entries(others)) if (value) parameters.set(name, value);
  if (view.tab === "prepare") for (const name of namesIn(view.me)) parameters.append("me", name);
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `?${text}` : location.pathname;
}

/** Lichess's names of the variants whose names differ from those of the explorer. */
const LICHESS = /** @type {Record<string, string>} */ ({ "": "standard", fromPosition: "standard" });

/**
 * Returns the address of a position in Lichess's analysis. The page only links to it.
 * @param {View} view
 * @param {string} fen
 * @param {string} color The side at the bottom.
 */
export function analysis(view, fen, color) {
  return `https://lichess.org/analysis/${LICHESS[view.variant] ?? view.variant}/${fen.replaceAll(" ", "_")}?color=${color}`;
}

/**
 * Sets parameters, and returns them.
 * @param {URLSearchParams} parameters
 * @param {Record<string, string | number>} values
 */
export function put(parameters, values) {
  for (const [name, value] of Object.entries(values)) parameters.set(name, String(value));
  return parameters;
}

/**
 * Returns moves in the UCI notation of the address.
 * @param {{ uci: string }[]} moves
 */
export function ucis(moves) {
  return moves.map(({ uci }) => uci);
}

/**
 * Returns the number of moves at the start that two lines have in common.
 * @param {string[]} one
 * @param {string[]} other
 */
export function commonPlies(one, other) {
  const end = one.findIndex((move, ply) => other[ply] !== move);
  return end < 0 ? one.length : end;
}

/**
 * Returns the names of the set filters, except the source, which has a switch of its own.
 * @param {Filters} filters
 */
export function narrowing(filters) {
  return Object.keys(filters).filter((name) => name !== "source");
}

/**
 * Returns only the filter by source.
 * @param {Filters} filters
 * @returns {Filters}
 */
export function sourceOnly({ source }) {
  return source ? { source } : {};
}

/**
 * Returns the filters without some of them.
 * @param {Filters} all
 * @param {string[]} names
 */
export function withoutFilters(all, names) {
  /** @type {Filters} */
  const filters = Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)));
  // These results refer to the player, so they have no meaning without one.
  if (!filters.player && /win|loss|^draw$/.test(filters.result ?? "")) delete filters.result;
  if (!filters.player) delete filters.opponentRating;
  return filters;
}
