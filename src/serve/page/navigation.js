// @ts-check
// Navigation: along the line, to the open game and back, to other filters, and to the view that the address describes.
//
// The modules that draw the page import this one, so it does not import them. `connect` passes it the functions that show a view.

import { byId } from "./dom.js";
import { revealView } from "./elements.js";
import { replaceNext } from "./history.js";
import { close, lineBefore } from "./returning.js";
import { servedVariant, session } from "./session.js";
import { commonPlies, readView, sourceOnly, ucis, withoutFilters } from "./state.js";

/** @typedef {import("./state.js").Filters} Filters */
/** @typedef {import("./state.js").View} View */
/**
 * Options for showing a view.
 * @typedef {object} How
 * @property {boolean} [push] Whether the view becomes a new entry of the browser's history.
 * @property {boolean} [opens] Whether a game is opened so that the page continues to show the same position.
 * @property {boolean} [keeps] Whether the message at the top of the page stays.
 * @property {(signal: AbortSignal) => Promise<Partial<View>>} [choose] Requests what decides about the view, and returns the change to it.
 */

/** The height in pixels of the first games of the list, with its heading. */
const LISTED = 200;

/** @type {(how?: How) => Promise<void>} */
let show = async () => undefined;
/** @type {() => Promise<void>} */
let start = async () => undefined;

/**
 * Sets the functions that other modules call through this module.
 * @param {(how?: How) => Promise<void>} showView Shows the requested view.
 * @param {() => Promise<void>} startAgain Requests the served games and books again, and shows the view of the address.
 */
export function connect(showView, startAgain) {
  show = showView;
  start = startAgain;
}

/** Shows the requested view again. */
export function refresh() {
  return show();
}

/** Starts the page again. */
export function restart() {
  return start();
}

/**
 * Goes to another view. The address changes when the view is shown.
 * @param {Partial<View>} change
 * @param {How} [how]
 */
export function go(change, how) {
  session.view = { ...session.view, ...change };
  session.ahead = 0;
  return show(how);
}

/** Goes to the view that the address describes. If the address names no variant, uses the variant of the sources. */
export function goToAddress() {
  replaceNext();
  const view = readView(location.search, session.about.conditions);
  return go({ ...view, variant: view.variant || servedVariant() });
}

/** Goes to the starting position, without filters. */
export function goHome() {
  session.known = [];
  void go({ fen: "", play: [], game: "", variant: servedVariant(), filters: {}, repertoire: "", flip: "", sort: "", order: "", halfLife: "", list: "", tab: "", me: "" }, { push: true });
}

/**
 * Goes to a position that the user chose in a list, and scrolls to its heading, because the list may be long.
 * @param {Partial<View>} change
 * @param {How["choose"]} [choose]
 */
export function jump(change, choose) {
  void go(change, { push: true, choose }).then(scrollToHeading);
}

export function scrollToHeading() {
  byId("answer").scrollIntoView();
  revealView();
}

/** @param {string} uci */
export function play(uci) {
  void go({ play: [...session.view.play, uci] });
}

/**
 * Goes to a position of the longest line that the user has visited.
 * @param {number} ply The number of moves before the position.
 */
export function goToPly(ply) {
  void go({ play: ucis(session.known.slice(0, ply)) });
}

/**
 * Goes to a position of the open game.
 * @param {number} ply The number of moves before the position.
 */
export function goInGame(ply) {
  if (session.opened) void go({ play: ucis(session.opened.moves.slice(0, ply)) });
}

/**
 * Moves along the line. After its end, `forward` plays the most played move.
 * @param {"first" | "back" | "forward" | "last"} where
 */
export function walk(where) {
  const { answer, known, opened, shown, view } = session;
  const ply = view.play.length;
  const target = { first: 0, back: ply - 1, forward: ply + 1, last: known.length }[where];
  const best = answer?.moves[0];
  if (where === "back" && session.ahead) session.ahead -= 1;
  else if (target < 0 || target === ply) return;
  else if (target <= known.length) goToPly(target);
  else if (opened || !shown) return;
  else if (view.play.length !== shown.play.length) session.ahead += 1;
  else if (best) play(best.uci);
}

/**
 * Plays the moves that the user requested after the end of the line: the most played move of each position, as soon as its counts
 * arrive.
 */
export function walkAhead() {
  if (!session.ahead) return;
  const rest = session.answer?.moves.length ? session.ahead - 1 : 0;
  walk("forward");
  session.ahead = rest;
}

/** Goes back to the position in which the line left the open game. */
export function backToGame() {
  if (session.opened) goInGame(commonPlies(session.view.play, ucis(session.opened.moves)));
}

/** Closes the open game, and returns to the position of the list from which it was opened. */
export function closeGame() {
  const { game } = session.view;
  const play = lineBefore(game);
  close(game);
  void go({ game: "", ...(play && { play }) }, { push: true });
}

/** Goes back to the open game if the line left it. Otherwise closes the game. */
export function leave() {
  if (!session.opened) return;
  if (byId("left-game").firstChild) backToGame();
  else closeGame();
}

/**
 * Goes to a view with other filters. Without a player, a preparation ends.
 * @param {Filters} filters
 * @param {boolean | string} [leavesVariant] Whether the view also leaves its variant.
 */
function goFiltered(filters, leavesVariant) {
  const ends = session.view.tab === "prepare" && !filters.player;
  void go({ list: "", filters, ...(ends && { tab: "", me: "", flip: "" }), ...(leavesVariant && { variant: "", fen: "", play: [] }) }, { push: true });
}

/** @param {Filters} filters */
export function changeFilters(filters) {
  goFiltered(Object.fromEntries(Object.entries(filters).filter(([, value]) => value)));
}

/** @param {string[]} names */
export function removeFilters(names) {
  goFiltered(withoutFilters(session.view.filters, names), names.includes("variant"));
}

/**
 * Shows the first moves of all games in which a query holds.
 * @param {string} query
 */
export function findOnBoard(query) {
  void go({ filters: { ...session.view.filters, position: query }, fen: "", play: [], game: "", list: "" }, { push: true });
}

export function clearFilters() {
  const { filters, variant } = session.view;
  goFiltered(sourceOnly(filters), variant);
}

/**
 * Lists only the games with one result. The counts still contain the games with all results.
 * @param {string} result
 * @param {string} [uci] The move to play first.
 */
export function listResult(result, uci) {
  void go({ list: result, tab: "", ...(uci && { play: [...session.view.play, uci] }) }).then(() => result && scrollToGames());
}

/**
 * Lists the games that became an opening and have a result.
 * @param {string} opening
 * @param {string} result An empty string for all results.
 */
export function listOpening(opening, result) {
  return go({ filters: { ...session.view.filters, opening }, tab: "", list: result }, { push: true }).then(scrollToGames);
}

/** Scrolls to the list of games if its start is not visible: it may be below the window, or below the board of a phone. */
function scrollToGames() {
  const covered = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  const { top } = byId("games-head").getBoundingClientRect();
  if (top < covered - 12 || top > innerHeight - LISTED) byId("side").scrollIntoView();
}
