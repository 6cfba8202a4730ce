// @ts-check
// Elements of the page that several modules use.

import "./board.js";
import { byId } from "./dom.js";
import { Notice } from "./states.js";

export const board = /** @type {import("./board.js").ChessBoard} */ (byId("board"));
export const searchField = /** @type {HTMLInputElement} */ (byId("search").querySelector("input"));
export const menu = /** @type {HTMLDialogElement} */ (byId("more"));
export const notice = new Notice(byId("notice"));

/**
 * Lets screen readers read a text.
 * @param {string} text
 */
export function say(text) {
  byId("said").textContent = text;
}

/** Moves the focus to the moves or, if another view takes their place, to this view. */
export function focusView() {
  const place = [byId("moves"), byId("counts")].find((one) => one.getClientRects().length);
  place?.focus({ preventScroll: true });
  revealView();
}

/** The height in pixels of the buttons at the bottom of a phone, and of a heading above them. */
const DOCK = 100;

/** Scrolls to the moves or the view that takes their place, if it has the focus, the user uses the keyboard, and it is not visible. */
export function revealView() {
  const view = document.querySelector("#counts:focus-visible, #moves:focus-visible");
  const { top = 0, bottom = Infinity } = view?.getBoundingClientRect() ?? {};
  const covered = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  if (top > innerHeight - DOCK || bottom < covered) view?.scrollIntoView({ block: "nearest" });
}

/** Matches the windows that have room for the trends below the moves. */
export const widest = matchMedia("(min-width: 1680px)");
