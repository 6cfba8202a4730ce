// @ts-check
// Bars of results: the games won by White, drawn and won by Black, or a player's wins, draws and losses. Games without a
// result come last.

import { b, button, div, fill, on, span } from "./dom.js";
import { counted, drawn, number, percent, sum } from "./format.js";

/** @typedef {import("./format.js").Counts} Counts */
/** @typedef {Counts & { wins?: number, losses?: number }} Results */

/** The value of the result filter for each section of a bar. The keys are the classes of the sections. */
const RESULTS = /** @type {Record<string, string>} */ ({ white: "1-0", draw: "1/2-1/2", black: "0-1", win: "win", even: "draw", loss: "loss" });

/** The smallest share of a bar, from 0 to 1, that has a label. */
const LABELED = 0.12;
/** The smallest share of a bar that is drawn. The edges of a smaller section would be larger than the section. */
const DRAWN = 0.001;

/**
 * Returns the sections of a bar: their class, name and number of games. A fourth section contains games without a result.
 * @param {Results} results
 * @param {boolean} ofPlayer
 * @returns {[string, string, number][]}
 */
export function parts(results, ofPlayer) {
  const { white, black, wins = 0, losses = 0, unfinished = 0 } = results;
  const draws = drawn(results);
  /** @type {[string, string, number][]} */
  const open = unfinished ? [["open", "No result", unfinished]] : [];
  if (ofPlayer) return [["win", "Win", wins], ["even", "Draw", draws], ["loss", "Loss", losses], ...open];
  return [["white", "White", white], ["draw", "Draw", draws], ["black", "Black", black], ...open];
}

/**
 * Creates a bar. Pressing a section that has a label lists the games with its result.
 * @param {Results} results
 * @param {boolean} ofPlayer
 * @param {((result: string) => void) | undefined} list
 * @param {boolean} [isBig] Whether the labels contain the names of the sections. Then keys reach the sections, too. The many
 *   small bars of a table have no tab stops, because the heading of the list offers the results.
 */
export function bar(results, ofPlayer, list, isBig = false) {
  const total = sum(results) || 1;
  const all = parts(results, ofPlayer);
  const element = div({
    class: isBig ? "bar big" : "bar",
    role: isBig && list ? "group" : "img",
    "aria-label": all.map(([, name, count]) => `${name} ${percent(count / total)}`).join(", "),
    title: all.map(([, name, count]) => `${name} ${number(count)}`).join(", "),
  });
  const whole = wholePercents(all.map(([, , count]) => count / total));
  for (const [index, [kind, name, count]] of all.entries()) {
    const share = count / total;
    if (share < DRAWN) continue;
    const result = RESULTS[kind];
    const isTarget = share >= LABELED && list && result;
    const title = isTarget ? `List the ${counted(count)}: ${name}` : undefined;
    const press = (/** @type {MouseEvent} */ event) => {
      // The bar may be in a row of the table, and a press on the row plays its move.
      event.stopPropagation();
      if (isTarget) list(result);
    };
    const piece = isTarget && isBig ? button({ class: kind, title, "data-focus": `result ${kind}` }, [], press) : span({ class: kind, title });
    if (isTarget && !isBig) {
      piece.classList.add("target");
      on(piece, "click", press);
    }
    piece.style.flexGrow = share.toFixed(4);
    if (share >= LABELED && isBig) {
      piece.append(span({ class: share < 0.22 ? "narrow" : "" }, `${name} `), b(`${(100 * share).toFixed(1)}%`));
    } else if (share >= LABELED) {
      fill(piece, whole[index] ?? "");
    }
    element.append(piece);
  }
  return element;
}

/**
 * Rounds shares to whole percents that add up to 100.
 * @param {number[]} shares
 */
function wholePercents(shares) {
  const rest = (/** @type {number | undefined} */ share) => (100 * (share ?? 0)) % 1;
  const whole = shares.map((share) => Math.floor(100 * share));
  const missing = 100 - whole.reduce((all, one) => all + one, 0);
  const order = [...shares.keys()].sort((one, other) => rest(shares[other]) - rest(shares[one]));
  return whole.map((one, index) => one + Number(order.indexOf(index) < missing));
}
