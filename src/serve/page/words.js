// @ts-check
// Positions in words, for those who hear the page.

/** The names of pieces by their letters in FEN. */
export const NAMES = /** @type {Record<string, string>} */ ({
  k: "king",
  q: "queen",
  r: "rook",
  b: "bishop",
  n: "knight",
  p: "pawn",
});

/** The order in which pieces are named. */
const ORDER = "kqrbnp";

/**
 * Who is to move and where the pieces stand.
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
