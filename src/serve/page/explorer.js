// @ts-check
// The page: joins the board, the table, the lists and the filters to the address and the server.

import { ask, byId, gameCount, games, make, percent } from "./api.js";
import "./board.js";
import { buildFilters, command, showFilters } from "./filters.js";
import { Games, showOpenGame } from "./games.js";
import { showLine } from "./line.js";
import { showMoves } from "./moves.js";
import { squares } from "./squares.js";
import { address, beginsWith, question, readView } from "./state.js";

/** @typedef {import("./api.js").About} About */
/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").Moves} Moves */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */
/** @typedef {import("./board.js").ChessBoard} ChessBoard */
/** @typedef {import("./state.js").View} View */

/** How many moves get an arrow at most. */
const MOST_ARROWS = 8;

const board = /** @type {ChessBoard} */ (byId("board"));
const table = /** @type {HTMLTableElement} */ (byId("moves"));
const form = /** @type {HTMLFormElement} */ (byId("filters"));
const help = /** @type {HTMLDialogElement} */ (byId("help"));
const lists = new Games(byId("games"), (id) => go({ game: id }));

/** @type {View} */
let view = readView(location.search);
/** @type {About} */
let about = { version: "", games: 0, positions: 0, years: null, sources: [], books: [] };
/** @type {Answer | undefined} */
let answer;
/**
 * The longest line that was visited, or that of the open game: going forward replays the moves
 * after the position that is shown.
 * @type {WrittenMove[]}
 */
let known = [];
/** The variant and the position that `known` begins with. */
let knownStart = "";
/** @type {OpenGame | undefined} */
let opened;
let asking = new AbortController();

/**
 * Goes to another view and remembers it in the address.
 * @param {Partial<View>} change
 */
function go(change) {
  view = { ...view, ...change };
  history.pushState(null, "", address(view));
  return show();
}

/** Shows what the address says. */
async function show() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  document.body.setAttribute("aria-busy", "true");
  try {
    await openGame(signal);
    const wanted = question(view);
    const [counts, books] = await Promise.all([
      /** @type {Promise<Answer>} */ (ask("lichess", withLimits(wanted), signal)),
      about.books.length ? ask("book", question(view, false), signal) : { books: [] },
    ]);
    if (signal.aborted) return;
    answer = counts;
    draw(answer, /** @type {{ books: Book[] }} */ (books).books, wanted);
    complain("");
  } catch (error) {
    if (signal.aborted) return;
    complain(error instanceof Error ? error.message : String(error));
    // The board goes back to the position that is shown.
    if (answer) drawBoard(answer);
  }
  document.body.removeAttribute("aria-busy");
}

/** @param {URLSearchParams} wanted */
function withLimits(wanted) {
  const limited = new URLSearchParams(wanted);
  limited.set("moves", "100");
  limited.set("topGames", "4");
  limited.set("recentGames", "8");
  limited.set("transpositions", "true");
  return limited;
}

/**
 * Fetches the game that the address names, if it is not the one that is open.
 * @param {AbortSignal} signal
 */
async function openGame(signal) {
  const place = byId("open-game");
  if (!view.game) {
    opened = undefined;
    place.hidden = true;
    return;
  }
  if (opened?.id === view.game) return;
  const game = /** @type {OpenGame} */ (await ask(`game/${encodeURIComponent(view.game)}`, undefined, signal));
  if (signal.aborted) return;
  opened = { ...game, id: view.game };
  const fen = game.start ?? "";
  const line = game.moves.map(({ uci }) => uci);
  if (view.fen !== fen || !beginsWith(line, view.play)) {
    // The game is another's: it is shown from its start.
    const variant = game.variant === "normal" ? "" : game.variant;
    view = { ...view, fen, play: [], variant };
    history.replaceState(null, "", address(view));
  }
  known = game.moves;
  showOpenGame(place, opened, () => go({ game: "" }), say);
}

/**
 * @param {Answer} counts
 * @param {Book[]} books
 * @param {URLSearchParams} wanted
 */
function draw(counts, books, wanted) {
  const line = counts.polybook.line;
  const moves = line.map(({ uci }) => uci);
  // The server's spelling of castling is the one that is compared.
  view.play = moves;
  const ahead = known.map(({ uci }) => uci);
  const start = `${view.variant} ${view.fen}`;
  if (start !== knownStart || !beginsWith(ahead, moves)) known = opened && beginsWith(opened.moves.map(({ uci }) => uci), moves) ? opened.moves : line;
  knownStart = start;
  drawBoard(counts);
  showMoves(table, counts, books, { play, point }, Object.keys(view.filters).length > 0);
  showLine(byId("line"), known, line.length, view.fen, (ply) => go({ play: known.slice(0, ply).map(({ uci }) => uci) }));
  lists.show(counts, wanted);
  showFilters(form, view.filters);
  drawCommand();
  const name = counts.opening ? `${counts.opening.eco} ${counts.opening.name}` : line.length || view.fen ? "Unnamed position" : "Starting position";
  byId("opening").textContent = name;
  const last = line.at(-1)?.san ?? "";
  const total = games(counts);
  const share = (/** @type {number} */ part) => percent(total ? part / total : 0);
  const results = total ? `: White ${share(counts.white)}, draws ${share(counts.draws)}, Black ${share(counts.black)}` : "";
  say(`${last} ${name}. ${gameCount(total)}${results}.`);
  document.title = last ? `${line.map(({ san }) => san).slice(-4).join(" ")} · polybook` : "polybook: opening explorer";
}

/** @param {Answer} counts */
function drawBoard(counts) {
  const { fen, check, legal, line } = counts.polybook;
  const last = line.at(-1);
  const { from, to } = last ? squares(last) : { from: "", to: "" };
  board.flipped = view.flip;
  board.position = { fen, check, legal, last: last && `${from}${to}` };
  point("");
}

/**
 * Draws the arrows of the most played moves, and that of one row of the table.
 * @param {string} uci
 */
function point(uci) {
  if (!answer) return;
  const total = games(answer);
  const often = answer.moves.slice(0, MOST_ARROWS).filter((move) => games(move) >= 0.02 * total);
  const arrows = often.map((move) => ({ uci: move.uci, share: games(move) / total, strong: move.uci === uci }));
  const chosen = answer.moves.find((move) => move.uci === uci);
  if (uci && !arrows.some((arrow) => arrow.uci === uci)) {
    arrows.push({ uci, share: chosen && total ? games(chosen) / total : 0, strong: true });
  }
  board.arrows = arrows;
}

/** @param {string} uci */
function play(uci) {
  go({ play: [...view.play, uci] });
}

/** @param {string} where */
function walk(where) {
  const moves = known.map(({ uci }) => uci);
  const ply = view.play.length;
  if (where === "flip") {
    view.flip = !view.flip;
    history.replaceState(null, "", address(view));
    board.flipped = view.flip;
    return;
  }
  const target = { first: 0, back: ply - 1, forward: ply + 1, last: moves.length }[where] ?? ply;
  if (target !== ply && target >= 0 && target <= moves.length) go({ play: moves.slice(0, target) });
}

function drawCommand() {
  const { command: text, notes } = command(view.filters, about);
  byId("command").textContent = text;
  byId("not-in-command").textContent = notes.join(" ");
}

/**
 * Announces a text to screen readers.
 * @param {string} text
 */
function say(text) {
  byId("said").textContent = text;
}

/** @param {string} text */
function complain(text) {
  const place = byId("problem");
  place.hidden = !text;
  place.textContent = text;
}

/**
 * Reads what was pasted, and goes there.
 * @param {string} text
 */
async function paste(text) {
  const parameters = new URLSearchParams({ text });
  if (view.variant) parameters.set("variant", view.variant);
  try {
    const read = /** @type {Moves} */ (await ask("read", parameters));
    if (read.problem && !read.moves.length) throw new Error(read.problem);
    await go({ fen: read.start ?? "", play: read.moves.map(({ uci }) => uci), game: "" });
    if (read.problem) complain(`Stopped before ${read.problem}`);
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    complain("The browser allows copying only from HTTPS or localhost.");
  }
}

/**
 * Moves the focus in the table.
 * @param {number} step
 */
function chooseRow(step) {
  const buttons = [...table.querySelectorAll("button")];
  const at = buttons.findIndex((button) => button === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : buttons.length - 1) : at + step;
  buttons[Math.max(0, Math.min(next, buttons.length - 1))]?.focus();
}

const KEYS = /** @type {Record<string, () => void>} */ ({
  ArrowLeft: () => walk("back"),
  ArrowRight: () => walk("forward"),
  ArrowUp: () => chooseRow(-1),
  ArrowDown: () => chooseRow(1),
  Home: () => walk("first"),
  End: () => walk("last"),
  f: () => walk("flip"),
  "?": () => help.showModal(),
  "/": () => /** @type {HTMLInputElement | null} */ (form.elements.namedItem("player"))?.focus(),
  Escape: () => view.game && go({ game: "" }),
});

document.addEventListener("keydown", (event) => {
  const target = event.target;
  const types = target instanceof HTMLElement && target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || types || help.open) return;
  const key = KEYS[event.key];
  if (!key) return;
  event.preventDefault();
  key();
});

board.addEventListener("play", (event) => play(/** @type {CustomEvent<string>} */ (event).detail));
for (const button of document.querySelectorAll("[data-go]")) {
  button.addEventListener("click", () => walk(button.getAttribute("data-go") ?? ""));
}
byId("home").addEventListener("click", (event) => {
  event.preventDefault();
  known = [];
  go({ fen: "", play: [], game: "", variant: servedVariant(), filters: {} });
});
byId("help-button").addEventListener("click", () => help.showModal());
byId("paste").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = /** @type {HTMLInputElement} */ (byId("paste").querySelector("input"));
  const text = field.value;
  field.value = "";
  void paste(text);
});
byId("copy-fen").addEventListener("click", () => void copy(answer?.polybook.fen ?? ""));
byId("copy-command").addEventListener("click", () => void copy(byId("command").textContent ?? ""));
window.addEventListener("popstate", () => {
  view = addressed();
  void show();
});

/** The variant of all sources, empty if it is standard chess or they differ. */
function servedVariant() {
  const [first = "", ...others] = new Set(about.sources.map(({ variant }) => variant));
  return others.length || ["normal", "fischerandom", "auto"].includes(first) ? "" : first;
}

/** The view of the address, which need not name the variant of all sources. */
function addressed() {
  const addressed = readView(location.search);
  return { ...addressed, variant: addressed.variant || servedVariant() };
}

/** Asks once which games and books are served, and then shows the address. */
async function start() {
  try {
    about = /** @type {About} */ (await ask("about"));
  } catch (error) {
    complain(String(error));
  }
  const years = about.years ? `, ${about.years.join("–")}` : "";
  byId("about").replaceChildren(
    make("strong", {}, about.sources.map(({ name }) => name).join(", ")),
    ` ${gameCount(about.games)}${years}`,
  );
  view = addressed();
  buildFilters(form, about, (filters) => void go({ filters }), complain);
  await show();
}

void start();
