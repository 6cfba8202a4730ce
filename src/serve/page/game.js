// @ts-check
// The open game: its heading, its moves with comments and evaluations, and a chart of the evaluations.

import { askFile } from "./api.js";
import { b, button, warn, copy, div, fill, icon, make, on, p, save, span } from "./dom.js";
import { counted, dateWords, eventWords, number, plyNumber, splitName } from "./format.js";
import { firstPly, reveal } from "./line.js";
import { path, svg } from "./pieces.js";

/** @typedef {import("./api.js").Evaluation} Evaluation */
/** @typedef {import("./api.js").GameMove} GameMove */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./dom.js").Child} Child */

/** The signs of numeric annotation glyphs (NAGs), with a class for those that mark mistakes. */
const GLYPHS = /** @type {Record<number, [string, string]>} */ ({
  1: ["!", ""],
  2: ["?", "mistake"],
  3: ["!!", ""],
  4: ["??", "blunder"],
  5: ["!?", ""],
  6: ["?!", "inaccuracy"],
  7: ["□", ""],
  10: ["=", ""],
  13: ["∞", ""],
  14: ["⩲", ""],
  15: ["⩱", ""],
  16: ["±", ""],
  17: ["∓", ""],
  18: ["+−", ""],
  19: ["−+", ""],
  146: ["N", ""],
});

/**
 * Shows the heading of a game.
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {() => void} close
 */
export function showGameHeading(place, game, close) {
  const { family, variation } = splitName(game.opening?.name ?? `${game.white.name || "?"} – ${game.black.name || "?"}`);
  const tag = (/** @type {string} */ name) => game.tags.find(([known]) => known === name)?.[1] ?? "";
  const time = readableTime(tag("TimeControl"));
  const round = game.round && `round ${game.round}`;
  const { name, address } = eventWords(game.event);
  const event = address ? make("a", { href: address, target: "_blank", rel: "noreferrer" }, name) : name;
  const facts = [event, round, time, dateWords(game.date)].filter(Boolean).flatMap((fact, index) => (index ? [" · ", fact] : [fact]));
  const eco = game.opening?.eco ?? game.eco;
  const pgn = () => askFile(`game/${encodeURIComponent(game.id)}`);
  const copied = () => copy(pgn().then((file) => file.text()), "PGN");
  const saved = () => pgn().then((file) => save(file, `${game.id}.pgn`), warn);
  const actions = [
    button({ class: "small", "data-focus": "copy-pgn" }, [icon("copy"), "Copy PGN"], () => void copied()),
    button({ class: "small icon-only", title: "Save the PGN" }, [icon("save")], () => void saved()),
    ...lichessLink(game.site ?? ""),
    button({ class: "small", id: "close-game", title: "Close the game (Esc)" }, [icon("close"), span("caption", "Back to the games")], close),
  ];
  place.className = "heading of-game";
  fill(
    place,
    div("what",
      make("h2", { title: game.opening?.name }, ...(eco ? [span("eco", eco)] : []), span("family", family), span("variation", variation)),
      p({ class: "quiet", title: game.event ?? undefined }, .../** @type {Child[]} */ (facts)),
    ),
    div("actions", ...actions),
  );
}

/**
 * Returns a link to the game on Lichess if the game is from there, otherwise nothing.
 * @param {string} site
 */
function lichessLink(site) {
  if (!/^https?:\/\/lichess\.org\//.test(site)) return [];
  return [make("a", { class: "button small", href: site, target: "_blank", rel: "noreferrer" }, icon("open"), "Lichess")];
}

/**
 * Returns the time control "300+3" as "5+3".
 * @param {string} control
 */
function readableTime(control) {
  const [, base, increment] = /^(\d+)\+(\d+)$/.exec(control) ?? [];
  return base ? `${Number(base) / 60}+${increment}` : "";
}

/**
 * Returns the length of the longest beginning of `play` that leads to a position which other games reach, too. Returns the length
 * of `play` if its moves are not those of the open game.
 * @param {OpenGame} game
 * @param {string[]} play
 */
export function sharedPlies({ moves, reached }, play) {
  let ply = play.length;
  if (play.some((uci, index) => moves[index]?.uci !== uci)) return ply;
  while (ply && reached[ply - 1] === 1) ply -= 1;
  return ply;
}

/**
 * Says at which position the open game left all other games, with a button that goes to this position.
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {number} ply
 * @param {(ply: number) => void} go
 */
export function showLastShared(place, game, ply, go) {
  const games = (game.reached[ply - 1] ?? 0) - 1;
  const move = game.moves[ply - 1];
  const where = move ? `${plyNumber(firstPly(game.start ?? "") + ply - 1)} ${move.san}` : "Start";
  const texts = div("", make("h3", "", games > 0 ? `Last shared with ${counted(games)}` : "No other game played this line"), p("quiet", `Moves ${move ? `after ${where}` : "at the start"}:`));
  fill(place, div("banner", texts, button({ class: "small plain", title: `Go to the position ${move ? `after ${where}` : "at the start"}`, "data-focus": "last-shared" }, [icon("back"), where], () => go(ply))));
}

/**
 * Shows the list of the moves.
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {number | null} known The number of games in the sources, if known.
 * @param {(ply: number) => void} go
 */
export function showGameMoves(place, game, known, go) {
  const first = firstPly(game.start ?? "");
  const list = make("ol");
  const note = (/** @type {string} */ text, kind = "note") => list.append(make("li", { class: kind }, text));
  for (const text of game.comments ?? []) note(text);
  const fresh = game.novelty ?? -1;
  /** @type {HTMLElement | undefined} */
  let row;
  game.moves.forEach((move, index) => {
    const ply = first + index;
    const isWhite = ply % 2 === 0;
    if (isWhite || !row) {
      row = make("li", "pair", span("ply", Math.floor(ply / 2) + 1));
      if (!isWhite) row.append(span("quiet", "…"));
      list.append(row);
    }
    row.append(moveButton(move, index, go));
    const texts = [...(move.comments ?? [])];
    const [before, after] = [index ? game.moves[index - 1]?.eval : undefined, move.eval];
    const mistake = mistakeOf(move);
    if (mistake && mistake !== "inaccuracy" && before && after) texts.push(`${mistake.charAt(0).toUpperCase()}${mistake.slice(1)}: from ${evaluationWords(before)} to ${evaluationWords(after)}`);
    if (index === fresh) texts.push(`${plyNumber(ply)} ${move.san} is new: no other game ${known === null ? "" : `of ${number(known)} `}reached this position.`);
    for (const text of texts) note(text);
    // After a comment, the next move begins a new row.
    if (texts.length) row = undefined;
  });
  if (game.problem) note(`The rest of the game cannot be played: ${game.problem}`, "note problem");
  const words = /** @type {Record<string, string>} */ ({ "1-0": "White won", "0-1": "Black won", "1/2-1/2": "Draw" })[game.result];
  list.append(make("li", "result", game.result.replaceAll("1/2", "½").replace("-", "–"), ...(words ? [span("quiet", ` ${words}`)] : [])));
  fill(place, list);
}

/**
 * Returns "inaccuracy", "mistake" or "blunder" if a move is annotated as one.
 * @param {GameMove} move
 */
function mistakeOf({ nags = [] }) {
  return nags.map((nag) => GLYPHS[nag]?.[1]).find(Boolean);
}

/**
 * @param {GameMove} move
 * @param {number} index
 * @param {(ply: number) => void} go
 */
function moveButton(move, index, go) {
  const glyphs = (move.nags ?? []).map((nag) => GLYPHS[nag]).filter((glyph) => glyph !== undefined);
  const signs = glyphs.map(([sign]) => sign).join("");
  const value = move.eval ? [span("value", evaluationWords(move.eval))] : [];
  return button({ "data-ply": index + 1 }, [span({ class: mistakeOf(move) }, move.san + signs), ...value], () => go(index + 1));
}

/**
 * Marks the move that leads to the position, and scrolls the list to it.
 * @param {HTMLElement} place
 * @param {number} ply
 * @param {boolean} isNew Whether the game was just opened. Then its heading is in sight, and only the list may scroll.
 */
export function markMove(place, ply, isNew) {
  place.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const current = place.querySelector(`[data-ply="${ply}"]`);
  current?.setAttribute("aria-current", "step");
  const list = place.querySelector("ol");
  if (!list) return;
  if (list.scrollHeight <= list.clientHeight + 1) {
    // The list itself does not scroll, but the column or the window does.
    if (current && ply && !isNew) current.scrollIntoView({ block: "nearest" });
  } else if (current) reveal(list, current);
  else list.scrollTop = 0;
}

/**
 * @param {Evaluation} evaluation
 * @param {number} [digits] The number of digits after the decimal point.
 */
export function evaluationWords(evaluation, digits = 1) {
  if ("mate" in evaluation) return `${evaluation.mate < 0 ? "−" : ""}#${Math.abs(evaluation.mate)}`;
  const pawns = (Math.abs(evaluation.cp) / 100).toFixed(digits);
  return Number(pawns) ? `${evaluation.cp < 0 ? "−" : "+"}${pawns}` : pawns;
}

/** The size of the chart of the evaluations, in units of its view box. */
const [WIDTH, HEIGHT] = [1000, 100];

/**
 * Shows the chart of the evaluations, which is also a slider over the moves.
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {(ply: number) => void} go
 */
export function showEvaluations(place, game, go) {
  const values = game.moves.map(({ eval: value }) => value);
  place.hidden = !values.some(Boolean);
  if (place.hidden) return;
  const x = (/** @type {number} */ ply) => (WIDTH * ply) / Math.max(1, values.length);
  let last = HEIGHT / 2;
  const points = values.map((value, index) => {
    if (value) last = height(value);
    return `${x(index + 1).toFixed(1)} ${last.toFixed(1)}`;
  });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  picture.append(
    path("blacks", `M0 0H${WIDTH}V${HEIGHT}H0z`),
    path("whites", `M0 ${HEIGHT}V${HEIGHT / 2}L${points.join("L")}V${HEIGHT}z`),
    path("middle", `M0 ${HEIGHT / 2}H${WIDTH}`),
  );
  const dots = game.moves.flatMap((move, index) => {
    const kind = mistakeOf(move);
    const value = values[index];
    if (!kind || !value) return [];
    const dot = span(`dot ${kind}`);
    dot.style.left = `${x(index + 1) / 10}%`;
    dot.style.top = `${height(value)}%`;
    return [dot];
  });
  const slider = make("input", { type: "range", min: 0, max: values.length, "aria-label": "Move of the game" });
  on(slider, "input", () => go(Number(slider.value)));
  fill(
    place,
    make("h3", "", "Evaluation"),
    p("quiet at"),
    div("chart-field", picture, ...dots, span("cursor"), slider),
  );
}

/**
 * Returns the height of an evaluation in the chart, measured from the top.
 * @param {Evaluation} evaluation
 */
function height(evaluation) {
  const pawns = "mate" in evaluation ? Math.sign(evaluation.mate || 1) * 10 : evaluation.cp / 100;
  return HEIGHT / 2 - (HEIGHT / 2) * Math.tanh(pawns / 4) * 0.94;
}

/**
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {number} ply
 */
export function markEvaluation(place, game, ply) {
  const slider = place.querySelector("input");
  if (place.hidden || !slider) return;
  slider.value = String(ply);
  const move = game.moves[ply - 1];
  const value = move?.eval ? evaluationWords(move.eval) : "";
  const text = move ? `after ${plyNumber(firstPly(game.start ?? "") + ply - 1)} ${move.san}` : "before the first move";
  slider.setAttribute("aria-valuetext", `${text} ${value}`);
  place.querySelector(".at")?.replaceChildren(`From the game's comments · ${text} `, b(value));
  const cursor = place.querySelector(".cursor");
  if (cursor instanceof HTMLElement) cursor.style.left = `${(100 * ply) / Math.max(1, game.moves.length)}%`;
}
