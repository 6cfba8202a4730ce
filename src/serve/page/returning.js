// @ts-check
// The return from an open game to the list of games: the position and the places that scrolled are as before, and the game has the focus.

import { byId } from "./dom.js";

/** The elements that scroll. On a phone, the whole page does. */
const scrollers = () => [document.documentElement, byId("panel"), byId("answer"), byId("side")];

/** @type {number[]} */
let places = [];
/** The game that was closed last. */
let closed = "";
/** The open game, and the line to the position of the list from which it was opened. */
let left = { game: "", play: /** @type {string[]} */ ([]) };

/**
 * Remembers the position and how far everything is scrolled, and goes to the top, where the opened game is.
 * @param {string} game
 * @param {string[]} play
 */
export function leaveForGame(game, play) {
  left = { game, play };
  places = scrollers().map(({ scrollTop }) => scrollTop);
  for (const scroller of scrollers()) scroller.scrollTop = 0;
}

/**
 * Returns the line to the position in which a game was opened from a list, or undefined for a game of the address.
 * @param {string} game
 */
export function lineBefore(game) {
  return left.game === game ? left.play : undefined;
}

/**
 * Remembers that a game is closed.
 * @param {string} id
 */
export function close(id) {
  closed = id;
}

/**
 * Scrolls back to where the closed game was, and focuses it, or something else if it is no longer in the list.
 * @param {HTMLElement | undefined} other
 */
export function comeBack(other) {
  if (!closed) return;
  const row = byId("games").querySelector(`[data-game="${CSS.escape(closed)}"]`) ?? other;
  closed = "";
  scrollers().forEach((scroller, index) => (scroller.scrollTop = places[index] ?? 0));
  places = [];
  // A button that steps through the game may still have the focus.
  const isFree = document.activeElement === document.body || document.activeElement?.closest("#dock, .controls");
  if (row instanceof HTMLElement && isFree) row.focus({ preventScroll: true });
}
