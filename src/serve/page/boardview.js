// @ts-check
// The board with its arrows, the strips above and below it, and the buttons that move along the line.

import { LEAST_SHARE, MOST_ARROWS, arrowMoves } from "./arrows.js";
import { squares } from "./board.js";
import { b, byId, fill, make, small, span } from "./dom.js";
import { board } from "./elements.js";
import { counted, finished, score, sum } from "./format.js";
import { changeShown } from "./history.js";
import { chosenRepertoire, isMe, otherPreparer } from "./me.js";
import { refresh } from "./navigation.js";
import { largestGap } from "./repertoire.js";
import { blackBelow, session } from "./session.js";
import { analysis, commonPlies, nameText, ucis } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./dom.js").Child} Child */

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
    // The attribute `disabled` would take the focus away from the button.
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
  const gap = prepared ? "" : largestGap(report);
  const arrow = (/** @type {string} */ uci, /** @type {number} */ share, full = false) => ({ uci, share, full, isGap: uci === gap });
  const arrows = arrowMoves(answer).map(({ uci, share }) => arrow(uci, share));
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

/** @typedef {"white" | "black"} Color */

/**
 * Returns the strip of one color in a position.
 * @param {Answer} answer
 * @param {Color} color
 * @param {string} repertoire The name of the repertoire of this color, or an empty string.
 */
function positionStrip(answer, color, repertoire) {
  const isMoving = turn(answer) === color;
  const mine = color === "white" ? score(answer) : 1 - score(answer);
  const figure = finished(answer) ? [`scores `, b(`${(100 * mine).toFixed(1)}%`)] : [];
  return strip(color, [b(colorName(color)), ...(repertoire ? [small(`· ${repertoire}`)] : [])], [
    ...(isMoving ? [small("to move")] : []),
    span({ title: answer.unfinished ? `in ${counted(finished(answer))} with a result` : undefined }, ...figure),
  ]);
}

/**
 * Returns the strip of one color in the games of a player. If the player has the same color in all games, the strip names the player or the
 * opponents. Otherwise it names the color.
 * @param {Answer} answer
 * @param {Color} color
 * @param {string} player
 * @param {string} side The color of the player, or "both".
 */
function playerStrip(answer, color, player, side) {
  const isMine = side === color || (side === "both" && color === "white");
  const rating = isMine ? answer.playerRating : answer.opponentRating;
  const name = side === "both" ? colorName(color) : isMine ? player : "Opponents";
  const known = (isMine ? answer.playerRatingGames : answer.performanceGames) ?? 0;
  const figures = side !== "both" && rating ? [span({ title: `in ${counted(known)}` }, `average ${rating}`, ...(known < sum(answer) ? [small(` in ${counted(known)}`)] : []))] : [];
  const moving = turn(answer) === color && sum(answer) ? [small("to move")] : [];
  return strip(color, [b(name)], [...moving, ...figures]);
}

/**
 * Returns the strip of a side in a preparation.
 * @param {Color} color
 * @param {string} name
 * @param {number | null} rating The mean rating, or null if none is known.
 */
function preparationStrip(color, name, rating) {
  return strip(color, [b(name)], rating ? [span("quiet", `average ${rating}`)] : []);
}

/**
 * Returns the strip of a player in the open game.
 * @param {OpenGame} game
 * @param {Color} color
 * @param {number} ply The number of half-moves before the position.
 */
function gameStrip(game, color, ply) {
  const { name, rating, title } = game[color];
  const points = { "1-0": ["1", "0"], "0-1": ["0", "1"], "1/2-1/2": ["½", "½"] }[game.result];
  const point = points?.[color === "white" ? 0 : 1];
  const starts = game.start?.split(" ")[1] === "b" ? 1 : 0;
  const isOwn = (/** @type {number} */ index) => (index + starts) % 2 === (color === "white" ? 0 : 1);
  // The clock shows the time that was left after the last move of this color.
  let last = ply - 1;
  while (last >= 0 && !isOwn(last)) last -= 1;
  const clock = last >= 0 ? game.moves[last]?.clk : undefined;
  const isWinner = point === "1";
  return strip(color, [make(isWinner ? "b" : "span", { class: "who" }, title ? `${title} ${name || "?"}` : name || "?"), ...(rating ? [span("quiet", rating)] : [])], [
    ...(point ? [span({ class: isWinner ? "point won" : "point" }, point)] : []),
    ...(clock !== undefined ? [span({ class: isOwn(ply) ? "clock running" : "clock", "aria-label": `clock ${clockWords(clock)}` }, clockWords(clock))] : []),
  ]);
}

/** @param {number} seconds */
function clockWords(seconds) {
  const whole = Math.floor(seconds);
  const two = (/** @type {number} */ part) => String(part % 60).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60)];
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole)}`;
}

/**
 * Returns a strip that only names a color, for use before an answer arrives.
 * @param {Color} color
 */
function plainStrip(color) {
  return strip(color, [b(colorName(color))], []);
}

/**
 * @param {Color} color
 * @param {Child[]} name
 * @param {Child[]} end
 */
function strip(color, name, end) {
  return [span({ class: `man-of ${color}`, title: colorName(color) }), ...name, span("end", ...end)];
}

/** @param {Color} color */
function colorName(color) {
  return color === "white" ? "White" : "Black";
}

/** @param {Answer} answer */
function turn(answer) {
  return answer.polybook.fen.split(" ")[1] === "b" ? "black" : "white";
}
