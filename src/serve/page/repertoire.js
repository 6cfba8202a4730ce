// @ts-check
// The elements of a repertoire: its marks in the table of moves, its card, and the list of its gaps.

import { b, button, div, icon, make, p, segmentsOrMenu, small, span, unbroken } from "./dom.js";
import { editCounts } from "./edits.js";
import { counted, number } from "./format.js";
import { svg } from "./pieces.js";

/** @typedef {import("./api.js").Gaps} Gaps */
/** @typedef {import("./api.js").Repertoire} Repertoire */
/** @typedef {import("./dom.js").Child} Child */

/** The number of gaps that are listed above the games. */
const NEXT = 8;

/**
 * Formats the number N of "one game in N".
 * @param {number} games
 */
function often(games) {
  return number(games < 9.5 ? Number(games.toFixed(1)) : Math.round(games));
}

/**
 * Returns what the repertoire says about a move: a sign next to it, texts before its name, and a description in words.
 * @param {Repertoire | undefined} repertoire
 * @param {string} uci
 */
export function marks(repertoire, uci) {
  const known = repertoire?.moves.find((other) => other.uci === uci);
  if (known) {
    const answers = (known.answers ?? []).map(({ san }) => san).join(" or ");
    const dots = repertoire?.color === "black" ? "…" : "";
    return {
      sign: span({ class: "in-repertoire", title: `In ${repertoire?.name}` }, icon("mark")),
      tags: /** @type {Child[]} */ (answers ? [span("tag answer", `${dots}${answers}`), " "] : []),
      words: answers ? `, your answer ${answers}` : ", in the repertoire",
    };
  }
  const gap = repertoire?.gaps.find((other) => other.uci === uci);
  const end = repertoire?.lineEnds.find((other) => other.uci === uci);
  const open = gap ?? end;
  if (!open) return { sign: undefined, tags: /** @type {Child[]} */ ([]), words: "" };
  const text = open.oneIn ? `1 in ${often(open.oneIn)}` : counted(open.games);
  const [label, words] = gap ? ["Gap", "a gap"] : ["Line ends", "after the end of a line"];
  return {
    sign: gap && span({ class: "is-gap", title: `${repertoire?.name} has no answer` }, icon("warn")),
    tags: [span({ class: gap ? "tag gap" : "tag", title: open.oneIn ? `1 game in ${often(open.oneIn)} reaches this move; ${counted(open.games)} here` : undefined }, `${label} · ${text}`), " "],
    words: `, ${words}, ${open.oneIn ? `1 game in ${often(open.oneIn)}` : text}`,
  };
}

/**
 * Returns true if the repertoire has no answer to a move: if the move is a gap, or comes after the end of a line.
 * @param {Repertoire | undefined} repertoire
 * @param {string} uci
 */
export function isOpen(repertoire, uci) {
  return [...(repertoire?.gaps ?? []), ...(repertoire?.lineEnds ?? [])].some((open) => open.uci === uci);
}

/**
 * Returns the gap of the position that occurs in the most games, in UCI notation, or an empty string.
 * @param {Repertoire | undefined} repertoire
 */
export function largestGap(repertoire) {
  return repertoire?.gaps.reduce((most, gap) => (gap.games > most.games ? gap : most), { uci: "", games: 0 }).uci ?? "";
}

/**
 * The contents of the card that describes a repertoire.
 * @typedef {object} Card
 * @property {Repertoire} repertoire
 * @property {Gaps | undefined} gaps The gaps of the whole repertoire, if they are known.
 * @property {boolean} isCurrent Whether the gaps are those after the last edit.
 * @property {number} ply The number of half-moves before the position.
 * @property {boolean} isOwn Whether the side of the repertoire is to move.
 * @property {string[]} edits The edits of the user.
 * @property {boolean} isSaved Whether the user saved these edits.
 * @property {{ san: string, isAdded: boolean } | undefined} last The move that led to the position, if the user can add it or added it.
 * @property {string} news A sentence about the last edit, or an empty string.
 * @property {string[]} older The unsaved edits that were made for an earlier content of the file.
 * @property {[string, string][]} others The served repertoires to choose from, as values and labels, if there are several.
 * @property {string} chosen The value of this repertoire among `others`.
 */
/**
 * The actions of a card.
 * @typedef {object} CardActs
 * @property {(value: string) => void} choose
 * @property {() => void} save
 * @property {() => void} practise
 * @property {() => void} toggle Adds the move that led to the position, or removes it.
 * @property {() => void} undo Takes the last edit back.
 * @property {(line: string) => void} go Goes to a line.
 * @property {(isApplied: boolean) => void} older Applies the older edits, or forgets them.
 */

/**
 * Creates the card of a repertoire.
 * @param {Card} card
 * @param {CardActs} acts
 */
export function repertoireCard({ repertoire, gaps, isCurrent, ply, isOwn, edits, isSaved, last, news, older, others, chosen }, acts) {
  const { name, isKnown, pgn } = repertoire;
  const covered = coverage(gaps, ply + Number(!isOwn));
  const [next] = (isCurrent && gaps?.gaps) || [];
  const isEdited = edits.length > 0;
  const { added, removed } = editCounts(edits);
  const tags = [...(added ? [`${counted(added, "move")} added`] : []), ...(removed ? [`${counted(removed, "move")} removed`] : [])];
  const state = !isKnown
    ? "This position is not in the repertoire."
    : covered
      ? `An answer in ${wholePercent(covered.share)} of 100 games up to move ${Math.ceil(covered.ply / 2)}`
      : "";
  const following = next ? span({ title: next.moves }, " Next gap: ", ...unbroken(lastMove(next)), `, 1 game in ${often(next.oneIn)} (${counted(next.games)})`) : " There are no gaps left.";
  const texts = div("texts", p("", b(name), labelOf(repertoire).slice(name.length), ...tags.flatMap((text) => [" ", span("tag", text)])), p("quiet", ...(news && isCurrent ? [b(news), following] : [news || state])));
  const label = last?.isAdded ? `Added ${last.san}: remove it` : `Add ${last?.san} to the repertoire`;
  const ways = [
    ...(last ? [button({ class: `small ${last.isAdded ? "added" : "adds"}`, "data-focus": "add-last", title: label, "aria-label": label }, [icon(last.isAdded ? "check" : "plus"), span("caption", last.isAdded ? "Added " : "Add "), last.san], acts.toggle)] : []),
    ...(news ? [button({ class: "small", "data-focus": "undo-edit" }, ["Undo"], acts.undo)] : []),
    ...(isEdited && next ? [button({ class: "small", "data-focus": "next-gap" }, ["Next gap", icon("forward")], () => acts.go(next.moves))] : []),
    ...(repertoire.practise ? [button({ class: "small", "data-focus": "practise" }, ["Practise"], acts.practise)] : []),
    ...(pgn ? [button({ class: `small${isEdited && !isSaved ? " main" : ""}`, "data-focus": "save-repertoire", title: "Download PGN", "aria-label": "Download PGN" }, [icon("save"), span("caption", "Download PGN")], acts.save)] : []),
  ];
  const olderCounts = editCounts(older);
  const kinds = [...(olderCounts.added ? [counted(olderCounts.added, "added move")] : []), ...(olderCounts.removed ? [counted(olderCounts.removed, "removed move")] : [])];
  const offer = older.length
    ? [div("older", p("", `The file has changed. Apply ${kinds.join(" and ")}?`), button("small main", ["Apply"], () => acts.older(true)), button("small", ["Discard"], () => acts.older(false)))]
    : [];
  const choice = others.length > 1 ? [segmentsOrMenu({ "aria-label": "Repertoire", class: "which", "data-focus": "which" }, others, chosen, acts.choose)] : [];
  return div("card repertoire", ring(isKnown ? covered?.share : undefined, isCurrent), texts, div("ways", ...ways), ...choice, ...offer);
}

/**
 * Returns the name of a repertoire and its color, unless the name is that of the color.
 * @param {{ name: string, color: "white" | "black" }} repertoire
 */
export function labelOf({ name, color }) {
  return name.toLowerCase() === color ? name : `${name} · ${color === "white" ? "White" : "Black"}`;
}

/**
 * Returns the last move of a gap with its number, such as "13... b5".
 * @param {Gaps["gaps"][number]} gap
 */
function lastMove({ moves, move }) {
  const number = moves.match(/\d+\.+/g)?.at(-1) ?? "";
  return moves.endsWith(`${number} ${move}`) ? `${number} ${move}` : `${parseInt(number)}... ${move}`;
}

/**
 * Returns the share of games that are still in the repertoire after a half-move, or after the nearest half-move for which it is known.
 * @param {Gaps | undefined} gaps
 * @param {number} ply
 */
function coverage(gaps, ply) {
  return gaps?.coverage.findLast((one) => one.ply <= ply) ?? gaps?.coverage[0];
}

/**
 * Returns a share as a whole percentage. Returns 100 only for all games.
 * @param {number} share From 0 to 1.
 */
function wholePercent(share) {
  return share < 1 ? Math.min(99, Math.round(100 * share)) : 100;
}

/**
 * Creates a ring that is partly filled, to show a share.
 * @param {number | undefined} share From 0 to 1, or undefined if it is not known yet.
 * @param {boolean} isCurrent Whether the share is that after the last edit.
 */
function ring(share, isCurrent) {
  const circle = (/** @type {string} */ kind, /** @type {string | undefined} */ dash) =>
    svg("circle", { class: kind, cx: "22", cy: "22", r: "19", pathLength: "100", ...(dash && { "stroke-dasharray": dash }) });
  const picture = svg("svg", { viewBox: "0 0 44 44", "aria-hidden": "true" });
  picture.append(circle("", undefined));
  if (share) picture.append(circle("covered", `${100 * share} 100`));
  if (!isCurrent) picture.classList.add("stale");
  return div("ring", picture, span("", share === undefined ? "" : `${wholePercent(share)}%`));
}

/**
 * Creates a short list of the most frequent gaps of a repertoire, for wide windows.
 * @param {Gaps} gaps
 * @param {(line: string) => void} go
 */
export function nextGaps({ start, total, gaps }, go) {
  if (!gaps.length) return [];
  const from = start ? `[FEN "${start}"]\n` : "";
  const items = gaps.slice(0, NEXT).map((gap) => {
    const all = gap.moves.split(/(?<!\.) /);
    const text = `${all.length > 4 ? "… " : ""}${all.slice(-4).join(" ")}`;
    return make("li", "", button({ title: `${gap.moves}, ${counted(gap.games)} with ${gap.move}`, "data-focus": `gap ${gap.moves}` }, [span("", ...unbroken(text.slice(0, -gap.move.length), gap.move)), span("often", `1 game in ${often(gap.oneIn)}`, small(` ${counted(gap.games)}`)), icon("forward")], () => go(from + gap.moves)));
  });
  return [make("h3", "", "Gaps ", span("tag gap", number(total))), make("ul", "card gaps", ...items)];
}

/**
 * Creates the lists of the gaps of a repertoire, of the moves after the ends of its lines, and of the positions in which it has several
 * moves.
 * @param {Gaps} gaps
 * @param {(line: string) => void} go
 */
export function gapLists({ start, total, gaps, totalLineEnds, lineEnds, severalMoves }, go) {
  const from = start ? `[FEN "${start}"]\n` : "";
  const item = (/** @type {string} */ line, /** @type {Child[]} */ text, /** @type {Child[]} */ end, /** @type {string} */ kind, title = "") =>
    make("li", "", button({ title: title || undefined }, [span("", ...text), span(kind, ...end)], () => go(from + line)));
  const row = (/** @type {Gaps["gaps"][number]} */ { moves, move, oneIn, games }) => item(moves, unbroken(moves.slice(0, -move.length), move), [`1 game in ${often(oneIn)}`, small(` ${counted(games)}`)], "often", `${counted(games)} with ${move}`);
  const more = (/** @type {number} */ all, /** @type {number} */ listed, /** @type {string} */ what) => (all > listed ? [make("li", "none", `and ${counted(all - listed, what)}`)] : []);
  const rows = gaps.map(row);
  const ends = lineEnds.map(row);
  const several = severalMoves.map(({ line, moves }) => item(line || "*", unbroken(line || "Start"), [moves.join(" or ")], ""));
  return [
    make("ul", "card gaps", ...(start ? [make("li", "none", `From ${start}`)] : []), ...(rows.length ? rows : [make("li", "none", "The repertoire has no gaps in these games.")]), ...more(total, gaps.length, "less frequent gap")),
    ...(ends.length ? [make("h3", "", "After the ends of lines ", small(number(totalLineEnds))), make("ul", "card gaps ends", ...ends, ...more(totalLineEnds, lineEnds.length, "less frequent move"))] : []),
    ...(several.length ? [make("h3", "", "Positions with several moves ", small(number(several.length))), make("ul", "card gaps several", ...several)] : []),
  ];
}
