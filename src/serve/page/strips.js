// @ts-check
// The strips above and below the board, which name the players and show their scores.

import { b, make, small, span } from "./dom.js";
import { counted, finished, score, sum } from "./format.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {"white" | "black"} Color */

/**
 * Returns the strip of one color in a position.
 * @param {Answer} answer
 * @param {Color} color
 * @param {string} repertoire The name of the repertoire of this color, or an empty string.
 */
export function positionStrip(answer, color, repertoire) {
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
export function playerStrip(answer, color, player, side) {
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
export function preparationStrip(color, name, rating) {
  return strip(color, [b(name)], rating ? [span("quiet", `average ${rating}`)] : []);
}

/**
 * Returns the strip of a player in the open game.
 * @param {OpenGame} game
 * @param {Color} color
 * @param {number} ply The number of half-moves before the position.
 */
export function gameStrip(game, color, ply) {
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
export function plainStrip(color) {
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

