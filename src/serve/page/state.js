// @ts-check
// What the page shows, and how the address says it: the line, the filters, the open game.

/** @typedef {Record<string, string>} Filters By their names in the API. */
/**
 * @typedef {object} View
 * @property {string} variant Its name, empty for standard chess.
 * @property {string} fen Where the line begins, empty for the usual start.
 * @property {string[]} play The moves up to the position that is shown.
 * @property {Filters} filters
 * @property {string} game The id of the open game, empty if none is.
 * @property {string} sort The order of the games that was chosen by hand: "rating" or "recent", empty if it was not.
 * @property {string} flip How the board was turned by hand: "1" for Black below, "0" for White, empty if it was not.
 */

/** The filters, in the order of the address. */
export const FILTERS = "player color opponent result since until ratings speeds event eco minPly duplicates source".split(" ");

/**
 * @param {string} search The query of an address.
 * @returns {View}
 */
export function readView(search) {
  const parameters = new URLSearchParams(search);
  const text = (/** @type {string} */ name) => parameters.get(name) ?? "";
  /** @type {Filters} */
  const filters = {};
  for (const name of FILTERS) {
    const value = parameters.get(name);
    // An empty list chooses no game, which is a filter too.
    if (value || (value === "" && ["ratings", "speeds"].includes(name))) filters[name] = value;
  }
  return {
    variant: text("variant"),
    fen: text("fen"),
    play: text("play").split(",").filter(Boolean),
    filters,
    game: text("game"),
    sort: text("sort"),
    flip: text("flip"),
  };
}

/**
 * The parameters of the variant and the filters, without a position.
 * @param {{ variant: string, filters: Filters }} view
 */
export function filterQuestion({ variant, filters }) {
  const parameters = new URLSearchParams();
  if (variant) parameters.set("variant", variant);
  for (const name of FILTERS) if (filters[name] !== undefined) parameters.set(name, filters[name] ?? "");
  return parameters;
}

/**
 * The parameters that ask for a position, with the filters.
 * @param {View} view
 */
export function question(view) {
  const parameters = filterQuestion(view);
  if (view.fen) parameters.set("fen", view.fen);
  if (view.play.length) parameters.set("play", view.play.join(","));
  return parameters;
}

/**
 * The address of a view.
 * @param {View} view
 */
export function address(view) {
  const parameters = question(view);
  for (const name of /** @type {const} */ (["game", "sort", "flip"])) if (view[name]) parameters.set(name, view[name]);
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `?${text}` : location.pathname;
}

/**
 * Whether Black is below: by hand, or because the player has Black.
 * @param {View} view
 */
export function blackBelow({ flip, filters }) {
  return flip ? flip === "1" : Boolean(filters.player) && filters.color === "black";
}

/**
 * Sets parameters.
 * @param {URLSearchParams} parameters
 * @param {Record<string, string | number>} values
 */
export function put(parameters, values) {
  for (const [name, value] of Object.entries(values)) parameters.set(name, String(value));
  return parameters;
}

/**
 * Moves as the address has them.
 * @param {{ uci: string }[]} moves
 */
export function ucis(moves) {
  return moves.map(({ uci }) => uci);
}

/**
 * How many moves two lines have in common at their start.
 * @param {string[]} one
 * @param {string[]} other
 */
export function commonPlies(one, other) {
  const end = one.findIndex((move, ply) => other[ply] !== move);
  return end < 0 ? one.length : end;
}

/**
 * The filters but those of the source, which the page's switch chooses.
 * @param {Filters} filters
 */
export function narrowing(filters) {
  return Object.keys(filters).filter((name) => name !== "source");
}
