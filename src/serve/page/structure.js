// @ts-check
// Filters by what stands on the board: the pawns or the material of a position, as queries of the language of the server.

/**
 * Returns the ranks of a FEN, from the eighth one, with a character for each square. Empty squares are dots.
 * @param {string} fen
 */
function ranksOf(fen) {
  const [placement = ""] = fen.split(/[ []/);
  return placement.replaceAll("~", "").split("/").slice(0, 8).map((rank) => rank.replace(/\d/g, (empty) => ".".repeat(Number(empty))));
}

/**
 * Returns the query for games in which the pawns stood as in a position.
 * @param {string} fen
 */
export function pawnsQuery(fen) {
  const ranks = ranksOf(fen).map((rank) => rank.replace(/[^Pp]/g, "."));
  const count = (/** @type {string} */ pawn) => ranks.join("").split(pawn).length - 1;
  const counts = `P = ${count("P")} and p = ${count("p")}`;
  const placement = ranks.map((rank) => rank.replace(/\.+/g, (empty) => String(empty.length))).join("/");
  return /[Pp]/.test(placement) ? `board[${placement}] and ${counts}` : counts;
}

/**
 * Returns the query for games with the material of a position.
 * @param {string} fen
 */
export function materialQuery(fen) {
  const pieces = [...ranksOf(fen).join("")];
  const side = (/** @type {string} */ letters) => [...letters].map((letter) => pieces.filter((piece) => piece === letter).join("")).join("");
  return `material[${side("KQRBNP")}v${side("kqrbnp").toUpperCase()}]`;
}

/**
 * Describes a query.
 * @param {string} query
 */
export function queryWords(query) {
  if (/^(board\[[Pp\d/]+\] and )?P = \d+ and p = \d+$/.test(query)) return "these pawns";
  const [, white, black] = /^material\[([A-Z]+)v([A-Z]+)\]$/.exec(query) ?? [];
  return white ? `material ${white} v ${black}` : `on the board: ${query}`;
}
