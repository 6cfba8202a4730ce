// @ts-check
// The line: its moves as buttons, with those after the position that is shown.

import { make } from "./api.js";

/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/**
 * Shows a line.
 * @param {HTMLElement} place
 * @param {WrittenMove[]} moves
 * @param {number} shown How many of them lead to the position that is shown.
 * @param {string} fen Where the line begins, empty for the usual start.
 * @param {(ply: number) => void} go
 */
export function showLine(place, moves, shown, fen, go) {
  const [, turn, , , , count] = fen.replaceAll("_", " ").split(" ");
  const first = turn === "b" ? 1 : 0;
  const begin = Number(count) || 1;
  const parts = moves.map(({ san }, index) => {
    const ply = index + first;
    const button = make("button", { type: "button" }, san);
    if (index + 1 === shown) button.setAttribute("aria-current", "step");
    if (index + 1 > shown) button.className = "ahead";
    button.addEventListener("click", () => go(index + 1));
    const number = begin + Math.floor(ply / 2);
    const isWhite = ply % 2 === 0;
    if (!isWhite && index > 0) return button;
    // A number stays on the line of its move.
    return make("span", { class: "numbered" }, make("span", { class: "ply" }, `${number}${isWhite ? "." : "…"}`), button);
  });
  const start = make("button", { type: "button", class: shown === 0 ? "" : "quiet" }, "Start");
  if (shown === 0) start.setAttribute("aria-current", "step");
  start.addEventListener("click", () => go(0));
  place.replaceChildren(start, ...parts);
  const current = place.querySelector("[aria-current]");
  if (current instanceof HTMLElement) {
    // Only the line scrolls, not the page.
    place.scrollTop = current.offsetTop - place.offsetTop - place.clientHeight / 2;
  }
}
