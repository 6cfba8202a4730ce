// @ts-check
// The background of the board: its squares, and the names of files and ranks.

import { path, svg } from "./pieces.js";
import { FILES } from "./squares.js";

/**
 * Draws the squares, the letters of the files at the bottom and the numbers of the ranks on the left. A square has ten units.
 * @param {(square: string) => [number, number]} at Returns the column and row of a square.
 */
export function ground(at) {
  const dark = [...Array(64).keys()].filter((square) => (square + (square >> 3)) % 2 === 1);
  const d = dark.map((square) => `M${10 * (square % 8)} ${10 * (square >> 3)}h10v10h-10z`).join("");
  const names = [...FILES].flatMap((file, index) => {
    const [column] = at(`${file}1`);
    const [, row] = at(`a${index + 1}`);
    return [
      name(10 * column + 8.8, 79.4, file, column % 2 === 0),
      name(0.5, 10 * row + 1.7, String(index + 1), row % 2 === 1),
    ];
  });
  return [path("squares", d), ...names];
}

/**
 * Draws the name of a file or rank.
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {boolean} onDark
 */
function name(x, y, text, onDark) {
  const element = svg("text", { x: String(x), y: String(y), class: onDark ? "on-dark" : "on-light" });
  element.textContent = text;
  return element;
}
