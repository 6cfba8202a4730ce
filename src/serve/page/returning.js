// @ts-check
// Returns from an open game to the list of games. The position and the scroll offsets are as before, and the game in the list has
// the focus.

import { byId } from "./dom.js";

/** Returns the elements that can scroll. On a phone, the whole page scrolls. */
const scrollers = () => [document.documentElement, byId("panel"), byId("answer"), byId("side")];

/** @type {number[]} */
let places = [];
/** The id of the game that was closed last, until the page has returned to the list. */
let closed = "";
/** The id of the open game, and the line to the position at which it was opened from the list. */
let left = { game: "", play: /** @type {string[]} */ ([]) };

/**
 * Stores the line and the scroll offsets, and scrolls to the top, where the opened game is shown.
 * @param {string} game
 * @param {string[]} play
 */
export function leaveForGame(game, play) {
  left = { game, play };
  places = scrollers().map(({ scrollTop }) => scrollTop);
  for (const scroller of scrollers()) scroller.scrollTop = 0;
}

/**
 * Returns the line to the position at which a game was opened from the list. Returns undefined if the game was opened by its address.
 * @param {string} game
 */
export function lineBefore(game) {
  return left.game === game ? left.play : undefined;
}

/**
 * Stores the id of a game that was closed.
 * @param {string} id
 */
export function close(id) {
  closed = id;
}

/**
 * Restores the scroll offsets, and marks and focuses the closed game in the list, or `other` if the list no longer contains it.
 * @param {HTMLElement | undefined} other
 */
export function comeBack(other) {
  if (!closed) return;
  const row = byId("games").querySelector(`[data-game="${CSS.escape(closed)}"]`) ?? other;
  closed = "";
  scrollers().forEach((scroller, index) => (scroller.scrollTop = places[index] ?? 0));
  places = [];
  // A button that steps through the game may still have the focus.
  const isFree = document.activeElement?.matches("body, #moves, #counts, #dock *, .controls *");
  row?.classList.add("closed");
  if (row instanceof HTMLElement && isFree) row.focus({ preventScroll: true });
}
