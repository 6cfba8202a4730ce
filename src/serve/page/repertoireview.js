// @ts-check
// The chosen repertoire: its card, its gaps, and the moves that the user adds to it or removes.

import { ask, askFile, words } from "./api.js";
import { byId, warn, fill, p, save } from "./dom.js";
import { editsOf, markSaved, olderLines, setLines, toggledEdits } from "./edits.js";
import { say } from "./elements.js";
import { counted, plyNumber, sum } from "./format.js";
import { firstPly } from "./line.js";
import { chosenRepertoire, isMe } from "./me.js";
import { go, refresh, scrollToHeading } from "./navigation.js";
import { practise } from "./practise.js";
import { goToText } from "./readtext.js";
import { gapLists, labelOf, nextGaps, repertoireCard } from "./repertoire.js";
import { session } from "./session.js";
import { filterQuestion, put } from "./state.js";

/** @typedef {import("./api.js").Gaps} Gaps */
/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */

/** The gaps that the server found last, and the query string of that request with and without the edits. */
let found = /** @type {{ key: string, unedited: string, gaps: Gaps | undefined }} */ ({ key: "", unedited: "", gaps: undefined });
/** A text about the last edit, the line that was shown at that time, and the edits before it. */
let news = { text: "", at: "", before: /** @type {string[]} */ ([]) };

/**
 * Returns the parameters that select a repertoire with the edits of the user.
 * @param {ServedRepertoire} repertoire
 * @returns {Record<string, string>}
 */
export function repertoireQuestion(repertoire) {
  const { lines } = editsOf(repertoire);
  return { repertoire: repertoire.id ?? repertoire.name, side: repertoire.color, ...(lines.length && { edits: lines.join(";") }) };
}

/** Shows the card of the chosen repertoire. Shows nothing if no repertoire is for this variant. */
export function drawRepertoire() {
  const place = byId("repertoires");
  const { report, answer, view, about } = session;
  if (!report || !answer) return fill(place);
  const { lines, isSaved } = editsOf(report);
  const value = (/** @type {ServedRepertoire} */ { name, color }) => `${color} ${name}`;
  const others = (about.repertoires ?? []).map((one) => /** @type {[string, string]} */ ([value(one), labelOf(one)]));
  const card = {
    repertoire: report,
    gaps: latestGaps(),
    isCurrent: found.key === gapsQuestion(report).toString(),
    ply: view.play.length,
    isOwn: isOwnTurn(),
    edits: lines,
    isSaved,
    last: ownLast(),
    news: news.at === view.play.join() ? news.text : "",
    older: olderLines(report),
    others,
    chosen: value(report),
  };
  fill(
    place,
    repertoireCard(card, {
      choose: (chosen) => {
        const color = chosen.slice(0, 5);
        const filters = isMe(view.filters.player) ? { ...view.filters, color } : view.filters;
        void go({ repertoire: chosen.slice(6), flip: color === "black" ? "1" : "0", filters }, { push: true });
      },
      save: () => void download(report),
      practise: () => void practise(report, repertoireQuestion(report)),
      toggle: toggleLast,
      undo: () => {
        setLines(report, news.before);
        news = { text: "", at: "", before: [] };
        void refresh();
      },
      go: goToGap,
      older: (isApplied) => {
        setLines(report, isApplied ? olderLines(report) : []);
        void refresh();
      },
    }),
  );
}

/**
 * Returns the gaps of the chosen repertoire, or undefined if they are not known yet. Until the server has found the gaps after an edit,
 * returns those before it, so that nothing moves.
 */
export function latestGaps() {
  return session.report && found.unedited === unedited(gapsQuestion(session.report)) ? found.gaps : undefined;
}

/**
 * Returns a query string without the edits of the user.
 * @param {URLSearchParams} question
 */
function unedited(question) {
  const others = new URLSearchParams(question);
  others.delete("edits");
  return others.toString();
}

/** @param {ServedRepertoire} repertoire */
function gapsQuestion(repertoire) {
  return put(filterQuestion(session.view), { ...repertoireQuestion(repertoire), limit: 200 });
}

/**
 * Requests the gaps of the chosen repertoire, unless they are known, and shows them.
 * @param {AbortSignal} signal
 */
export async function showGaps(signal) {
  const { report } = session;
  const next = byId("next-gaps");
  // The gaps of another repertoire or of other filters would lead to positions in which this repertoire has no gaps.
  if (!latestGaps()) fill(next);
  if (!report) return;
  const question = gapsQuestion(report);
  const key = question.toString();
  const place = byId("gaps");
  try {
    if (found.key !== key) {
      const gaps = /** @type {Gaps} */ (await ask("gaps", question, signal));
      if (signal.aborted) return;
      found = { key, unedited: unedited(question), gaps };
      if (news.at === session.view.play.join()) say(`${news.text} ${counted(gaps.total, "gap")} left`);
    }
    drawRepertoire();
    // If no game passes the filters, `explain` says why in place of the gaps.
    if (!found.gaps || (session.view.tab === "gaps" && session.answer && !sum(session.answer))) return;
    fill(place, ...gapLists(found.gaps, goToGap));
    fill(next, ...nextGaps(found.gaps, goToGap));
  } catch (error) {
    if (signal.aborted) return;
    fill(next);
    fill(place, p("problem", words(error)));
  }
}

function isOwnTurn() {
  return session.answer?.polybook.fen.split(" ")[1] === session.report?.color[0];
}

/**
 * Goes to a line of the list of gaps, and shows the moves in place of the list.
 * @param {string} line
 */
function goToGap(line) {
  const { tab } = session.view;
  void goToText(line, { tab: tab === "gaps" ? "" : tab }).then(scrollToHeading);
}

/**
 * Returns the move that led to the position, and whether the user added it. Returns undefined if the user neither added it nor can
 * add it.
 */
function ownLast() {
  const { answer, report, view } = session;
  const last = answer?.polybook.line.at(-1);
  if (!report?.pgn || view.fen || !last || isOwnTurn()) return undefined;
  const isAdded = editsOf(report).lines.includes(view.play.join());
  return isAdded || !report.isKnown ? { san: last.san, isAdded } : undefined;
}

/** Adds the move that led to the position to the repertoire, or removes it, if the user can do that. */
export function toggleLast() {
  const last = ownLast();
  if (last) toggleLine(session.view.play, last.san, last.isAdded ? "added" : "new");
}

/**
 * Returns what the table of moves needs to know about the repertoire: whether the user is to move, and the state of the button of a
 * move.
 */
export function repertoireContext() {
  const { report, view } = session;
  if (!report) return undefined;
  const isOwn = isOwnTurn();
  const canEdit = isOwn && report.pgn && !view.fen;
  const state = (/** @type {string} */ uci) => {
    const known = report.moves.find((move) => move.uci === uci);
    return known ? (known.added ? "added" : "known") : "new";
  };
  return { report, isOwn, state: canEdit ? state : undefined, toggle: (/** @type {string} */ uci, /** @type {string} */ san) => toggleLine([...view.play, uci], san, state(uci)) };
}

/**
 * Adds the last move of a line to the repertoire, or removes it with all that follows it.
 * @param {string[]} play
 * @param {string} san The last move.
 * @param {"added" | "known" | "new"} state
 */
function toggleLine(play, san, state) {
  const { report, view, known } = session;
  const chosen = chosenRepertoire();
  if (!report || !chosen) return;
  const old = editsOf(chosen).lines;
  if (!setLines(chosen, toggledEdits(old, play.join(), state))) {
    warn("There are too many edits. Download the PGN, and serve the new file.");
    return;
  }
  const last = known[play.length - 2];
  const before = last ? `${plyNumber(firstPly(view.fen) + play.length - 2)} ${last.san} ` : "";
  news = { text: `${before}${san} ${state === "new" ? "added" : "removed"}.`, at: view.play.join(), before: old };
  void refresh();
}

/** @param {ServedRepertoire} repertoire */
async function download(repertoire) {
  try {
    const file = await askFile("repertoire.pgn", put(new URLSearchParams(), repertoireQuestion(repertoire)));
    save(file, `${repertoire.name}.pgn`);
    if (editsOf(repertoire).lines.length) markSaved(repertoire);
    drawRepertoire();
  } catch (error) {
    warn(error);
  }
}
