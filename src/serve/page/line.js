// @ts-check
// The line of moves: a button for each move, including those after the position that is shown.

import { button, fill, make, span } from "./dom.js";

/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/**
 * Returns the number of half-moves before the first move of a line, counted from the start of a game. It is odd if Black moves first.
 * @param {string} fen The position at which the line begins, or an empty string for the usual one.
 */
export function firstPly(fen) {
  const [, turn, , , , count] = fen.replaceAll("_", " ").split(" ");
  return 2 * ((Number(count) || 1) - 1) + (turn === "b" ? 1 : 0);
}

/**
 * Shows a line.
 * @param {HTMLElement} place
 * @param {WrittenMove[]} moves
 * @param {number} shown The number of moves that lead to the position that is shown.
 * @param {string} fen
 * @param {(ply: number) => void} go
 */
export function showLine(place, moves, shown, fen, go) {
  if (!moves.length) {
    place.className = "line quiet";
    fill(place, "Play a move", span("keys", ", or press ", make("kbd", "", "→"), " for the most played one"));
    return;
  }
  place.className = "line";
  const first = firstPly(fen);
  const step = (/** @type {string} */ text, /** @type {number} */ ply) =>
    button(
      { class: ply > shown ? "ahead" : undefined, "aria-current": ply === shown ? "step" : undefined, "data-focus": `line${ply}` },
      [text],
      () => go(ply),
    );
  const parts = moves.flatMap(({ san }, index) => {
    const ply = index + first;
    const isWhite = ply % 2 === 0;
    const number = `${Math.floor(ply / 2) + 1}${isWhite ? "." : "…"}`;
    return [...(isWhite || index === 0 ? [span("ply", number)] : []), step(san, index + 1)];
  });
  fill(place, step("Start", 0), ...parts);
  reveal(place, place.querySelector("[aria-current]"));
}

/**
 * Scrolls a list so that an element is in its middle. The window does not scroll.
 * @param {HTMLElement} list
 * @param {Element | null} element
 */
export function reveal(list, element) {
  if (!(element instanceof HTMLElement)) return;
  const [outer, inner] = [list.getBoundingClientRect(), element.getBoundingClientRect()];
  list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  list.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
}
