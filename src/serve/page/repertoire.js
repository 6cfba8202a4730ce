// @ts-check
// What repertoires say of a position: their moves and gaps in the table, and a line about each.

import { b, div, icon, p, span } from "./dom.js";
import { counted, number, percent, sum } from "./format.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Repertoire} Repertoire */

/** @param {Repertoire} repertoire */
function title({ name, color }) {
  return `${name} (${color === "white" ? "White" : "Black"})`;
}

/** @param {number} games */
function oneIn(games) {
  return `1 game in ${number(games < 9.5 ? Number(games.toFixed(1)) : Math.round(games))}`;
}

/**
 * What the repertoires say of a move: signs next to it, texts in place of its name, and the same in words.
 * @param {Repertoire[]} repertoires
 * @param {string} uci
 */
export function marks(repertoires, uci) {
  const signs = [];
  const tags = [];
  const words = [];
  for (const repertoire of repertoires) {
    const whose = title(repertoire);
    const gap = repertoire.gaps.find((other) => other.uci === uci);
    if (repertoire.moves.some((other) => other.uci === uci)) {
      signs.push(span({ class: `mark-of ${repertoire.color}`, title: `in ${whose}` }, icon("mark")));
      words.push(`, in ${whose}`);
    } else if (gap) {
      const text = `Gap · ${gap.one_in ? oneIn(gap.one_in) : counted(gap.games)}`;
      tags.push(span({ class: "tag gap", title: `not answered by ${whose}` }, text), " ");
      words.push(`, ${text}`);
    }
  }
  return { signs, tags, words: words.join("") };
}

/**
 * A line about each repertoire.
 * @param {Repertoire[]} repertoires
 * @param {Answer} answer
 * @returns {HTMLElement[]}
 */
export function repertoireLines(repertoires, answer) {
  return repertoires.map((repertoire) => {
    const { color, moves, gaps, one_in: games } = repertoire;
    const total = sum(answer);
    const isOwn = answer.polybook.fen.split(" ")[1] === color[0];
    const open = gaps.reduce((all, gap) => all + gap.games, 0);
    const met = games && games > 1 ? `, met in ${oneIn(games)}` : "";
    const text = !repertoire.is_known
      ? "does not have this position"
      : isOwn
        ? `plays ${moves.map(({ san }) => san).join(" or ")}${met}`
        : `answers ${total ? `${percent(1 - open / total)} of the games here` : counted(moves.length, "move")}${gaps.length ? `, ${counted(gaps.length, "gap")}` : ""}${met}`;
    return div("repertoire", span(`mark-of ${color}`, icon("mark")), p("", b(title(repertoire)), " ", text));
  });
}

/**
 * The gap that is met most often.
 * @param {Repertoire[]} repertoires
 */
export function largestGap(repertoires) {
  const gaps = repertoires.flatMap((repertoire) => repertoire.gaps);
  return gaps.reduce((most, gap) => (gap.games > most.games ? gap : most), { uci: "", games: 0 }).uci;
}
