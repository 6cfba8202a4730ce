// @ts-check
// The table of moves: how often each was played, its results, and what books, evaluations and clocks say about it.

import { bar } from "./bars.js";
import { button, div, fill, icon, on, small, span } from "./dom.js";
import { brief, counted, dateWords, drawn, finished, number, percent, score as scoreOf, shortName, sum, withoutResult } from "./format.js";
import { evaluationWords } from "./game.js";
import { isOpen, marks } from "./repertoire.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").Move} Move */
/** @typedef {import("./api.js").Repertoire} Repertoire */
/** @typedef {import("./dom.js").Child} Child */

/**
 * A row: a move with games, or a move that only books and repertoires contain.
 * @typedef {{ uci: string, san: string, move: Move | undefined }} Row
 */
/**
 * An additional column of the table: its heading, the meaning of its values, and the cells of the moves that have a value.
 * @typedef {{ name: string, title: string, cells: { uci: string, text: string, value: number, of?: number, title?: string }[] }} Column `of` is the number of games from which a mean was calculated.
 */
/**
 * The data for the table besides the answer.
 * @typedef {object} Context
 * @property {Book[]} books
 * @property {RepertoireContext | undefined} repertoire
 * @property {boolean} ofPlayer Whether to show the player's results instead of White's and Black's.
 * @property {string} side The heading of the column of moves.
 * @property {string} whose Whose results the table shows, as "Your" or a name in the genitive. It is an empty string unless the
 *   table shows both a player's results and a repertoire.
 * @property {string} gameMove The next move of the open game.
 * @property {(uci: string) => void} play
 * @property {(uci: string) => void} point
 * @property {((result: string, uci: string) => void) | undefined} list Plays a move, and lists its games with a result.
 */
/**
 * The repertoire that the table shows.
 * @typedef {object} RepertoireContext
 * @property {Repertoire} report
 * @property {boolean} isOwn Whether the side of the repertoire is to move.
 * @property {((uci: string) => string) | undefined} state Returns "added" for a move that the user added, "known" for another move of the repertoire, and "new" for a move that can be added. Undefined if the repertoire cannot be edited here.
 * @property {(uci: string, san: string) => void} toggle Adds a move, or removes it.
 */
/** @typedef {{ key: string, ascending: boolean }} Sort The column by which the rows are sorted. */

/** The distance in pixels by which a resting pointer must move before it points at a row again. */
const HOVER = 5;
/** The number of rows that are always shown. Further rows are folded. */
const SHOWN = 8;
/** The minimum share of games, from 0 to 1, of a gap that is always shown. */
const FREQUENT = 0.01;
/** The smallest difference of scores, from 0 to 1, for which the score of the position after a move is shown. */
const DIFFERENT = 0.05;
/** The minimum share of games, from 0 to 1, of rows after the fourth. Rows with a smaller share are folded. */
const RARE = 0.005;

/** The table of moves. */
export class MovesTable {
  /** The FEN of the position whose folded rows the user has unfolded. */
  #unfolded = "";
  /** @type {Sort} */
  #sort = { key: "games", ascending: false };
  #place;
  /**
   * Where the pointer was when the user last pressed a button or a key. The table may have changed since then, so the row under the pointer
   * does not count as pointed at until the pointer moves.
   * @type {{ x: number, y: number } | undefined}
   */
  #resting;
  /** The move that the user points at. */
  #pointed = "";
  /** @type {(uci: string) => void} */
  #point = () => undefined;

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
    let [x, y] = [0, 0];
    const rest = () => {
      this.#resting = { x, y };
      this.#pointed = "";
    };
    // Outside of a shadow root, events in it have its host as their target.
    const root = place.getRootNode();
    on(root, "pointermove", (event) => {
      [x, y] = [event.clientX, event.clientY];
      if (event.pointerType === "mouse") this.#hover(event);
    });
    on(root, "pointerdown", rest);
    on(root, "keydown", rest);
  }

  /** @param {PointerEvent} event */
  #hover({ target, clientX, clientY }) {
    const from = this.#resting;
    if (from && Math.hypot(clientX - from.x, clientY - from.y) < HOVER) return;
    this.#resting = undefined;
    const row = target instanceof Element ? target.closest("[data-uci]") : null;
    const uci = row && this.#place.contains(row) ? (row.getAttribute("data-uci") ?? "") : "";
    if (uci === this.#pointed) return;
    this.#pointed = uci;
    this.#point(uci);
  }

  /**
   * @param {Answer} answer
   * @param {Context} context
   */
  show(answer, context) {
    const total = sum(answer) || 1;
    const rows = rowsOf(answer, [...context.books, ...(context.repertoire ? [context.repertoire.report] : [])]);
    const fen = answer.polybook.fen;
    const cut = this.#unfolded === fen ? rows.length : foldedFrom(rows, total, context);
    const columns = columnsOf(answer, context.books);
    const sorted = (/** @type {string} */ key) => {
      const isSame = key === this.#sort.key;
      this.#sort = { key, ascending: isSame ? !this.#sort.ascending : ["san", "name"].includes(key) };
      this.show(answer, context);
    };
    const head = div({ role: "rowgroup", class: "head" }, headings(answer, context, columns, this.#sort, sorted));
    const body = div({ role: "rowgroup", class: "body" });
    // Rare moves stay folded, so that a move of one game does not lead a table sorted by score.
    rows.splice(0, cut, ...sortedRows(rows.slice(0, cut), columns, context, this.#sort));
    rows.slice(0, cut).forEach((row, index) => body.append(tableRow(row, index, answer, total, context, columns)));
    const kind = `moves${context.ofPlayer ? " of-player" : ""}${columns.length ? " with-extra" : ""}${context.repertoire ? " with-repertoire" : ""}`;
    const table = div({ role: "table", "aria-label": "Moves of the position" }, head, body);
    const card = div(`card ${kind}`, table);
    // The names of books have the room that they need, if there are at most two. The last width is that of the repertoire's buttons.
    const widths = columns.map(({ name }) => Math.max(50, Math.min(88, columns.length < 3 ? 6.4 * name.length : 0)));
    card.style.setProperty("--extra", [...widths, 50].map((width) => `${width}px`).join(" "));
    const rest = rows.slice(cut);
    if (rest.length) {
      const games = rest.reduce((all, { move }) => all + (move ? sum(move) : 0), 0);
      const gaps = rest.filter(({ uci }) => context.repertoire?.report.gaps.some((gap) => gap.uci === uci)).length;
      const unfold = button(
        { class: "more", "aria-expanded": "false", "data-focus": "more" },
        [icon("down"), counted(rest.length, "more move"), span("quiet", ` · ${counted(games)}, ${percent(games / total)}${gaps ? ` · ${counted(gaps, "gap")}` : ""}`)],
        () => {
          this.#unfolded = fen;
          this.show(answer, context);
          const first = this.#place.querySelectorAll("[data-uci] .san button")[cut];
          if (first instanceof HTMLElement) first.focus();
        },
      );
      card.append(unfold);
    }
    this.#point = context.point;
    fill(this.#place, card);
  }

  /**
   * Shows other elements in the place of the table. Rows of them have the attribute `data-uci`.
   * @param {(uci: string) => void} point Called with the move of the row at which the user points.
   * @param {Child[]} content
   */
  replace(point, ...content) {
    this.#point = point;
    fill(this.#place, ...content);
  }

  /** Returns the buttons of the moves, in the order of the rows. */
  buttons() {
    return /** @type {HTMLElement[]} */ ([...this.#place.querySelectorAll("[data-uci] .san button")]);
  }

  /**
   * Presses the button of the row with the focus that adds its move to the repertoire or removes it. Returns false if there is no
   * such button.
   */
  toggleChosen() {
    const press = document.activeElement?.closest("[data-uci]")?.querySelector(".adds, .added, .removes");
    if (!(press instanceof HTMLElement)) return false;
    press.click();
    return true;
  }

  /**
   * Moves the focus by a number of rows.
   * @param {number} step
   */
  choose(step) {
    const buttons = this.buttons();
    const at = buttons.findIndex((other) => other === document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : buttons.length - 1) : at + step;
    buttons[Math.max(0, Math.min(next, buttons.length - 1))]?.focus();
  }
}

/**
 * @param {Answer} answer
 * @param {{ moves: { uci: string, san: string }[] }[]} others
 */
function rowsOf(answer, others) {
  /** @type {Row[]} */
  const rows = answer.moves.map((move) => ({ uci: move.uci, san: move.san, move }));
  for (const { uci, san } of others.flatMap(({ moves }) => moves)) {
    if (!rows.some((row) => row.uci === uci)) rows.push({ uci, san, move: undefined });
  }
  return rows;
}

/**
 * Returns the index of the first folded row. A single row is not folded, and neither are the move of the open game and frequent gaps
 * of the repertoire.
 * @param {Row[]} rows
 * @param {number} total
 * @param {Context} context
 */
function foldedFrom(rows, total, { gameMove, repertoire }) {
  const isRare = (/** @type {Row} */ { move }) => !move || sum(move) < RARE * total;
  const rare = rows.findIndex((row, index) => index >= SHOWN || (index >= 4 && rows.length > SHOWN && isRare(row)));
  const cut = rare < 0 ? rows.length : Math.max(rare, Math.min(SHOWN, rows.length));
  const isGap = (/** @type {Row} */ { uci, move }) => move && sum(move) >= FREQUENT * total && repertoire?.report.gaps.some((gap) => gap.uci === uci);
  const least = rows.findLastIndex((row) => row.uci === gameMove || isGap(row)) + 1;
  const end = Math.max(cut, least);
  return rows.length - end < 2 ? rows.length : end;
}

/**
 * Returns the columns of books, evaluations and clocks.
 * @param {Answer} answer
 * @param {Book[]} books
 * @returns {Column[]}
 */
function columnsOf({ polybook: { evals, clocks } }, books) {
  const columns = books.map(({ name, moves }) => ({
    name,
    title: `How often the book ${name} plays the move`,
    cells: moves.map(({ uci, weight, probability }) => ({ uci, value: weight, text: percent(probability / 100), title: `weight ${weight}` })),
  }));
  if (evals) {
    const cells = evals.map((one) => ({ uci: one.uci, value: "mate" in one ? Math.sign(one.mate) * (1e6 - Math.abs(one.mate)) : one.cp, text: evaluationWords(one, 2), title: `depth ${one.depth || "unknown"}` }));
    columns.push({ name: "Eval", title: "Evaluation after the move, from White's point of view", cells });
  }
  if (clocks?.moves.length) {
    const cells = clocks.moves.map(({ uci, mean, median, games }) => ({ uci, value: mean, text: mean.toFixed(1), of: games, title: `mean of ${counted(games)}; median ${median.toFixed(1)}` }));
    columns.push({ name: "Time", title: `Mean time for the move in seconds, and the number of games with clock times for it. Newest games read: ${number(clocks.read)}`, cells });
  }
  return columns;
}

/**
 * Returns the value of a row by which the table is sorted, or undefined if the row has no such value.
 * @param {Row} row
 * @param {Column[]} columns
 * @param {Context} context
 * @param {string} key The column.
 */
function sortValue({ uci, san, move }, columns, { ofPlayer, repertoire }, key) {
  if (key === "san") return san;
  if (key === "name" && repertoire && !repertoire.isOwn) return repertoire.report.moves.find((known) => known.uci === uci)?.answers?.map((answer) => answer.san).join(" or ") || undefined;
  const column = columns.find(({ name }) => key === `extra ${name}`);
  if (column) return column.cells.find((cell) => cell.uci === uci)?.value;
  if (!move) return undefined;
  const games = finished(move);
  return {
    name: move.opening?.name,
    games: sum(move),
    // The share of games that the player lost or, without a player, White's score.
    results: games ? (ofPlayer ? (move.losses ?? 0) / games : scoreOf(move)) : undefined,
    score: games ? ((move.wins ?? 0) + drawn(move) / 2) / games : undefined,
    performance: move.performance ?? undefined,
    latest: move.lastPlayed,
    rating: move.averageRating || undefined,
  }[key];
}

/**
 * Sorts rows by a column. Rows without a value come last.
 * @param {Row[]} rows
 * @param {Column[]} columns
 * @param {Context} context
 * @param {Sort} sort
 */
function sortedRows(rows, columns, context, { key, ascending }) {
  const value = (/** @type {Row} */ row) => sortValue(row, columns, context, key);
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
  });
}

/**
 * Creates the headings of the columns. They are buttons that sort; together they are one tab stop. On phones, which have no room
 * for headings, they are texts for screen readers.
 * @param {Answer} answer
 * @param {Context} context
 * @param {Column[]} columns
 * @param {Sort} sort
 * @param {(key: string) => void} choose
 */
function headings(answer, { ofPlayer, repertoire, side, whose }, columns, sort, choose) {
  const cell = (/** @type {string} */ key, /** @type {string} */ title, /** @type {string} */ label, /** @type {Child[]} */ ...content) => {
    const isSorted = key === sort.key;
    const isUsual = key === "games" && !sort.ascending;
    const order = sort.ascending ? "ascending" : "descending";
    const press = button({ tabindex: isSorted ? 0 : -1, "data-focus": `sort ${key}` }, [...(content.length ? content : [label]), ...(isSorted && !isUsual ? [span({ class: "order", "aria-hidden": "true" }, sort.ascending ? "↑" : "↓")] : [])], () => choose(key));
    return div({ role: "columnheader", class: key.split(" ")[0], title: title || undefined, "aria-sort": isSorted ? order : undefined }, press, span("no-sort", label));
  };
  const [long, short] = whose ? [`${whose} results, %`, "W / D / L, %"] : ofPlayer ? ["Win / draw / loss, %", "W / D / L, %"] : ["White / draw / black, %", "W / D / B, %"];
  const row = div({ role: "row", class: "row" },
    cell("san", "", side),
    cell("name", "", repertoire && !repertoire.isOwn ? "Your answer" : "Opening"),
    cell("games", "", "Games", "Games", answer.polybook.transpositions?.length ? small("+ transposed") : ""),
    cell("results", ofPlayer ? "Sorts by the share of losses" : "Sorts by White's score", long, span("long", long), span({ class: "short", "aria-hidden": "true" }, short)),
    ...(ofPlayer ? [cell("score", "", whose ? `${whose} score` : "Score", "Score")] : []),
    ...(repertoire
      ? [div({ role: "columnheader", class: "act" }, span("unseen", "Repertoire"))]
      : ofPlayer
        ? [cell("performance", "Performance rating. It needs ten games with a result and a rated opponent, and no filter by result.", "Perf."), cell("latest", "", "Last")]
        : [cell("rating", "Mean of the known ratings of the players who made the move", "Rating")]),
    ...columns.map(({ name, title }) => cell(`extra ${name}`, title, name)),
  );
  on(row, "keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const buttons = [...row.querySelectorAll("button")];
    const at = buttons.findIndex((one) => one === event.target);
    if (!step || at < 0) return;
    // In the rest of the page, these keys move along the line.
    event.preventDefault();
    buttons[Math.max(0, Math.min(at + step, buttons.length - 1))]?.focus();
  });
  return row;
}

/**
 * @param {Row} row
 * @param {number} index
 * @param {Answer} answer
 * @param {number} total
 * @param {Context} context
 * @param {Column[]} columns
 */
function tableRow({ uci, san, move }, index, answer, total, { repertoire, ofPlayer, gameMove, play, point, list }, columns) {
  const games = move ? sum(move) : 0;
  const others = answer.polybook.transpositions?.find((other) => other.uci === uci)?.games ?? 0;
  const titled = (/** @type {string} */ kind, /** @type {string | undefined} */ title, /** @type {Child[]} */ ...content) =>
    div({ role: "cell", class: kind, title: title || undefined }, ...content);
  const cell = (/** @type {string} */ kind, /** @type {Child[]} */ ...content) => titled(kind, undefined, ...content);
  const name = move?.opening ? shortName(move.opening.name, answer.opening?.name) : "";
  const { sign, tags, words } = marks(repertoire?.report, uci);
  const isGap = repertoire?.report.gaps.some((gap) => gap.uci === uci);
  if (uci === gameMove) tags.push(span("tag", "this game"), " ");
  const label = button(
    { "aria-label": `${san}, ${move ? counted(games) : "no games"}${words}`, tabindex: index ? "-1" : "0", "data-focus": uci },
    [san],
    () => undefined,
  );
  const row = div({ role: "row", class: `row${name || tags.length ? "" : " unnamed"}${isGap ? " gap" : ""}`, "data-uci": uci },
    div({ role: "rowheader", class: "san" }, ...(sign ? [sign] : []), label),
    cell("name", ...tags, name),
    cell("games", move ? gamesCell(games, total, san, others) : span("quiet", "no games")),
    cell("results", ...(move ? [bar(move, ofPlayer, list && ((result) => list(result, uci))), resultingScore(move, answer, ofPlayer)] : [])),
    ...(ofPlayer ? [titled("score", move ? `${counted(finished(move), "result")}${withoutResult(move)}` : "", move ? percentOf(move) : "")] : []),
    ...(repertoire
      ? [cell("act", ...actOf(repertoire, uci, san, isOpen(repertoire.report, uci), play))]
      : ofPlayer
        ? [
            titled("performance", `${counted(move?.performanceGames ?? 0)} with a result and a rated opponent`, move?.performance ?? "–"),
            cell("latest", dateWords(move?.lastPlayed?.slice(0, 7))),
          ]
        : [titled("rating", move?.averageRating ? `mean of ${counted(move.ratingGames ?? games)}` : "", move?.averageRating || "–", partOf(move?.ratingGames))]),
    ...columns.map(({ cells }) => {
      const { text = "", of, title } = cells.find((other) => other.uci === uci) ?? {};
      return titled("extra", title, text, partOf(of));
    }),
  );
  on(row, "click", () => play(uci));
  on(label, "focus", () => point(uci));
  on(label, "blur", () => point(""));
  return row;
}

/**
 * Returns the button of a move: it adds the move to the repertoire or removes it, or plays a move that has no answer.
 * @param {RepertoireContext} repertoire
 * @param {string} uci
 * @param {string} san
 * @param {boolean} isUnanswered
 * @param {(uci: string) => void} play
 */
function actOf({ state, toggle }, uci, san, isUnanswered, play) {
  const act = (/** @type {string} */ kind, /** @type {string} */ sign, /** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ press) =>
    [button({ class: `small ${kind}`, "data-focus": `act ${uci}`, title: label, "aria-label": label }, [icon(sign), span("caption", text)], (event) => {
      // The button is in a row of the table, and a press on the row plays its move.
      event.stopPropagation();
      press();
    })];
  if (isUnanswered) return act("answers", "plus", "Answer", `Answer ${san}`, () => play(uci));
  const now = state?.(uci);
  if (now === "added") return act("added", "check", "Added", `${san} is added; remove it`, () => toggle(uci, san));
  if (now === "known") return act("removes", "close", "Remove", `Remove ${san} from the repertoire`, () => toggle(uci, san));
  return now ? act("adds", "plus", "Add", `Add ${san} to the repertoire`, () => toggle(uci, san)) : [];
}

/**
 * Returns the player's score, in percent of the games with a result.
 * @param {Move} move
 */
function percentOf(move) {
  const games = finished(move);
  return games ? `${Math.round((100 * ((move.wins ?? 0) + drawn(move) / 2)) / games)}%` : "–";
}

/**
 * Returns an element with the score of the position after a move, if games that reached it by other moves make this score differ
 * from that of the move. It is the player's score, or White's.
 * @param {Move} move
 * @param {Answer} answer
 * @param {boolean} ofPlayer
 */
function resultingScore({ san, resulting, ...move }, answer, ofPlayer) {
  if (!resulting || !finished(move) || !finished(resulting)) return "";
  const score = scoreOf(resulting);
  if (Math.abs(score - scoreOf(move)) < DIFFERENT) return "";
  // The player has Black in all games or in none.
  const isTurned = ofPlayer && (answer.wins !== answer.white || move.wins !== move.white);
  const text = `${percent(isTurned ? 1 - score : score)} of ${brief(resulting.games)}`;
  const title = `Score of the position after ${san}, by any order of moves: ${text} games`;
  return span({ class: "after", title }, `after: ${text}`);
}

/**
 * Returns an element with the number of games from which a mean was calculated. It is shown below the mean.
 * @param {number | undefined} games
 */
function partOf(games) {
  return games === undefined ? "" : small(`of ${brief(games)}`);
}

/**
 * Creates the cell with the number of games and their share, above a bar.
 * @param {number} games
 * @param {number} total
 * @param {string} san
 * @param {number} others The number of further games that reach the resulting position by another move order.
 */
function gamesCell(games, total, san, others) {
  const cell = div("count");
  cell.style.setProperty("--share", `${((100 * games) / total).toFixed(1)}%`);
  if (others) {
    const title = `${counted(others, "more game")} ${others === 1 ? "reaches" : "reach"} the position after ${san} by another move order`;
    cell.append(span({ class: "others", title }, `+${number(others)}`));
  }
  cell.append(span({ title: number(games) }, brief(games)), span("quiet", percent(games / total)));
  return cell;
}
