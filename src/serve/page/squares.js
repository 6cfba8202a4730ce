// @ts-check
// Squares: the pieces of a FEN by square, the squares of a move, and distances.

/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/** The letters of the files, from White's left to right. */
export const FILES = "abcdefgh";

/**
 * Parses the board of a FEN. Returns the pieces by square, the pieces in hand, and the side to move.
 * @param {string} fen
 */
export function readFen(fen) {
  const [board = "", turn = "w"] = fen.split(" ");
  const [rows, rest = ""] = board.split("[");
  /** @type {Map<string, string>} */
  const pieces = new Map();
  const ranks = (rows ?? "").split("/");
  ranks.slice(0, 8).forEach((row, down) => {
    let file = 0;
    for (const letter of row) {
      if (/[1-8]/.test(letter)) file += Number(letter);
      // A tilde marks a piece that was promoted.
      else if (letter !== "~") pieces.set(`${FILES[file++]}${8 - down}`, letter);
    }
  });
  const pocket = (rest || ranks[8] || "").replace("]", "");
  return { pieces, pocket, turn: turn === "b" ? "black" : "white" };
}

/**
 * Returns the squares between which a piece moves. For castling, these are the squares of the king.
 * @param {WrittenMove} move
 */
export function squares({ uci, san }) {
  if (uci[1] === "@") return { from: uci.slice(0, 2), to: uci.slice(2, 4), also: "" };
  const from = uci.slice(0, 2);
  const rook = uci.slice(2, 4);
  if (!san.startsWith("O-O")) return { from, to: rook, also: "" };
  return { from, to: `${san.startsWith("O-O-O") ? "c" : "g"}${from[1]}`, also: rook };
}

/**
 * Returns the distance between two squares.
 * @param {string} one
 * @param {string} other
 */
export function distance(one, other) {
  const file = one.charCodeAt(0) - other.charCodeAt(0);
  const rank = one.charCodeAt(1) - other.charCodeAt(1);
  return Math.hypot(file, rank);
}
