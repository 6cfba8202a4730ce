// @ts-check
// Descriptions of positions for screen readers.

/** The names of the pieces, by their letters in a FEN. */
export const NAMES = /** @type {Record<string, string>} */ ({
  k: "king",
  q: "queen",
  r: "rook",
  b: "bishop",
  n: "knight",
  p: "pawn",
});

/** The order in which pieces are listed. */
const ORDER = "kqrbnp";

/**
 * Describes the side to move and the squares of the pieces.
 * @param {{ letter: string, square: string }[]} pieces
 * @param {string} turn
 */
export function positionWords(pieces, turn) {
  const side = (/** @type {boolean} */ white) => {
    const men = pieces.filter(({ letter }) => (letter === letter.toUpperCase()) === white);
    men.sort((a, b) => ORDER.indexOf(a.letter.toLowerCase()) - ORDER.indexOf(b.letter.toLowerCase()));
    return men.map(({ letter, square }) => `${NAMES[letter.toLowerCase()]} ${square}`).join(", ");
  };
  return `${turn === "white" ? "White" : "Black"} to move. White: ${side(true)}. Black: ${side(false)}.`;
}
