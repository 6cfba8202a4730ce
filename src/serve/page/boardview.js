// @ts-check
// The board with its arrows, the strips above and below it, and the buttons that move along the line.

import { byId, fill } from "./dom.js";
import { board } from "./elements.js";
import { sum } from "./format.js";
import { changeShown } from "./history.js";
import { chosenRepertoire, isMe, otherPreparer } from "./me.js";
import { refresh } from "./navigation.js";
import { largestGap } from "./repertoire.js";
import { blackBelow, session } from "./session.js";
import { squares } from "./squares.js";
import { analysis, commonPlies, nameText, ucis } from "./state.js";
import { gameStrip, plainStrip, playerStrip, positionStrip, preparationStrip } from "./strips.js";

/** @typedef {import("./api.js").Answer} Answer */

/** The maximum number of moves with an arrow. */
const MOST_ARROWS = 4;
/** The minimum share of games, from 0 to 1, of a move with an arrow. */
const LEAST_SHARE = 0.02;

/**
 * Shows the position of an answer.
 * @param {Answer} counts
 */
export function drawBoard(counts) {
  const { view, known, opened } = session;
  const { fen, check, legal, line } = counts.polybook;
  const last = line.at(-1);
  const { from, to } = last ? squares(last) : { from: "", to: "" };
  board.flipped = blackBelow();
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".analysis"))) link.href = analysis(view, fen, blackBelow() ? "black" : "white");
  board.position = { fen, check, legal, last: last && `${from}${to}` };
  drawArrows("");
  drawStrips();
  const atEnd = view.play.length === known.length;
  const isOver = atEnd && (!!opened || !counts.moves.length);
  for (const [act, isOff] of /** @type {[string, boolean][]} */ ([["first", !view.play.length], ["back", !view.play.length], ["forward", isOver], ["last", atEnd]])) {
    // With the attribute `disabled`, the button would lose the focus.
    for (const other of document.querySelectorAll(`[data-act=${act}]`)) other.setAttribute("aria-disabled", String(isOff));
  }
}

/** Shows the names and scores of both sides. */
export function drawStrips() {
  const { answer: counts, opened, prepared, report, view } = session;
  const strip = (/** @type {"white" | "black"} */ color) => {
    if (!counts) return plainStrip(color);
    if (opened) return gameStrip(opened, color, commonPlies(view.play, ucis(opened.moves)));
    const { player, color: side = "both" } = view.filters;
    if (prepared) return preparationStrip(color, color === side ? nameText(player) : otherPreparer() || "You", (color === side ? prepared.theirs : prepared.yours).rating);
    return player ? playerStrip(counts, color, isMe(player) ? "You" : nameText(player), side) : positionStrip(counts, color, report?.color === color ? report.name : "");
  };
  const isTurned = blackBelow();
  fill(byId("strip-top"), ...strip(isTurned ? "white" : "black"));
  fill(byId("strip-bottom"), ...strip(isTurned ? "black" : "white"));
}

/**
 * Draws arrows for the most played moves, and for the move of the row that the user points at.
 * @param {string} uci The move, or an empty string if the user points at no row.
 */
export function drawArrows(uci) {
  const { answer, prepared, report } = session;
  if (!answer) return;
  const total = sum(answer) || 1;
  const often = answer.moves.filter((move) => sum(move) >= LEAST_SHARE * total).slice(0, MOST_ARROWS);
  const gap = prepared ? "" : largestGap(report);
  const arrow = (/** @type {string} */ uci, /** @type {number} */ share, full = false) => ({ uci, share, full, isGap: uci === gap });
  const arrows = often.map((move) => arrow(move.uci, sum(move) / total));
  if (gap && !arrows.some((one) => one.isGap)) arrows.splice(MOST_ARROWS - 1, 1, arrow(gap, LEAST_SHARE));
  const others = arrows.filter((one) => one.uci !== uci);
  board.arrows = uci ? [arrow(uci, 1, true), ...others].slice(0, MOST_ARROWS) : arrows;
}

/** Turns the board around. The page shows the repertoire of the side at the bottom, so if it changes, the view is shown again. */
export function flip() {
  const before = chosenRepertoire();
  changeShown({ flip: blackBelow() ? "0" : "1" });
  if (chosenRepertoire() !== before) void refresh();
  board.flipped = blackBelow();
  drawStrips();
}
