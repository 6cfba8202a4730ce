// @ts-check
// Repertoires: their moves and gaps in the table, and a line about each repertoire.

import { ask, words } from "./api.js";
import { b, button, div, fill, icon, make, p, span } from "./dom.js";
import { counted, number, percent, sum } from "./format.js";
import { put } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Repertoire} Repertoire */

/** @typedef {{ moves: string, move: string, one_in: number }} LineGap `moves` ends with `move`. */

/** @param {Repertoire} repertoire */
function title({ name, color }) {
  return `${name} (${color === "white" ? "White" : "Black"})`;
}

/** @param {number} games */
function oneIn(games) {
  return `1 game in ${number(games < 9.5 ? Number(games.toFixed(1)) : Math.round(games))}`;
}

/**
 * Returns what the repertoires say about a move: signs next to it, texts that replace its name, and a description in words.
 * @param {Repertoire[]} repertoires
 * @param {string} uci
 */
export function marks(repertoires, uci) {
  const signs = [];
  const tags = [];
  const said = [];
  for (const repertoire of repertoires) {
    const whose = title(repertoire);
    const gap = repertoire.gaps.find((other) => other.uci === uci);
    if (repertoire.moves.some((other) => other.uci === uci)) {
      signs.push(span({ class: `mark-of ${repertoire.color}`, title: `in ${whose}` }, icon("mark")));
      said.push(`, in ${whose}`);
    } else if (gap) {
      const text = `Gap · ${gap.one_in ? oneIn(gap.one_in) : counted(gap.games)}`;
      tags.push(span({ class: "tag gap", title: `not answered by ${whose}` }, text), " ");
      said.push(`, ${text}`);
    }
  }
  return { signs, tags, words: said.join("") };
}

/** The list of all gaps. */
const list = make("ul", "card gaps");
/** The query of the list, or an empty string if the list is closed. */
let listed = "";

/**
 * Returns a line about each repertoire, with the list of all its gaps if it is open.
 * @param {Repertoire[]} repertoires
 * @param {Answer} answer
 * @param {URLSearchParams} filters
 * @param {(line: string) => void} go
 * @returns {HTMLElement[]}
 */
export function repertoireLines(repertoires, answer, filters, go) {
  return repertoires.flatMap((repertoire) => {
    const { name, color, moves, gaps, one_in: games } = repertoire;
    const total = sum(answer);
    const isOwn = answer.polybook.fen.split(" ")[1] === color[0];
    const open = gaps.reduce((all, gap) => all + gap.games, 0);
    const met = games && games > 1 ? `, met in ${oneIn(games)}` : "";
    const text = !repertoire.is_known
      ? "does not contain this position"
      : isOwn
        ? `plays ${moves.map(({ san }) => san).join(" or ")}${met}`
        : `answers ${total ? `${percent(1 - open / total)} of the games here` : counted(moves.length, "move")}${gaps.length ? `, ${counted(gaps.length, "gap")}` : ""}${met}`;
    const question = put(new URLSearchParams(filters), { repertoire: name, side: color });
    const key = question.toString();
    const toggle = button({ class: "small plain", "aria-expanded": listed === key, "data-focus": `gaps ${name} ${color}` }, ["All gaps"], () => {
      listed = listed === key ? "" : key;
      toggle.setAttribute("aria-expanded", String(listed === key));
      if (!listed) list.remove();
      else {
        line.after(list);
        void listGaps(question, go);
      }
    });
    const line = div("repertoire", span(`mark-of ${color}`, icon("mark")), p("", b(title(repertoire)), " ", text), toggle);
    return listed === key ? [line, list] : [line];
  });
}

/**
 * Lists the gaps of a repertoire, sorted by how often they occur.
 * @param {URLSearchParams} question
 * @param {(line: string) => void} go
 */
async function listGaps(question, go) {
  fill(list, make("li", "none", "Counting…"));
  let items;
  try {
    const { start, gaps } = /** @type {{ start: string | null, gaps: LineGap[] }} */ (await ask("gaps", question));
    items = gaps.map(({ moves, move, one_in: games }) =>
      make("li", "", button("", [span("", moves.slice(0, -move.length), b(move)), span("often", oneIn(games))], () => go(`${start ? `[FEN "${start}"]\n` : ""}${moves}`))),
    );
    if (start) items.unshift(make("li", "none", `From ${start}`));
  } catch (error) {
    items = [make("li", "problem", words(error))];
  }
  if (listed === question.toString()) fill(list, ...(items.length ? items : [make("li", "none", "No gaps")]));
}

/**
 * Returns the gap that occurs most often.
 * @param {Repertoire[]} repertoires
 */
export function largestGap(repertoires) {
  const gaps = repertoires.flatMap((repertoire) => repertoire.gaps);
  return gaps.reduce((most, gap) => (gap.games > most.games ? gap : most), { uci: "", games: 0 }).uci;
}
