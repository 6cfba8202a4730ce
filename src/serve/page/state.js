// @ts-check
// What the page shows, and how the address says it: the line, the filters, the open game.

/**
 * @typedef {object} View
 * @property {string} variant Its name, empty for standard chess.
 * @property {string} fen Where the line begins, empty for the usual start.
 * @property {string[]} play The moves up to the position that is shown.
 * @property {Record<string, string>} filters By their names in the API.
 * @property {string} game The id of the open game, empty if none is.
 * @property {boolean} flip Whether Black is below.
 */

/** The filters, in the order of the address. */
export const FILTERS = [
  "player",
  "color",
  "opponent",
  "ratings",
  "speeds",
  "since",
  "until",
  "result",
  "event",
  "eco",
  "source",
];

/**
 * @param {string} search The query of an address.
 * @returns {View}
 */
export function readView(search) {
  const parameters = new URLSearchParams(search);
  const text = (/** @type {string} */ name) => parameters.get(name) ?? "";
  /** @type {Record<string, string>} */
  const filters = {};
  for (const name of FILTERS) {
    const value = parameters.get(name);
    // An empty list chooses no game, which is a filter too.
    if (value || (value === "" && isList(name))) filters[name] = value;
  }
  return {
    variant: text("variant"),
    fen: text("fen"),
    play: text("play").split(",").filter(Boolean),
    filters,
    game: text("game"),
    flip: text("flip") === "1",
  };
}

/** @param {string} name */
function isList(name) {
  return name === "ratings" || name === "speeds";
}

/**
 * The parameters that ask for a position, with the filters or without.
 * @param {View} view
 * @param {boolean} [filtered]
 */
export function question(view, filtered = true) {
  const parameters = new URLSearchParams();
  if (view.variant) parameters.set("variant", view.variant);
  if (view.fen) parameters.set("fen", view.fen);
  if (view.play.length) parameters.set("play", view.play.join(","));
  if (filtered) for (const [name, value] of Object.entries(view.filters)) parameters.set(name, value);
  return parameters;
}

/**
 * The address of a view.
 * @param {View} view
 */
export function address(view) {
  const parameters = question(view);
  if (view.game) parameters.set("game", view.game);
  if (view.flip) parameters.set("flip", "1");
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `?${text}` : location.pathname;
}

/**
 * Whether one line begins with the other.
 * @param {string[]} long
 * @param {string[]} short
 */
export function beginsWith(long, short) {
  return short.every((move, ply) => long[ply] === move);
}
