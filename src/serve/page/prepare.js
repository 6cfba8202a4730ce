// @ts-check
// The elements of the preparation for an opponent: its heading, a table of the opponent's moves with the user's results and
// answers, and the lines to study first.

import { bar } from "./bars.js";
import { b, button, div, icon, make, on, p, segments, small, span, unbroken } from "./dom.js";
import { counted, dateWords, number, percent, plyNumber } from "./format.js";

/** @typedef {import("./api.js").Preparation} Preparation */
/** @typedef {import("./api.js").PreparedLine} PreparedLine */
/** @typedef {import("./api.js").PreparedMove} PreparedMove */
/** @typedef {import("./api.js").Results} Results */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {"white" | "black"} Color */

/** The minimum number of games of a score that is marked as weaker. A score is marked if the expected score is above its range. */
const ENOUGH = 10;
/** The number of rows that are always shown, and the minimum share of games of further rows. Rows with a smaller share are folded. */
const [SHOWN, RARE] = [7, 0.005];
/** The number of games below which a score is not shown. */
const FEW = 5;
/** The minimum number of games with a move that is the usual answer. */
const USUAL = 5;
/** The half-life of games in years that the user can choose. */
const HALF_LIFE = "2";

/**
 * Returns the number of games with a result, and the points of a color in them.
 * @param {Results} results
 * @param {Color} color
 */
function scored({ white, draws, black }, color) {
  const wins = color === "white" ? white : black;
  return { games: white + draws + black, wins, points: wins + draws / 2 };
}

/**
 * Returns the score of a color as text.
 * @param {Results} results
 * @param {Color} color
 */
function scoreText(results, color) {
  const { games, points } = scored(results, color);
  return games ? `${Math.round((100 * points) / games)}%` : "–";
}

/**
 * Returns true if a score is so far below the expected one that chance alone hardly explains it.
 * @param {Results} results
 * @param {{ scoreRange: [number, number] | null, expectedScore: number | null }} judged
 */
function isWeak({ white, draws, black }, { scoreRange, expectedScore }) {
  return white + draws + black >= ENOUGH && scoreRange !== null && expectedScore !== null && scoreRange[1] < expectedScore;
}

/**
 * Returns the words for the person who prepares.
 * @param {string} preparer The name of the person, or an empty string for the user.
 */
function wordsFor(preparer) {
  return preparer ? { you: preparer, s: "s", your: `${preparer}’s`, yours: preparer } : { you: "You", s: "", your: "your", yours: "yours" };
}

/**
 * Returns the heading of a preparation.
 * @param {Preparation} prepared
 * @param {string} opponent
 * @param {HTMLElement} names A button for the opponent's names.
 * @param {string} preparer As for `wordsFor`.
 * @param {Color} color The user's color.
 * @param {(color: string) => void} choose
 */
export function preparationHeading({ theirs, yours, met }, opponent, names, preparer, color, choose) {
  const { you } = wordsFor(preparer);
  const other = color === "white" ? "black" : "white";
  const figure = (/** @type {string} */ label, /** @type {string} */ value, /** @type {string} */ more) =>
    div("", make("dt", { title: label }, label), make("dd", "", value, ...(more ? [" ", small(more)] : [])));
  const of = (/** @type {Results} */ results, /** @type {Color} */ side) => /** @type {[string, string]} */ ([scoreText(results, side), `in ${counted(results.games)}`]);
  return [
    make("h2", { title: opponent }, span("family", `Prepare for ${opponent}`)),
    segments({ "aria-label": preparer ? `Color of ${preparer}` : "Your color" }, [["white", "as White"], ["black", "as Black"]], color, choose),
    names,
    div("card figures",
      make("dl", "",
        figure(opponent, ...of(theirs, other)),
        figure(you, ...of(yours, color)),
        figure(`${you} against them`, ...of(met, color)),
        figure("Last met", dateWords(met.lastPlayed?.slice(0, 7)) || "–", ""),
      ),
    ),
  ];
}

/**
 * Returns the table of the moves of a preparation.
 * @param {Preparation} prepared
 * @param {string} preparer As for `wordsFor`.
 * @param {Color} color The user's color.
 * @param {boolean} isOwn Whether the user is to move.
 * @param {boolean} isUnfolded
 * @param {{ play: (uci: string) => void, unfold: () => void, leave: () => void }} acts `leave` ends the preparation, and shows the
 *   opponent's games in the position.
 */
export function preparationTable(prepared, preparer, color, isOwn, isUnfolded, { play, unfold, leave }) {
  const { you, s, your } = wordsFor(preparer);
  const { here, moves, recentSince } = prepared;
  const all = isOwn ? Math.max(1, ...moves.map(({ theirs }) => theirs.games)) : moves.reduce((sum, { theirs }) => sum + theirs.games, 0) || 1;
  const own = moves.reduce((sum, { yours }) => sum + yours.games, 0) || 1;
  const isRare = (/** @type {PreparedMove} */ { theirs, yours, answer }) => !answer && (isOwn ? yours.games / own < 2 * RARE && theirs.games < ENOUGH : theirs.games / all < RARE);
  const rare = moves.findIndex((move, index) => index >= SHOWN || isRare(move));
  const end = isUnfolded || rare < 0 || moves.length - rare < 2 ? moves.length : rare;
  const rest = moves.slice(end);
  const head = isOwn ? [preparer ? "Plays" : "You play", "Opening", "Their games", `${you} score${s}`, "Answer"] : ["They play", "Opening", "Games", `${you} score${s}`, "Answer"];
  const kinds = ["san", "name", "his", "mine", "act"];
  const heads = head.map((label, index) => div({ role: "columnheader", class: kinds[index] }, label));
  const rows = moves.slice(0, end).map((move, index) => row(move, index, { preparer, color, isOwn, all, recentSince, play }));
  const games = rest.reduce((sum, { theirs, yours }) => sum + (isOwn ? yours : theirs).games, 0);
  const more = rest.length ? [button({ class: "more", "aria-expanded": "false", "data-focus": "more" }, [icon("down"), counted(rest.length, "more move"), span("quiet", ` · ${counted(games)}`)], unfold)] : [];
  const label = isOwn ? "Moves to play, their results and yours" : "Their moves, your results and answers";
  return moves.length
    ? div("card moves prep", div({ role: "table", "aria-label": label }, div({ role: "rowgroup", class: "head" }, div({ role: "row", class: "row" }, ...heads)), div({ role: "rowgroup", class: "body" }, ...rows)), ...more)
    : p("card none", `None of ${isOwn ? your : "their"} games continues from this position. `, ...(isOwn && here.theirs ? [button({ class: "small", "data-focus": "their-games" }, [`Explore their ${counted(here.theirs)} here`, icon("forward")], leave)] : []));
}

/**
 * @param {PreparedMove} move
 * @param {number} index
 * @param {{ preparer: string, color: Color, isOwn: boolean, all: number, recentSince: number | null, play: (uci: string) => void }} context
 */
function row(move, index, { preparer, color, isOwn, all, recentSince, play }) {
  const { s, yours: whose } = wordsFor(preparer);
  const { uci, san, opening, theirs, yours, answer, gap, lineEnd } = move;
  const other = color === "white" ? "black" : "white";
  const cell = (/** @type {string} */ kind, /** @type {Child[]} */ ...content) => div({ role: "cell", class: kind }, ...content);
  const share = isOwn ? scoreText(theirs, other) : percent(theirs.games / all);
  const shown = isOwn && theirs.games ? `score ${share}` : isOwn ? "" : share;
  const recent = isOwn ? "" : recentSince ? `${number(theirs.recent)} since ${recentSince}` : "";
  const his = cell("his", span("", number(theirs.games)), span("quiet", shown), small(recent));
  his.style.setProperty("--share", `${((100 * theirs.games) / all).toFixed(1)}%`);
  const { wins, games } = scored(yours, color);
  const draws = yours.draws + (yours.unfinished ?? 0);
  const results = { ...yours, draws, wins, losses: games - wins - yours.draws };
  const mine = yours.games
    ? cell(`mine${isWeak(yours, move) ? " weaker" : ""}`, bar(results, true, undefined), b(yours.games < FEW ? "" : scoreText(yours, color)), small(counted(yours.games)))
    : cell("mine", small("no game"));
  const dots = color === "black" && !isOwn ? "…" : "";
  const isMarked = answer?.source === "repertoire";
  const title = isMarked ? "In the repertoire" : `Played in ${counted(answer?.games ?? 0)} of ${whose}`;
  const tag = answer && !isMarked ? make("small", { title }, ...(isOwn ? ["most played"] : [span("unbroken", `${dots}${answer.san}`), " usual"])) : answer ? span({ class: "tag", title }, ...(isOwn ? [icon("mark"), preparer ? "" : "yours"] : [`${dots}${answer.san}`])) : "";
  const state = gap ? span("tag gap", "Gap") : lineEnd ? make("small", "", "line ends") : isOwn || answer ? "" : make("small", "", yours.games ? "no usual answer" : "no answer");
  const words = isOwn ? "" : `${answer ? `; ${isMarked ? "" : "usual "}answer ${answer.san}` : "; no answer"}${gap ? ", a gap" : ""}`;
  const label = `${san}, ${isOwn ? `they score ${share} in ${number(theirs.games)}` : `${counted(theirs.games)}, ${share}`}; ${yours.games ? `${preparer || "you"} score${s} ${scoreText(yours, color)} in ${number(yours.games)}` : `no game of ${whose}`}${words}`;
  const press = button({ "aria-label": label, tabindex: index ? -1 : 0, "data-focus": `move ${uci}` }, [san], () => play(uci));
  const element = div({ role: "row", class: "row", "data-uci": uci }, div({ role: "rowheader", class: "san" }, press), cell("name", opening?.name ?? ""), his, mine, cell("act", tag, state));
  on(element, "click", (event) => {
    if (!(event.target instanceof Element && event.target.closest("button"))) play(uci);
  });
  return element;
}

/**
 * Returns the list of the lines to study first.
 * @param {Preparation} prepared
 * @param {string} preparer As for `wordsFor`.
 * @param {Color} color The user's color.
 * @param {number} first The number of the first half-move.
 * @param {(line: string[]) => void} open
 * @param {() => void} download Downloads the lines as PGN.
 * @param {() => void} start Goes to the starting position, which alone has lines.
 * @param {(halfLife: string) => void} weigh Chooses the half-life of games, or an empty string for games of equal weight.
 */
export function preparationLines(prepared, preparer, color, first, open, download, start, weigh) {
  const { you, s, yours } = wordsFor(preparer);
  const { lines, lineEnds = [], weakLines, halfLife } = prepared;
  if (!lines) return p("quiet", button({ class: "small", "data-focus": "prepare-start" }, [icon("first"), "Lines to look at first: at the start"], start));
  if (!lines.length && !lineEnds.length) return "";
  const item = (/** @type {PreparedLine} */ line) => {
    const words = line.san.map((san, index) => ((first + index) % 2 === 0 || index === 0 ? `${plyNumber(first + index)} ${san}` : san));
    const cut = words.length < 5 ? 0 : words.length - 1;
    const games = 1 / line.chance;
    const often = `1 game in ${number(games < 9.5 ? Number(games.toFixed(1)) : Math.round(games))}`;
    const { theirs, opening } = line;
    const recent = prepared.recentSince ? `, ${number(theirs.recent)} since ${prepared.recentSince}` : "";
    const evidence = `${opening ? `${opening.name} · ` : ""}${counted(theirs.games)} of theirs${recent}`;
    const isScored = line.answer && !line.gap && !line.lineEnd;
    const expected = line.expectedScore === null ? "" : `, expected ${Math.round(line.expectedScore)}%`;
    const score = isScored ? `${you} score${s} ${scoreText(line, color)}` : line.gap ? "No answer yet" : line.lineEnd ? "Line ends" : "No usual answer";
    return make("li", "", button({ "data-focus": `line ${line.play.join()}` }, [
      span("", ...(cut ? [span("quiet", ...unbroken(words.slice(0, cut).join(" ")), " ")] : []), b(...unbroken(words.slice(cut).join(" "))), small(evidence)),
      span("often", often),
      span(line.lineEnd ? "yours" : !isScored ? "yours gap" : line.loss ? "yours weaker" : "yours", score, " ", small(isScored ? `in ${counted(line.games)}${expected}` : line.games ? `${counted(line.games)} of ${yours}${line.gap || line.lineEnd ? "" : `, no move played ${USUAL} times`}` : `no game of ${yours}`)),
      icon("forward"),
    ], () => open(line.play)));
  };
  const file = button({ class: "small", "data-focus": "lines-pgn" }, [icon("save"), "Download PGN"], download);
  return div("card look", div("top", make("h3", "", "Look at these first"), ...(lines.length ? [file] : [])), p("quiet", "First likely lines without an answer, then lines that cost points, then others without an answer. All orders of moves count"),
    segments({ "aria-label": "Weight of games" }, [["", "All games"], [HALF_LIFE, "Recent games more", small(`half after ${halfLife ?? HALF_LIFE} years`)]], halfLife ? HALF_LIFE : "", weigh), make("ul", "", ...lines.map(item)),
    ...(weakLines?.judged ? [p("quiet", `Lines that cost points: ${weakLines.listed} of ${weakLines.judged} with at least ${ENOUGH} games. Chance alone would list about ${weakLines.byChance.toFixed(1)}`)] : []),
    ...(lineEnds.length ? [p("quiet", "After the ends of lines of the repertoire"), make("ul", "", ...lineEnds.map(item))] : []));
}
