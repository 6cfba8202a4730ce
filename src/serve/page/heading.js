// @ts-check
// The heading of a position: its opening, or the player and the player's results.

import { bar, parts } from "./bars.js";
import { div, fill, make, p, segments, small, span } from "./dom.js";
import { counted, dateWords, drawn, finished, number, splitName, sum, withoutResult } from "./format.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Opening} Opening */

/**
 * Returns the name of a position.
 * @param {Answer} answer
 * @param {boolean} isStart
 */
export function positionName(answer, isStart) {
  if (answer.opening) return answer.opening.name;
  return isStart ? "Starting position" : "Unnamed position";
}

/**
 * Shows the heading of an opening. Space for the small chart of the years is reserved.
 * @param {HTMLElement} place
 * @param {Answer} answer
 * @param {boolean} isStart
 */
export function showOpening(place, answer, isStart) {
  const name = positionName(answer, isStart);
  const { family, variation } = splitName(name);
  place.className = "heading";
  fill(
    place,
    make(
      "h2",
      { title: name },
      ...(answer.opening ? [span("eco", answer.opening.eco)] : []),
      span("family", family),
      span("variation", variation),
      span("phone-count", counted(sum(answer))),
    ),
    yearsPlace(place),
  );
}

/**
 * @param {HTMLElement} place
 * @param {Answer} answer
 * @param {string} player
 * @param {string} color "white" or "black".
 * @param {{ white: number, black: number }} colors The number of the player's games with each color.
 * @param {boolean} isStart
 * @param {(color: string) => void} choose
 * @param {((result: string) => void) | undefined} list Lists the games with a result.
 * @param {HTMLElement} mine Buttons that make this player the user, open the preparation for this player, or add a name.
 */
export function showPlayer(place, answer, player, color, colors, isStart, choose, list, mine) {
  const games = sum(answer);
  const points = (answer.wins ?? 0) + drawn(answer) / 2;
  const scored = finished(answer);
  const name = positionName(answer, isStart);
  const option = (/** @type {string} */ value, /** @type {string} */ label, /** @type {number} */ count) =>
    /** @type {[string, string, HTMLElement]} */ ([value, `${label} `, small(number(count))]);
  const figure = (/** @type {string} */ label, /** @type {string} */ value, /** @type {string} */ more) =>
    div("", make("dt", "", label), make("dd", "", value, ...(more ? [" ", small(more)] : [])));
  place.className = "heading of-player";
  fill(
    place,
    make("h2", { title: player }, span("family", player)),
    segments({ "aria-label": "Color of the player" }, [option("white", "White", colors.white), option("black", "Black", colors.black)], color, choose),
    mine,
    p({ class: "opening-name", title: isStart ? undefined : name }, isStart ? "" : name),
    yearsPlace(place),
    div("card figures",
      make(
        "dl",
        "",
        figure("Games", number(games), ""),
        figure("Score", scored ? `${((100 * points) / scored).toFixed(1)}%` : "–", scored ? `${number(points)} of ${number(scored)}` : "no results"),
        figure("Performance", String(answer.performance ?? "–"), performanceWords(answer)),
        figure("Last played", dateWords(answer.lastPlayed) || "–", ""),
      ),
      bar(answer, true, list, true),
    ),
  );
}

/**
 * Says from which games a performance rating is calculated, or why there is none.
 * @param {Answer} answer
 */
function performanceWords({ performance, performanceGames = 0, opponentRating }) {
  if (performanceGames < 10) return `needs 10 games against rated opponents, has ${number(performanceGames)}`;
  return performance === undefined ? "unknown for games chosen by result" : `against an average of ${opponentRating ?? "–"}, in ${counted(performanceGames)}`;
}

/**
 * Returns the element for the small chart of the years. Its contents stay until the next chart arrives.
 * @param {HTMLElement} place
 */
function yearsPlace(place) {
  return place.querySelector(".spark") ?? div("spark");
}

/**
 * Returns the results as text for screen readers.
 * @param {Answer} answer
 * @param {boolean} ofPlayer
 */
export function resultWords(answer, ofPlayer) {
  const total = sum(answer);
  if (!total) return "no games";
  const [[, name, first], [, , even]] = /** @type {[[string, string, number], [string, string, number]]} */ (/** @type {unknown} */ (parts(answer, ofPlayer)));
  const scored = finished(answer);
  const points = scored ? `, ${ofPlayer ? "the player" : name} scores ${Math.round((100 * (first + even / 2)) / scored)}%` : "";
  return `${counted(total)}${points}${withoutResult(answer)}`;
}
