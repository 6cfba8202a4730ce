// @ts-check
// The table of moves: how often each was played and how it did, and what books say.

import { games, make, number, percent } from "./api.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").Move} Move */
/** @typedef {import("./api.js").Opening} Opening */
/** @typedef {{ white: number, draws: number, black: number }} Counts */

/**
 * A row: a move with games, or one that only books have.
 * @typedef {{ uci: string, san: string, move: Move | undefined }} Row
 */

/**
 * Fills the table.
 * @param {HTMLTableElement} table
 * @param {Answer} answer
 * @param {Book[]} books
 * @param {{ play: (uci: string) => void, point: (uci: string) => void }} on
 * @param {boolean} filtered
 */
export function showMoves(table, answer, books, on, filtered) {
  const total = games(answer);
  /** @type {Row[]} */
  const rows = answer.moves.map((move) => ({ uci: move.uci, san: move.san, move }));
  for (const { uci, san } of books.flatMap((book) => book.moves)) {
    if (!rows.some((row) => row.uci === uci)) rows.push({ uci, san, move: undefined });
  }
  const [head, body, foot] = [table.tHead, table.tBodies[0], table.tFoot];
  head?.replaceChildren(headings(books));
  body?.replaceChildren(
    ...rows.map(({ uci, san, move }) => {
      const button = make("button", { type: "button", "data-uci": uci }, san);
      const others = answer.polybook.transpositions.find((other) => other.uci === uci)?.games ?? 0;
      const row = make(
        "tr",
        move ? {} : { title: "Only in the book" },
        make("th", { scope: "row" }, button),
        gamesCell(move ? games(move) : 0, others),
        make("td", { class: "number share" }, move ? percent(games(move) / total) : "–"),
        make("td", { class: "results" }, move ? bar(move) : ""),
        make("td", { class: "number rating" }, move?.averageRating ? String(move.averageRating) : ""),
        nameCell(move?.opening ?? null, answer.opening),
        ...books.map((book) => bookCell(book, uci)),
      );
      row.addEventListener("click", () => on.play(uci));
      row.addEventListener("pointerenter", () => on.point(uci));
      row.addEventListener("pointerleave", () => on.point(""));
      button.addEventListener("focus", () => on.point(uci));
      button.addEventListener("blur", () => on.point(""));
      return row;
    }),
  );
  if (!rows.length) body?.append(emptyRow(books, answer, filtered));
  foot?.replaceChildren(...(total ? [sumRow(answer, total, books)] : []));
}

/** @param {Book[]} books */
function headings(books) {
  const cell = (/** @type {string} */ text, /** @type {string} */ kind, title = "") =>
    make("th", { scope: "col", class: kind, ...(title && { title }) }, text);
  return make(
    "tr",
    {},
    cell("Move", ""),
    cell("Games", "number"),
    cell("Share", "number share"),
    cell("White / Draw / Black", "results"),
    cell("Rating", "number rating", "Average rating of the side to move"),
    cell("Opening", "name"),
    ...books.map((book) => cell(`Book: ${book.name}`, "number book", "How often the book plays the move")),
  );
}

/**
 * @param {number} count
 * @param {number} others Games that reach the resulting position by another move order.
 */
function gamesCell(count, others) {
  const cell = make("td", { class: "number" }, number(count));
  if (others) {
    const more = others === 1 ? "1 more game reaches" : `${number(others)} more games reach`;
    const title = `${more} the resulting position by another move order`;
    cell.append(" ", make("span", { class: "others", title }, `+${number(others)}`));
  }
  return cell;
}

/**
 * The name of the position after a move, without what the line is called already.
 * @param {Opening | null} opening
 * @param {Opening | null} above
 */
function nameCell(opening, above) {
  if (!opening) return make("td", { class: "name" });
  const { eco, name } = opening;
  const rest = above && name.startsWith(above.name) ? name.slice(above.name.length).replace(/^[:,] /, "") : name;
  return make("td", { class: "name", title: name }, `${eco} ${rest}`);
}

/**
 * @param {Book} book
 * @param {string} uci
 */
function bookCell(book, uci) {
  const move = book.moves.find((other) => other.uci === uci);
  const title = move ? `weight ${move.weight}` : "";
  return make("td", { class: "number book", title }, move ? percent(move.probability / 100) : "");
}

/**
 * White's, drawn and Black's games as a bar.
 * @param {Counts} counts
 */
function bar(counts) {
  const total = games(counts) || 1;
  const parts = /** @type {const} */ (["white", "draws", "black"]);
  const words = parts.map((part) => `${part} ${percent(counts[part] / total)}`).join(", ");
  const exact = parts.map((part) => `${part} ${number(counts[part])}`).join(", ");
  const element = make("div", { class: "bar", role: "img", "aria-label": words, title: exact });
  for (const part of parts) {
    const share = counts[part] / total;
    if (!share) continue;
    const piece = make("span", { class: part }, share >= 0.22 ? `${Math.round(100 * share)}%` : "");
    piece.style.width = `${100 * share}%`;
    element.append(piece);
  }
  return element;
}

/**
 * @param {Book[]} books
 * @param {Answer} answer
 * @param {boolean} filtered
 */
function emptyRow(books, answer, filtered) {
  const over = answer.polybook.legal.length === 0;
  const text = over ? "The game is over here." : `No games ${filtered ? "with these filters " : ""}continue from this position.`;
  return make("tr", { class: "empty" }, make("td", { colspan: String(6 + books.length) }, text));
}

/**
 * @param {Answer} answer
 * @param {number} total
 * @param {Book[]} books
 */
function sumRow(answer, total, books) {
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, "All"),
    make("td", { class: "number" }, number(total)),
    make("td", { class: "number share" }, "100%"),
    make("td", { class: "results" }, bar(answer)),
    make("td", { class: "rating" }),
    make("td", { class: "name" }),
    ...books.map(() => make("td", { class: "book" })),
  );
}
