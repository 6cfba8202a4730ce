// @ts-check
// The return from an open game to the list of games: the places that scrolled are as before, and the game has the focus.

import { byId } from "./dom.js";

/** The elements that scroll. On a phone, the whole page does. */
const scrollers = () => [document.documentElement, byId("panel"), byId("answer"), byId("side")];

/** @type {number[]} */
let places = [];
/** The game that was closed last. */
let closed = "";

/** Remembers how far everything is scrolled, and goes to the top, where the opened game is. */
export function leaveForGame() {
  places = scrollers().map(({ scrollTop }) => scrollTop);
  for (const scroller of scrollers()) scroller.scrollTop = 0;
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
  if (row instanceof HTMLElement && document.activeElement === document.body) row.focus({ preventScroll: true });
}
