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

/** Matches the windows that have room for the trends below the moves. */
export const widest = matchMedia("(min-width: 1680px)");
