// @ts-check
// The page. It connects the board, the table, the lists and the filters to the address and the server.

import { Asking, Refused, Unreachable, ask, suggestions, words } from "./api.js";
import { bar } from "./bars.js";
import "./board.js";
import { VARIANTS, filterWords, showChips } from "./chips.js";
import { b, button, byId, copy, div, fill, icon, make, on, p, segments, span, toast } from "./dom.js";
import { FiltersDialog } from "./filters.js";
import { counted, number, plyNumber, sum } from "./format.js";
import { markEvaluation, markMove, sharedPlies, showEvaluations, showGameHeading, showGameMoves, showLastShared } from "./game.js";
import { GamesList } from "./games.js";
import { positionName, resultWords, showOpening, showPlayer } from "./heading.js";
import { listen } from "./keys.js";
import { firstPly, showLine } from "./line.js";
import { BookDialog } from "./makebook.js";
import { MovesTable } from "./moves.js";
import { OpeningsTable } from "./openings.js";
import { largestGap, repertoireLines } from "./repertoire.js";
import { close, comeBack, leaveForGame } from "./returning.js";
import { buildSearch, fenProblem } from "./search.js";
import { squares } from "./squares.js";
import { address, analysis, blackBelow, commonPlies, filterQuestion, narrowing, put, question, readView, ucis } from "./state.js";
import { Notice, noGames, noName, reading } from "./states.js";
import { gameStrip, plainStrip, playerStrip, positionStrip } from "./strips.js";
import { showSpark, showTrends } from "./trends.js";
import { chosenView, showViews } from "./views.js";

/** @typedef {import("./api.js").About} About */
/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").AnyYear} AnyYear */
/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").Facets} Facets */
/** @typedef {import("./api.js").Moves} Moves */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./api.js").RatingScore} RatingScore */
/** @typedef {import("./api.js").Repertoire} Repertoire */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */
/** @typedef {import("./api.js").Year} Year */
/** @typedef {import("./board.js").ChessBoard} ChessBoard */
/** @typedef {import("./state.js").Filters} Filters */
/** @typedef {import("./state.js").View} View */
/**
 * Options for showing a view.
 * @typedef {object} How
 * @property {boolean} [push] Whether the view becomes a new entry of the browser's history.
 * @property {boolean} [opens] Whether a game is opened at the position that is shown.
 * @property {boolean} [keeps] Whether the message on the page stays.
 */

/** The maximum number of moves with an arrow. */
const MOST_ARROWS = 4;
/** The smallest share of games for which a move has an arrow. */
const LEAST_SHARE = 0.02;
/** The time in milliseconds for which the previous numbers are shown as if they were current. */
const STALE = 150;
/** The interval in milliseconds at which the progress of an index is requested. */
const READING = 1000;
const START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

const board = /** @type {ChessBoard} */ (byId("board"));
const input = /** @type {HTMLInputElement} */ (byId("search").querySelector("input"));
const menu = /** @type {HTMLDialogElement} */ (byId("more"));
const table = new MovesTable(byId("moves"));
const lists = new GamesList(
  byId("games"),
  byId("games-head"),
  (id) => {
    leaveForGame();
    void go({ game: id }, { push: true, opens: true });
  },
  (sort) => note({ sort }),
  listResult,
);
const openings = new OpeningsTable(byId("openings"), {
  open: (line) => {
    known = [];
    void go({ play: line, tab: "" }, { push: true });
  },
  list: (opening, result) => void go({ filters: { ...view.filters, opening }, tab: "", list: result }, { push: true }),
});
const notice = new Notice(byId("notice"));
const widest = matchMedia("(min-width: 1680px)");

/** @type {About} */
let about = { version: "", games: 0, years: null, sources: [], books: [] };
/** The requested view. It may not be shown yet; the next change is applied to it. */
let view = readView(location.search);
/** @type {View | undefined} */
let shown;
/** @type {Answer | undefined} */
let answer;
/** @type {Repertoire[]} */
let repertoires = [];
/**
 * The longest line that the user visited, or the line of the open game. Going forward replays the moves after the
 * position that is shown.
 * @type {WrittenMove[]}
 */
let known = [];
/** The variant and the starting position of `known`. */
let knownStart = "";
/** @type {OpenGame | undefined} */
let opened;
/**
 * The counts of the last position that other games share with the open game, if the shown position is after it. Then the table and
 * the list of games stay those of that position.
 * @type {Answer | undefined}
 */
let lastShared;
/** Whether the requested view becomes a new entry of the history, even if another view is requested before it is shown. */
let pushes = false;
/** Whether the address is an older or later entry of the history that is not shown yet. */
let popped = false;
/** The number of moves that the user requested after the end of the line. The next answers determine which moves they are. */
let ahead = 0;
const asking = new Asking();
/** Whether the sources have games of several variants. */
let hasVariants = false;
/** Whether the table contains the mean times of the moves, for which the server must read games. */
let timed = false;
/** @type {{ key: string, white: number, black: number }} */
let colors = { key: "", white: 0, black: 0 };
/** @type {FiltersDialog | undefined} */
let filtersDialog;
/** @type {BookDialog} */
let bookDialog;

/**
 * Goes to another view. The address changes when the view is shown.
 * @param {Partial<View>} change
 * @param {How} [how]
 */
function go(change, how) {
  view = { ...view, ...change };
  ahead = 0;
  return show(how);
}

/**
 * Shows the requested view.
 * @param {How} [how]
 */
async function show({ push = false, opens = false, keeps = false } = {}) {
  pushes ||= push;
  const signal = asking.next();
  document.body.setAttribute("aria-busy", "true");
  const stale = setTimeout(() => byId("panel").classList.add("stale"), STALE);
  try {
    const wrong = view.fen && fenProblem(view.fen);
    if (wrong) throw new Refused(wrong, 400);
    const game = await openGame(opens, signal);
    const isPlayer = Boolean(view.filters.player) && !view.game;
    const sharedPlay = game && !narrowing(view.filters).length ? view.play.slice(0, sharedPlies(game, view.play)) : view.play;
    const isAlone = sharedPlay.length < view.play.length;
    const isKnown = lastShared && game === opened && ucis(lastShared.polybook.line).join() === sharedPlay.join();
    const [counts, shared, books, known] = await Promise.all([
      count(view, isPlayer, signal),
      !isAlone ? undefined : isKnown ? lastShared : count({ ...view, play: sharedPlay }, isPlayer, signal),
      about.books.length ? ask("book", question({ ...view, filters: {} }), signal) : { books: [] },
      about.repertoires?.length ? ask("repertoire", question(view), signal) : { repertoires: [] },
      isPlayer ? countColors(signal) : undefined,
    ]);
    if (signal.aborted) return;
    opened = game;
    lastShared = shared;
    // Use the server's spelling of castling, because moves are compared as texts.
    view = { ...view, play: ucis(counts.polybook.line) };
    remember();
    answer = counts;
    repertoires = /** @type {{ repertoires: Repertoire[] }} */ (known).repertoires;
    if (!keeps) notice.clear();
    draw(counts, /** @type {{ books: Book[] }} */ (books).books);
    if (ahead) {
      const rest = counts.moves.length ? ahead - 1 : 0;
      walk("forward");
      ahead = rest;
    }
    if (!signal.aborted) void follow(counts, signal);
  } catch (error) {
    if (!signal.aborted) await fail(error);
  } finally {
    clearTimeout(stale);
    if (asking.signal === signal) {
      byId("panel").classList.remove("stale");
      document.body.removeAttribute("aria-busy");
    }
  }
}

/** Writes the requested view into the address. */
function remember() {
  const target = address(view);
  if (pushes && shown && target !== address(shown)) history.pushState(null, "", target);
  else history.replaceState(null, "", target);
  pushes = popped = false;
  shown = view;
}

/**
 * Requests the counts of a position: those of all games, or those of the player.
 * @param {View} of
 * @param {boolean} isPlayer
 * @param {AbortSignal} signal
 * @returns {Promise<Answer>}
 */
async function count(of, isPlayer, signal) {
  const parameters = put(question(of), { moves: 100, recentGames: 0, transpositions: "true" });
  if (!isPlayer) put(parameters, { topGames: 0 });
  else if (!of.filters.color) put(parameters, { color: "both" });
  const route = isPlayer ? "player" : "lichess";
  try {
    if (timed) return await ask(route, put(new URLSearchParams(parameters), { clocks: "true" }), signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // For example, the games are compressed. Counts do not need their texts.
    timed = false;
    toast(words(error));
  }
  return ask(route, parameters, signal);
}

/**
 * Requests the number of games, without their moves.
 * @param {URLSearchParams} parameters
 * @param {AbortSignal} signal
 */
async function countGames(parameters, signal) {
  const all = put(new URLSearchParams(parameters), { moves: 0, topGames: 0, recentGames: 0 });
  return sum(/** @type {Answer} */ (await ask("lichess", all, signal)));
}

/**
 * Requests the number of games that the player has with each color.
 * @param {AbortSignal} signal
 */
async function countColors(signal) {
  const parameters = filterQuestion(view);
  parameters.delete("color");
  const key = parameters.toString();
  if (colors.key === key) return;
  const facets = /** @type {Facets} */ (await ask("facets", parameters, signal));
  colors = { key, white: 0, black: 0, ...facets.colors };
}

/**
 * Requests the game that the view names, unless it is already open.
 * @param {boolean} opens
 * @param {AbortSignal} signal
 */
async function openGame(opens, signal) {
  const wanted = view;
  if (!wanted.game) return;
  if (!/^[\w-]+$/.test(wanted.game)) throw new Refused(`“${wanted.game}” is not the id of a game`, 404);
  if (opened?.id === wanted.game && !opens && wanted.filters.source === shown?.filters.source) return opened;
  const parameters = question({ ...wanted, filters: sourceOnly(wanted.filters) });
  const game = { .../** @type {OpenGame} */ (await ask(`game/${encodeURIComponent(wanted.game)}`, parameters, signal)), id: wanted.game };
  if (signal.aborted) return game;
  const line = ucis(game.moves);
  const start = game.start ?? "";
  const isOther = wanted.fen !== start;
  if (isOther || (opens && commonPlies(wanted.play, line) < wanted.play.length)) {
    // The game reaches the position by another move order, or starts from another position.
    view = { ...wanted, fen: start, play: line.slice(0, game.ply ?? 0), variant: game.variant === "normal" ? "" : game.variant };
  }
  return game;
}

/**
 * Draws the contents of an answer.
 * @param {Answer} counts
 * @param {Book[]} books
 */
function draw(counts, books) {
  const { line, minGame, maxPly } = counts.polybook;
  const { filters } = view;
  const gameLine = opened?.moves ?? [];
  const common = commonPlies(view.play, ucis(gameLine));
  const isInGame = !!opened && common === view.play.length;
  const start = `${view.variant} ${view.fen}`;
  if (isInGame) known = gameLine;
  else if (start !== knownStart || commonPlies(view.play, ucis(known)) < view.play.length) known = line;
  knownStart = start;
  const tabled = lastShared ?? counts;
  const tabledPlay = lastShared ? ucis(lastShared.polybook.line) : view.play;
  const total = sum(counts);
  const ofPlayer = Boolean(filters.player) && !opened && total > 0;
  const isCounts = asked().some((source) => source.counts);
  document.body.classList.toggle("of-counts", isCounts);
  input.placeholder = isCounts ? "Opening, FEN or moves" : innerWidth < 560 ? "Player, opening, FEN…" : "Player, event, opening, FEN or moves";
  document.body.classList.toggle("in-game", !!opened);
  const isStart = !line.length && !view.fen;
  drawBoard(counts);
  drawHeading(counts, ofPlayer, isStart);
  showLine(byId("line"), known, line.length, view.fen, goToPly);
  drawGame(counts, common, isInGame);
  fill(byId("repertoires"), ...repertoireLines(repertoires, counts, filterQuestion(view), (text) => void goToText(text)));
  const isEmpty = !sum(tabled) && ![...books, ...repertoires].some(({ moves }) => moves.length);
  const pruned = minGame ? p("none", `Positions with fewer than ${minGame} counted moves were left out.`) : "";
  const ended = isEmpty && maxPly ? p("none", `Counts end at move ${(maxPly + 1) >> 1}.`) : "";
  fill(byId("results"), isEmpty || ofPlayer ? "" : bar(tabled, false, opened ? undefined : listOfResult(), !opened), pruned, ended);
  if (isEmpty) void explain(counts, asking.signal);
  else {
    const gameMove = isInGame ? (gameLine[tabledPlay.length]?.uci ?? "") : "";
    const playFrom = (/** @type {string} */ uci) => void go({ play: [...tabledPlay, uci] });
    // The board shows another position than the table.
    const pointAt = lastShared ? () => undefined : point;
    const list = opened || !listOfResult() ? undefined : (/** @type {string} */ result, /** @type {string} */ uci) => listResult(result, uci);
    table.show(tabled, { books, repertoires, ofPlayer, gameMove, play: playFrom, point: pointAt, list });
  }
  drawTally(total, isStart);
  drawSources();
  drawViews();
  showChips(byId("chips"), filters, view.variant, { hasGames: !isCounts, hasVariants }, { edit: openFilters, remove: removeFilters, clear: clearFilters });
  const last = line.at(-1)?.san;
  say(`${last ? `${last}. ` : ""}${positionName(counts, isStart)}, ${resultWords(counts, ofPlayer)}`);
  const names = opened ? `${opened.white.name} – ${opened.black.name}` : (filters.player ?? "");
  document.title = [last && line.map(({ san }) => san).slice(-4).join(" "), names, "polybook"].filter(Boolean).join(" · ");
}

/** @param {Answer} counts */
function drawBoard(counts) {
  const { fen, check, legal, line } = counts.polybook;
  const last = line.at(-1);
  const { from, to } = last ? squares(last) : { from: "", to: "" };
  board.flipped = blackBelow(view);
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".analysis"))) link.href = analysis(view, fen);
  board.position = { fen, check, legal, last: last && `${from}${to}` };
  point("");
  drawStrips();
  const atEnd = view.play.length === known.length;
  const isOver = atEnd && (!!opened || !counts.moves.length);
  for (const [act, isOff] of /** @type {[string, boolean][]} */ ([["first", !view.play.length], ["back", !view.play.length], ["forward", isOver], ["last", atEnd]])) {
    // A disabled button would lose the focus.
    for (const other of document.querySelectorAll(`[data-act=${act}]`)) other.setAttribute("aria-disabled", String(isOff));
  }
}

function drawStrips() {
  const counts = answer;
  const strip = (/** @type {"white" | "black"} */ color) => {
    if (!counts) return plainStrip(color);
    if (opened) return gameStrip(opened, color, commonPlies(view.play, ucis(opened.moves)));
    const { player, color: side = "both" } = view.filters;
    return player ? playerStrip(counts, color, player, side) : positionStrip(counts, color);
  };
  const isTurned = blackBelow(view);
  fill(byId("strip-top"), ...strip(isTurned ? "white" : "black"));
  fill(byId("strip-bottom"), ...strip(isTurned ? "black" : "white"));
}

/**
 * @param {Answer} counts
 * @param {boolean} ofPlayer
 * @param {boolean} isStart
 */
function drawHeading(counts, ofPlayer, isStart) {
  const place = byId("heading");
  const { player, color = "" } = view.filters;
  if (opened) {
    if (drawnGame !== opened) showGameHeading(place, opened, closeGame);
  } else if (ofPlayer && player) {
    showPlayer(place, counts, player, color, colors, isStart, (chosen) => changeFilters({ ...view.filters, color: chosen }), listOfResult());
  } else showOpening(place, counts, isStart);
}

/** Whether only the open game reached the position that was shown before. */
let wasAlone = false;
/** The game whose heading, moves and evaluations are on the page. */
let drawnGame = /** @type {OpenGame | undefined} */ (undefined);

/**
 * @param {Answer} counts
 * @param {number} common The number of moves that the line shares with the game.
 * @param {boolean} isInGame
 */
function drawGame(counts, common, isInGame) {
  const [moves, evaluations, left, others] = [byId("game-moves"), byId("evaluations"), byId("left-game"), byId("others")];
  const game = opened;
  moves.hidden = !game;
  others.hidden = !game;
  fill(left);
  const isNew = game !== drawnGame;
  if (isNew) {
    evaluations.hidden = true;
    if (game) {
      showGameMoves(moves, game, sourceGames(), goInGame);
      showEvaluations(evaluations, game, goInGame);
    }
  }
  drawnGame = game;
  if (!game) return;
  const isFiltered = narrowing(view.filters).length > 0;
  const reached = isInGame && common && !isFiltered ? game.reached[common - 1] : undefined;
  // If filters are set, it is unknown whether the counts include the open game.
  const came = reached ? counted(reached - 1, "other game") : counted(sum(counts));
  if (lastShared) showLastShared(others, game, lastShared.polybook.line.length, goInGame);
  else fill(others, make("h3", "", `${came}${isFiltered ? " with these filters" : ""} reached this position`));
  markMove(moves, common, isNew);
  markEvaluation(evaluations, game, common);
  if (lastShared && !wasAlone) say("Only this game from here");
  wasAlone = !!lastShared;
  if (isInGame) return;
  const at = common ? b(`${plyNumber(firstPly(game.start ?? "") + common - 1)}${game.moves[common - 1]?.san ?? ""}`) : "the start";
  const back = button("small main", [icon("back"), "Back to the game", make("kbd", "", "Esc")], backToGame);
  fill(left, div("banner", icon("info"), p("", "You left the game after ", at, "."), back));
}

/**
 * Explains why there are no games to show, and offers ways to continue.
 * @param {Answer} counts
 * @param {AbortSignal} signal
 */
async function explain(counts, signal) {
  const place = byId("moves");
  const { filters, play: line, variant } = view;
  const isFiltered = !!narrowing(filters).length;
  const isOver = !counts.polybook.legal.length;
  const isEnd = !!opened && line.join() === ucis(opened.moves).join();
  const back = () => void go({ play: line.slice(0, -1) });
  if (!place.querySelector(".blank")) fill(place, div("card blank"));
  try {
    for (const name of ["player", "opponent", "event"]) {
      const value = filters[name];
      if (!value || isOver) continue;
      const kind = name === "event" ? name : "player";
      const found = await suggestions(kind, value, filters.source, 5, signal);
      if (found.some((one) => one.name.toLowerCase() === value.toLowerCase())) continue;
      const choose = (/** @type {string} */ chosen) => changeFilters({ ...filters, [name]: chosen });
      if (!signal.aborted) fill(place, noName(kind, value, found, choose, () => removeFilters([name])));
      return;
    }
    const start = filterQuestion(view);
    const [all, unfiltered, before, facets] = await Promise.all([
      isOver ? 0 : countGames(start, signal),
      isFiltered && !isOver ? countGames(question({ ...view, filters: sourceOnly(filters) }), signal) : 0,
      line.length && !isOver ? countGames(question({ ...view, play: line.slice(0, -1) }), signal) : 0,
      !line.length && !view.fen && !isFiltered ? /** @type {Promise<Facets>} */ (ask("facets", start, signal)) : undefined,
    ]);
    if (signal.aborted) return;
    const one = await largestWithout(signal);
    if (signal.aborted) return;
    const elsewhere = facets?.variants?.[variant] ?? 0;
    const variants = VARIANTS.filter(([name]) => !variant && facets?.variants?.[name]).map(([name, label]) => /** @type {[string, string, number]} */ ([name, label, facets?.variants?.[name] ?? 0]));
    const choose = (/** @type {string} */ name) => void go({ variant: name, fen: "", play: [] }, { push: true });
    fill(place, noGames({ all, unfiltered, back: before, one, isFiltered, isOver, isEnd, elsewhere, hasLine: line.length > 0, variants }, { clear: clearFilters, back, remove: removeFilters, variant: choose }));
  } catch (error) {
    if (!signal.aborted) fill(place, p("problem", words(error)));
  }
}

/**
 * Returns the filter whose removal leaves the most games in the position, if there are several filters and a removal leaves games.
 * @param {AbortSignal} signal
 */
async function largestWithout(signal) {
  const { filters } = view;
  const several = filterWords(filters, "");
  if (several.length < 2) return undefined;
  const counts = await Promise.all(
    several.map(async ({ text, names }) => {
      const games = await countGames(question({ ...view, filters: without(filters, names) }), signal).catch(() => 0);
      return { text, names, games };
    }),
  );
  const most = counts.reduce((one, other) => (other.games > one.games ? other : one));
  return most.games ? most : undefined;
}

/** @param {Answer} counts */
function sansOf(counts) {
  return new Map(counts.polybook.legal.map(({ uci, san }) => [uci, san]));
}

/**
 * Requests what may be shown after the counts: the games and the trends.
 * @param {Answer} counts
 * @param {AbortSignal} signal
 */
async function follow(counts, signal) {
  const tabled = lastShared ?? counts;
  const sans = sansOf(tabled);
  const of = question({ ...view, play: ucis(tabled.polybook.line) });
  const { player = "", result: filtered } = view.filters;
  const hasGames = !onlyCounts();
  const result = filtered ? "" : view.list;
  const list = result ? put(new URLSearchParams(of), { result }) : of;
  const counted = asked().some((source) => source.counts) ? undefined : sum(tabled);
  const listed = lists.show({ question: list, hasGames, sans, player, open: view.game, sort: view.sort, result, choosesResult: !filtered && !opened, counted }).then(() => {
    if (!signal.aborted && !opened) comeBack(table.buttons()[0]);
  });
  if (!opened && view.tab === "openings" && hasGames) await showOpenings(of, signal);
  if (!opened) await trends(of, sans, signal);
  await listed;
}

/**
 * @param {URLSearchParams} of
 * @param {AbortSignal} signal
 */
async function showOpenings(of, signal) {
  try {
    const found = /** @type {import("./api.js").Openings} */ (await ask("openings", of, signal));
    if (!signal.aborted) openings.show(found, Boolean(view.filters.player));
  } catch (error) {
    if (!signal.aborted) fill(byId("openings"), p("problem", words(error)));
  }
}

/**
 * @param {URLSearchParams} of
 * @param {Map<string, string>} sans
 * @param {AbortSignal} signal
 */
async function trends(of, sans, signal) {
  const where = (/** @type {Record<string, string | number>} */ values) => put(new URLSearchParams(of), values);
  const byYear = where({ history: "moves", moves: 8, topGames: 0, recentGames: 0 });
  const isShown = showsTrends();
  try {
    const [{ history: all }, ratings] = await Promise.all([
      /** @type {Promise<{ history: AnyYear[] }>} */ (ask("lichess", byYear, signal)),
      isShown ? /** @type {Promise<RatingScore[]>} */ (ask("scores", where({ by: "rating" }), signal)) : [],
    ]);
    if (signal.aborted) return;
    const years = /** @type {Year[]} */ (all.filter(({ year }) => year !== null));
    showSpark(byId("heading").querySelector(".spark"), years);
    if (isShown) showTrends(byId("trends"), years, ratings, sans);
  } catch (error) {
    if (!signal.aborted && isShown) fill(byId("trends"), p("problem", words(error)));
  }
}

/**
 * @param {number} total
 * @param {boolean} isStart
 */
function drawTally(total, isStart) {
  const known = sourceGames();
  const all = known ?? total;
  const isFiltered = narrowing(view.filters).length > 0 || view.variant !== "";
  const years = (source()?.years ?? about.years)?.join("–");
  // Games without moves and games from other positions are not in the table.
  const inTable = all === total ? "" : ` · ${number(total)} in the table`;
  const text = isStart && !isFiltered ? ` games${inTable}${years ? ` · ${years}` : ""}` : `${known === null ? "" : ` of ${number(all)}`} games${isStart ? "" : " here"}`;
  fill(byId("tally"), b(number(isStart && !isFiltered ? all : total)), text);
}

/** Returns the chosen source, or undefined if none is chosen. */
function source() {
  return about.sources.find(({ name }) => name === view.filters.source);
}

/** Returns the sources that answer queries: the chosen one, or all. */
function asked() {
  const one = source();
  return one ? [one] : about.sources;
}

/** Returns the number of games in the chosen source or in all sources, or null if counts do not say it. */
function sourceGames() {
  return (source() ?? about).games;
}

/** Returns true if the trends are below the moves: in the widest windows, and in place of the games of counts. */
function trendsAreBelow() {
  return widest.matches || onlyCounts();
}

/** Returns true if none of the sources contains games. */
function onlyCounts() {
  return asked().every((source) => source.counts);
}

function showsTrends() {
  return trendsAreBelow() || view.tab === "trends";
}

function drawViews() {
  const has = { trends: !trendsAreBelow(), openings: !onlyCounts() };
  document.body.classList.toggle("with-trends", !has.trends);
  document.body.classList.toggle("without-games", onlyCounts());
  showViews(byId("views"), chosenView(view.tab, has), has, (tab) => void go({ tab }, { push: true }));
}

/** Returns the function that lists the games of the position with a result, unless a filter already chooses a result. */
function listOfResult() {
  return view.filters.result || onlyCounts() ? undefined : (/** @type {string} */ result) => listResult(result);
}

/**
 * Lists the games with a result. The counts stay those of all results.
 * @param {string} result
 * @param {string} [uci] The move to play first.
 */
function listResult(result, uci) {
  void go({ list: result, tab: "", ...(uci && { play: [...view.play, uci] }) }).then(() => result && byId("side").scrollIntoView({ block: "nearest" }));
}

/** Shows the games, and focuses the first one. */
async function goToGames() {
  if (view.tab) await go({ tab: "" }, { push: true });
  byId("side").scrollIntoView();
  const first = byId("games").querySelector(".game");
  if (first instanceof HTMLElement) first.focus({ preventScroll: true });
}

/**
 * Draws arrows for the most played moves, and for the move of the row that the user points at.
 * @param {string} uci
 */
function point(uci) {
  if (!answer) return;
  const total = sum(answer) || 1;
  const often = answer.moves.filter((move) => sum(move) >= LEAST_SHARE * total).slice(0, MOST_ARROWS);
  const gap = largestGap(repertoires);
  const arrow = (/** @type {string} */ uci, /** @type {number} */ share, full = false) => ({ uci, share, full, isGap: uci === gap });
  const arrows = often.map((move) => arrow(move.uci, sum(move) / total));
  if (gap && !arrows.some((one) => one.isGap)) arrows.splice(MOST_ARROWS - 1, 1, arrow(gap, LEAST_SHARE));
  const others = arrows.filter((one) => one.uci !== uci);
  board.arrows = uci ? [arrow(uci, 1, true), ...others].slice(0, MOST_ARROWS) : arrows;
}

/** @param {string} uci */
function play(uci) {
  void go({ play: [...view.play, uci] });
}

/** @param {number} ply */
function goToPly(ply) {
  void go({ play: ucis(known.slice(0, ply)) });
}

/** @param {number} ply */
function goInGame(ply) {
  if (opened) void go({ play: ucis(opened.moves.slice(0, ply)) });
}

function backToGame() {
  if (!opened) return;
  goInGame(commonPlies(view.play, ucis(opened.moves)));
}

function closeGame() {
  close(view.game);
  void go({ game: "" }, { push: true });
}

function leave() {
  if (!opened) return;
  if (byId("left-game").firstChild) backToGame();
  else closeGame();
}

/** @param {string} where */
function walk(where) {
  const ply = view.play.length;
  const target = { first: 0, back: ply - 1, forward: ply + 1, last: known.length }[where] ?? ply;
  const best = answer?.moves[0];
  if (where === "back" && ahead) ahead -= 1;
  else if (target < 0 || target === ply) return;
  else if (target <= known.length) goToPly(target);
  // After the end of the line, play the most played move.
  else if (opened || !shown) return;
  else if (view.play.length !== shown.play.length) ahead += 1;
  else if (best) play(best.uci);
}

/**
 * Changes a part of the view that does not affect the counts, and writes it into the address.
 * @param {Partial<View>} change
 */
function note(change) {
  view = { ...view, ...change };
  if (shown) shown = { ...shown, ...change };
  history.replaceState(null, "", address(shown ?? view));
}

function flip() {
  note({ flip: blackBelow(view) ? "0" : "1" });
  board.flipped = blackBelow(view);
  drawStrips();
}

/** @param {string} [field] */
function openFilters(field = "") {
  // The dialog does not exist while the index is being made.
  filtersDialog?.open(view, field);
}

/** @param {Filters} filters */
function changeFilters(filters) {
  void go({ list: "", filters: Object.fromEntries(Object.entries(filters).filter(([, value]) => value)) }, { push: true });
}

/**
 * Returns the filters without some of them.
 * @param {Filters} all
 * @param {string[]} names
 */
function without(all, names) {
  /** @type {Filters} */
  const filters = Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)));
  // A win or a loss refers to the player.
  if (!filters.player && /win|loss|^draw$/.test(filters.result ?? "")) delete filters.result;
  return filters;
}

/** @param {string[]} names */
function removeFilters(names) {
  const filters = without(view.filters, names);
  const isVariant = names.includes("variant");
  void go({ list: "", filters, ...(isVariant && { variant: "", fen: "", play: [] }) }, { push: true });
}

function clearFilters() {
  void go({ list: "", filters: sourceOnly(view.filters), ...(view.variant && { variant: "", fen: "", play: [] }) }, { push: true });
}

/**
 * @param {Filters} filters
 * @returns {Filters}
 */
function sourceOnly({ source }) {
  return source ? { source } : {};
}

/** @param {string} text */
function say(text) {
  byId("said").textContent = text;
}

/**
 * Reports an error. The page continues to show what it showed before.
 * @param {unknown} error
 */
async function fail(error) {
  pushes = false;
  ahead = 0;
  if (error instanceof Unreachable) {
    stay();
    notice.stopped(() => void start());
    return;
  }
  if (error instanceof Refused && error.status === 503) {
    const now = await ask("about").catch(() => undefined);
    if (/** @type {About | undefined} */ (now)?.indexing) {
      await start();
      return;
    }
    stay();
    notice.show("This cannot be shown:", `${error.message}.`, ["Retry", () => void showAddressed()]);
    return;
  }
  const { fen } = view;
  const problem = words(error).replace(/^FEN "[^"]*": | in \S+\/.*/, "");
  if (shown) {
    stay();
    notice.show(fen && fen !== shown.fen ? "Not a position:" : "This cannot be shown:", `${problem}. The board stays as it was.`, undefined);
    return;
  }
  // The address is wrong. Show the part of it that is valid.
  const [title, change] = view.game
    ? ["This game cannot be shown:", { game: "" }]
    : fen
      ? ["Not a position:", { fen: "", play: [] }]
      : view.play.length
        ? ["This line cannot be played:", { play: [] }]
        : ["A filter cannot be read:", { filters: {}, variant: "" }];
  const readable = /** @type {View} */ ({ ...view, ...change });
  notice.show(/** @type {string} */ (title), `${problem}.${fen ? " This is the starting position." : ""}`, fen ? ["Edit", () => edit(fen)] : undefined);
  if (address(readable) !== address(view)) await go(readable, { keeps: true });
}

/** Goes back to the view that is shown. */
function stay() {
  if (!shown || !answer) return;
  view = shown;
  // Keep the history entry that the user went back to; the next view becomes a new entry.
  pushes = popped;
  if (!popped) history.replaceState(null, "", address(shown));
  drawBoard(answer);
}

/**
 * Puts a text into the search field, so that the user can correct it.
 * @param {string} text
 */
function edit(text) {
  input.value = text.replaceAll("_", " ");
  input.focus();
}

/** @param {Moves} read */
async function goToRead(read) {
  const variant = read.variant === "normal" ? view.variant : read.variant;
  const play = ucis(read.moves);
  known = [];
  await go({ variant, fen: read.start ?? "", play, game: "" }, { push: true });
  if (read.problem) notice.show("Some of it was not read.", `The line stops before ${read.problem}.`, undefined, "warn");
}

/**
 * Goes to a line of moves that the server sent.
 * @param {string} text
 */
async function goToText(text) {
  const parameters = put(new URLSearchParams(), { text, ...(view.variant && { variant: view.variant }) });
  await ask("read", parameters).then((read) => goToRead(/** @type {Moves} */ (read)), fail);
}

/** Draws the switch between sources, in the header and in the menu of small screens. */
function drawSources() {
  const { source = "" } = view.filters;
  const choose = (/** @type {string} */ name) => {
    menu.close();
    changeFilters({ ...view.filters, source: name });
  };
  const names = about.sources.map(({ name }) => name);
  const options = /** @type {[string, string][]} */ ([["", "All"], ...names.map((name) => [name, name])]);
  const labeled = { "aria-label": "Source", "data-focus": "source" };
  for (const place of [byId("sources"), byId("more-sources")]) {
    if (names.length < 2) fill(place, span({ class: "quiet", title: "The source" }, names[0] ?? ""));
    else if (names.length < 4) fill(place, segments(labeled, options, source, choose));
    else {
      const select = make("select", labeled, ...options.map(([value, label]) => make("option", { value }, label)));
      select.value = source;
      on(select, "change", () => choose(select.value));
      fill(place, select);
    }
  }
}

async function share() {
  if (!widest.matches && typeof navigator.share === "function" && matchMedia("(pointer: coarse)").matches) {
    await navigator.share({ url: location.href, title: document.title }).catch(() => undefined);
  } else await copy(location.href, "Link");
}

/** @param {"book" | "repertoire"} kind */
async function openBook(kind) {
  const counts = view.play.length || view.fen ? await ask("lichess", put(filterQuestion(view), { moves: 5 })).catch(() => undefined) : answer;
  bookDialog.open(kind, view, /** @type {Answer | undefined} */ (counts));
}

/** Shows the progress of the index until it is complete. */
async function waitForIndex() {
  const names = about.sources.map(({ name }) => name).join(", ");
  const pause = () => new Promise((resolve) => setTimeout(resolve, READING));
  while (about.indexing) {
    board.position = { fen: START, check: false, legal: [] };
    board.arrows = [];
    drawStrips();
    fill(byId("heading"), make("h2", "", span("family", "Starting position")));
    fill(byId("results"));
    fill(byId("moves"), reading(about.indexing, names));
    fill(byId("tally"), "reading the games");
    await pause();
    // The request may fail at the moment when the index becomes ready.
    about = await ask("about").catch(() => pause().then(() => ask("about")));
  }
}

/** Requests the served games and books, and then shows the view of the address. */
async function start() {
  try {
    about = await ask("about");
    if (about.indexing) await waitForIndex();
  } catch (error) {
    await fail(error);
    document.body.removeAttribute("aria-busy");
    return;
  }
  hasVariants = Object.keys(about.variants ?? {}).length > 1;
  const dialog = /** @type {HTMLDialogElement} */ (byId("filters"));
  if (!dialog.open) {
    fill(dialog);
    filtersDialog = new FiltersDialog(dialog, about, ({ filters, variant }) => {
      const isOther = variant !== view.variant;
      void go({ filters, variant, list: "", ...(isOther && { fen: "", play: [], game: "" }) }, { push: true });
    });
  }
  await showAddressed();
}

/** Shows the view of the address. */
function showAddressed() {
  pushes = false;
  return go(addressed());
}

/** Returns the variant of all sources, or an empty string if it is standard chess or the sources differ. */
function servedVariant() {
  const [first = "", ...others] = new Set(about.sources.map(({ variant }) => variant));
  return others.length || ["normal", "fischerandom", "auto"].includes(first) ? "" : first;
}

/** Returns the view of the address. If the address names no variant, uses the variant of all sources. */
function addressed() {
  const found = readView(location.search);
  return { ...found, variant: found.variant || servedVariant() };
}

/** The actions of buttons, except those that move along the line. */
const ACTS = /** @type {Record<string, () => void>} */ ({
  flip,
  fen: () => void copy(answer?.polybook.fen ?? "", "FEN"),
  link: () => void share(),
  book: () => void openBook("book"),
  mark: () => void openBook("repertoire"),
  clock: () => {
    timed = !timed;
    void show();
  },
  filters: () => openFilters(),
  keys: () => openKeys(),
  more: () => menu.showModal(),
});

const openKeys = listen([
  { keys: ["ArrowLeft", "ArrowRight"], does: "go one move back or forward; at the end of the line, play the most played move", act: (key) => walk(key === "ArrowLeft" ? "back" : "forward") },
  { keys: ["Home", "End"], does: "go to the start or the end of the line", act: (key) => walk(key === "Home" ? "first" : "last") },
  { keys: ["ArrowUp", "ArrowDown"], does: "select a move in the table", act: (key) => table.choose(key === "ArrowUp" ? -1 : 1) },
  { keys: ["Enter"], does: "play the selected move" },
  { keys: ["/"], does: "search players, events and openings, or paste a FEN or moves", act: () => input.focus() },
  { keys: ["f"], does: "flip the board", act: flip },
  { keys: ["F"], does: "open the filters", act: () => openFilters() },
  { keys: ["b"], does: "make a book", act: () => void openBook("book") },
  { keys: ["r"], does: "make a repertoire", act: () => void openBook("repertoire") },
  { keys: ["g"], does: "go to the games", act: () => void goToGames() },
  { keys: ["t"], does: "show the mean time of each move, from the clocks in the games", act: () => ACTS.clock?.() },
  { keys: ["c"], does: "copy the link", act: () => void share() },
  { keys: ["?"], does: "open this help", act: () => openKeys() },
  { keys: ["Escape"], does: "go back to the open game, or close it", act: leave },
]);

for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-act], [data-icon]"))) {
  const { act = "", icon: picture = act } = element.dataset;
  element.prepend(icon(picture));
  on(element, "click", () => {
    if (!act || element.getAttribute("aria-disabled") === "true") return;
    menu.close();
    const does = ACTS[act];
    if (does) does();
    else walk(act);
  });
}
// A press outside a dialog closes it.
for (const dialog of document.querySelectorAll("dialog")) {
  on(dialog, "pointerdown", (event) => {
    if (event.target !== dialog) return;
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    const { clientX: x, clientY: y } = event;
    if (x < left || x > right || y < top || y > bottom) dialog.close();
  });
}
on(board, "play", (event) => play(/** @type {CustomEvent<string>} */ (event).detail));
// The wheel does not play new moves: a turn by mistake must not change the line.
board.addEventListener("step", (event) => {
  if (/** @type {CustomEvent<number>} */ (event).detail < 0) walk("back");
  else if (view.play.length < known.length) walk("forward");
});
bookDialog = new BookDialog(/** @type {HTMLDialogElement} */ (byId("book")), () => openFilters());
buildSearch(input, {
  player: (name) => {
    view = { ...view, game: "" };
    changeFilters({ ...view.filters, player: name });
  },
  event: (name) => changeFilters({ ...view.filters, event: name }),
  opening: (moves) => {
    known = [];
    void go({ variant: "", fen: "", play: moves, game: "" }, { push: true });
  },
  position: (read) => void goToRead(read),
  wrong: (problem, text) => notice.show("Not a position:", `${problem}. The board stays as it was.`, ["Edit", () => edit(text)]),
  where: () => ({ variant: view.variant, source: view.filters.source }),
});
on(byId("home"), "click", (event) => {
  event.preventDefault();
  known = [];
  void go({ fen: "", play: [], game: "", variant: servedVariant(), filters: {}, flip: "", sort: "", list: "", tab: "" }, { push: true });
});
addEventListener("popstate", () => {
  popped = true;
  if (shown?.game && !readView(location.search).game) close(shown.game);
  void showAddressed();
});
on(widest, "change", () => answer && void show());

void start();

