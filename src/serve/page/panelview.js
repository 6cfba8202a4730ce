// @ts-check
// The panel next to the board: the heading, the line, the open game, the table of moves, the filters and the number of games.

import { bar } from "./bars.js";
import { drawArrows, drawBoard } from "./boardview.js";
import { showChips } from "./chips.js";
import { addName, openFilters } from "./dialogs.js";
import { b, button, byId, div, fill, icon, make, p, save, segments, segmentsOrMenu, span, warn } from "./dom.js";
import { board, menu, say, searchField, widest } from "./elements.js";
import { explain } from "./explain.js";
import { counted, fileName, number, plyNumber, sum } from "./format.js";
import { markEvaluation, markMove, showEvaluations, showGameHeading, showGameMoves, showLastShared } from "./game.js";
import { positionName, resultWords, showOpening, showPlayer } from "./heading.js";
import { firstPly, showLine } from "./line.js";
import { isMe, myNames, otherPreparer } from "./me.js";
import { addAll, openMe } from "./medialog.js";
import { MovesTable } from "./moves.js";
import { backToGame, changeFilters, clearFilters, closeGame, findOnBoard, go, goInGame, goToPly, jump, listResult, play, removeFilters } from "./navigation.js";
import { preparationHeading, preparationLines, preparationTable } from "./prepare.js";
import { drawRepertoire, latestGaps, repertoireContext } from "./repertoireview.js";
import { chosenSource, hasCounts, hasOnlyCounts, hasVariants, session, sourceGames, uncountedGames } from "./session.js";
import { commonPlies, filterQuestion, joined, nameText, namesIn, narrowing, ucis } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {{ openings: boolean, trends: boolean, gaps: number | string | undefined }} Offered The views that have tabs. The trends have no tab if they are shown below the moves. `gaps` is the number of gaps of the repertoire, an empty text if it is not known yet, or undefined without a repertoire. */

/** The names of the views in the address. The moves have an empty name. */
const VIEWS = /** @type {[string, string][]} */ ([["", "Moves"], ["gaps", "Gaps"], ["openings", "Openings"], ["trends", "Trends"]]);

export const table = new MovesTable(byId("moves"));

/** Whether the previously shown position was reached only by the open game. */
let wasAlone = false;
/** The game whose heading, moves and evaluations are on the page. */
let drawnGame = /** @type {OpenGame | undefined} */ (undefined);
/** The filters of the view that the page shows. */
let drawnFilters = "";
/** The FEN of the position whose rare moves the user has unfolded in a preparation. */
let unfolded = "";
/** The shown tabs and the text of the tag for gaps, as JSON. */
let shownTabs = "";

/**
 * Shows the counts of a position, and everything else that arrived together with them.
 * @param {Answer} counts
 * @param {Book[]} books
 * @param {AbortSignal} signal Ends further requests for this position.
 */
export function draw(counts, books, signal) {
  const { view, opened, lastShared, report } = session;
  const { line, minGame, maxPly } = counts.polybook;
  const { filters } = view;
  const gameLine = opened?.moves ?? [];
  const common = commonPlies(view.play, ucis(gameLine));
  const isInGame = !!opened && common === view.play.length;
  const start = `${view.variant} ${view.fen}`;
  const asked = filterQuestion(view).toString();
  const next = asked === drawnFilters ? undefined : session.known[view.play.length];
  // Perhaps no game that passes the new filters has the undone moves.
  const isUnplayed = next && !counts.moves.some(({ uci }) => uci === next.uci);
  if (isInGame) session.known = gameLine;
  else if (start !== session.knownStart || isUnplayed || commonPlies(view.play, ucis(session.known)) < view.play.length) session.known = line;
  drawnFilters = asked;
  session.knownStart = start;
  const tabled = lastShared ?? counts;
  const tabledPlay = lastShared ? ucis(lastShared.polybook.line) : view.play;
  const total = sum(counts);
  const ofPlayer = Boolean(filters.player) && !opened && total > 0;
  const isCounts = hasCounts();
  document.body.classList.toggle("of-counts", isCounts);
  searchField.placeholder = isCounts ? "Opening, FEN or moves" : innerWidth < 1180 ? "Player, opening, FEN…" : "Player, event, opening, FEN or moves";
  document.body.classList.toggle("in-game", !!opened);
  const isStart = !line.length && !view.fen;
  drawBoard(counts);
  drawHeading(counts, ofPlayer, isStart);
  showLine(byId("line"), session.known, line.length, view.fen, goToPly);
  drawGame(counts, common, isInGame);
  drawRepertoire();
  const isEmpty = !sum(tabled) && ![...books, ...(report ? [report] : [])].some(({ moves }) => moves.length);
  const pruned = minGame ? p("none", `Positions with fewer than ${minGame} counted moves were left out.`) : "";
  const ended = isEmpty && maxPly ? p("none", `${isCounts ? "Counts end" : "The index ends"} at move ${(maxPly + 1) >> 1}: later moves are not indexed.`) : "";
  const others = counts.polybook.otherStarts;
  const elsewhere = others && !(isEmpty && isStart) ? p("none", `${counted(others, "more game")} ${others === 1 ? "begins in another position and counts only in the positions that it reaches" : "begin in another position and count only in the positions that they reach"}. To see one, paste its FEN into the search.`) : "";
  const { clocks } = tabled.polybook;
  const untimed = clocks?.read && !clocks.moves.length ? p("none", `No times: no clock times ([%clk] with a readable TimeControl, or [%emt]) of these moves in ${counted(clocks.read)}.`) : "";
  const unprepared = session.unprepared ? p("problem", `The preparation cannot be shown: ${session.unprepared}.`) : "";
  if (session.prepared) {
    fill(byId("results"));
    drawPreparation(counts);
  } else fill(byId("results"), unprepared, isEmpty || ofPlayer ? "" : bar(tabled, false, opened ? undefined : listOfResult(), !opened), pruned, ended, elsewhere, untimed);
  if (isEmpty && !session.prepared) void explain(counts, signal);
  else if (!session.prepared) {
    const gameMove = isInGame ? (gameLine[tabledPlay.length]?.uci ?? "") : "";
    const playFrom = (/** @type {string} */ uci) => void go({ play: [...tabledPlay, uci] });
    // If `lastShared` is set, the table shows an earlier position than the board, so its moves cannot be drawn on the board.
    const pointAt = lastShared ? () => undefined : drawArrows;
    const list = opened || !listOfResult() ? undefined : (/** @type {string} */ result, /** @type {string} */ uci) => listResult(result, uci);
    const repertoire = lastShared ? undefined : repertoireContext();
    const isMoving = tabled.polybook.fen.split(" ")[1] === filters.color?.[0];
    const own = ofPlayer ? (isMe(filters.player) ? ["You play", "They play"] : ["Move", "Reply"])[Number(!isMoving)] : repertoire?.isOwn ? "You play" : "Move";
    const whose = !ofPlayer || !repertoire ? "" : isMe(filters.player) ? "Your" : `${nameText(filters.player).split(",")[0]}’s`;
    table.show(tabled, { books, repertoire, ofPlayer, side: own ?? "Move", whose, gameMove, play: playFrom, point: pointAt, list });
  }
  drawTally(total, isStart);
  drawSources();
  drawViews();
  showChips(byId("chips"), filters, view.variant, { hasGames: !isCounts, hasVariants: hasVariants(), isMe: isMe(filters.player), preparer: session.prepared && otherPreparer(), fen: isStart ? "" : tabled.polybook.fen }, { edit: openFilters, find: findOnBoard, remove: removeFilters, clear: clearFilters, openMe, leavePreparation });
  const last = line.at(-1)?.san;
  say(`${last ? `${last}. ` : ""}${positionName(counts, isStart)}, ${resultWords(counts, ofPlayer)}`);
  const names = opened ? `${opened.white.name} – ${opened.black.name}` : nameText(filters.player);
  document.title = [last && line.map(({ san }) => san).slice(-4).join(" "), names, "polybook"].filter(Boolean).join(" · ");
}

/**
 * @param {Answer} counts
 * @param {boolean} ofPlayer
 * @param {boolean} isStart
 */
function drawHeading(counts, ofPlayer, isStart) {
  const { opened, view, colors } = session;
  const place = byId("heading");
  const { player, color = "" } = view.filters;
  if (opened) {
    if (drawnGame !== opened) showGameHeading(place, opened, closeGame);
  } else if (session.prepared) {
    place.className = "heading of-player preparing";
    fill(place, ...preparationHeading(session.prepared, nameText(player), furtherName(player ?? ""), otherPreparer(), ownColor(), (chosen) => changeFilters({ ...session.view.filters, color: chosen === "white" ? "black" : "white" })));
  } else if (ofPlayer && player) {
    showPlayer(place, counts, isMe(player) ? (namesIn(player)[0] ?? "") : nameText(player), color, colors, isStart, (chosen) => changeFilters({ ...session.view.filters, color: chosen }), listOfResult(), playerButtons(player));
  } else showOpening(place, counts, isStart);
}

function leavePreparation() {
  void go({ tab: "", flip: "" }, { push: true });
}

/** Returns the color of the user in a preparation. */
function ownColor() {
  return session.view.filters.color === "white" ? "black" : "white";
}

/**
 * Returns the buttons next to a player's name. If the player is the user, the only button opens the dialog with the user's names. For
 * any other player, the first button opens the preparation for this player or, if the user is unknown, makes this player the user. The
 * second button adds a spelling of the player's name.
 * @param {string} player
 */
function playerButtons(player) {
  const names = myNames();
  const attributes = { class: "small mine-button", "data-focus": "mine" };
  if (isMe(player)) return div("mine", button(attributes, [icon("user"), `me${names.length > 1 ? ` · ${names.length} names` : ""}`], openMe));
  const own = names.length
    ? button(attributes, [icon("swords"), "Prepare"], () => void go({ tab: "prepare", me: joined(names), list: "", flip: "" }, { push: true }))
    : button(attributes, [icon("user"), "This is me"], () => void addAll(namesIn(player)).then(() => go({})));
  return div("mine", own, furtherName(player));
}

/**
 * Returns the button that adds a spelling of a player's name. The button opens the filters, in which the user types the name after a slash.
 * @param {string} player
 */
function furtherName(player) {
  const { length } = namesIn(player);
  const label = length > 1 ? `${length} names` : "Add a name";
  return button({ class: "small plain mine-button", "data-focus": "further-name", title: "Further spellings of this player's name", "aria-label": label }, [icon("plus"), span("caption", label)], addName);
}

/**
 * Shows the moves of the preparation for an opponent, and the lines to study first.
 * @param {Answer} counts
 */
function drawPreparation(counts) {
  const { prepared, view } = session;
  if (!prepared) return;
  const { fen } = counts.polybook;
  const isOwn = fen.split(" ")[1] === ownColor()[0];
  const unfold = () => {
    unfolded = fen;
    drawPreparation(counts);
  };
  const preparer = otherPreparer();
  table.replace(drawArrows, preparationTable(prepared, preparer, ownColor(), isOwn, unfolded === fen, { play, unfold, leave: leavePreparation }), preparationLines(prepared, preparer, ownColor(), firstPly(view.fen), (line) => jump({ play: [...view.play, ...line] }), () => {
    const name = fileName(view.filters.player);
    void prepared.file().then((file) => save(file, `prepare-${name || "opponent"}.pgn`), warn);
  }, () => jump({ fen: "", play: [] }), (halfLife) => void go({ halfLife })));
}

/**
 * @param {Answer} counts
 * @param {number} common The number of moves that the line shares with the game.
 * @param {boolean} isInGame
 */
function drawGame(counts, common, isInGame) {
  const { opened: game, lastShared, view } = session;
  const [moves, evaluations, left, others] = [byId("game-moves"), byId("evaluations"), byId("left-game"), byId("others")];
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
 * Shows how many games reached the position.
 * @param {number} total
 * @param {boolean} isStart
 */
function drawTally(total, isStart) {
  const { about, answer, prepared, view } = session;
  if (prepared) {
    const { theirs, yours } = prepared.here;
    fill(byId("tally"), b(number(theirs)), ` game${theirs === 1 ? "" : "s"} of ${nameText(view.filters.player)}, `, b(number(yours)), ` of ${otherPreparer() || "yours"}`, span("wide", ", without duplicates"));
    return;
  }
  const known = sourceGames();
  const all = known ?? total;
  const isFiltered = narrowing(view.filters).length > 0 || view.variant !== "";
  const years = [...new Set(chosenSource()?.years ?? about.years)].join("–");
  // The table lacks games without moves and games that start from other positions. With counts, it also lacks rare moves.
  const without = all - total - (answer?.polybook.otherStarts ?? 0);
  const inTable = all === total ? "" : without > 0 && !hasCounts() && about.variants?.standard === all ? ` · ${number(without)} without moves` : ` · ${number(total)} in the table`;
  // Some games were not indexed, because they could not be read or were filtered out. The page does not count them.
  const left = uncountedGames();
  const leftOut = left === 0 ? "" : ` · ${number(left)} more not counted`;
  const text = isStart && !isFiltered ? ` games${inTable}${leftOut}${years ? ` · ${years}` : ""}` : `${known === null ? "" : ` of ${number(all)}`} games${isStart ? "" : " here"}`;
  fill(byId("tally"), b(number(isStart && !isFiltered ? all : total)), text);
}

/** Shows the tabs of the views. */
export function drawViews() {
  const gaps = session.report ? (latestGaps()?.total ?? "") : undefined;
  const has = { trends: !trendsAreBelow(), openings: !hasOnlyCounts(), gaps };
  const isPreparing = Boolean(session.prepared);
  const tab = chosenView(session.view.tab, has);
  drawThumbnail(session.opened ? "" : isPreparing ? "prepare" : tab);
  document.body.classList.toggle("prepares", isPreparing);
  document.body.classList.toggle("prepares-start", Boolean(session.prepared?.lines));
  document.body.classList.toggle("with-trends", !has.trends && !isPreparing);
  document.body.classList.toggle("without-games", hasOnlyCounts());
  showViews(byId("views"), tab, has, (tab) => void go({ tab }, { push: true }));
}

/**
 * On phones, shrinks the board to a thumbnail in a view that is not about moves. It becomes large again if the user presses it or chooses
 * another view.
 * @param {string} list The name of the view, or an empty string if the board is always whole.
 */
function drawThumbnail(list) {
  const { body } = document;
  if (body.dataset.list === list) return;
  body.dataset.list = list;
  body.classList.toggle("with-thumbnail", list !== "");
}

/** Shows the whole board in place of its thumbnail. */
export function enlargeBoard() {
  document.body.classList.remove("with-thumbnail");
  board.tabIndex = -1;
  board.focus({ preventScroll: true });
}

/** Returns true if the trends are shown below the moves: in very wide windows, and if the sources contain no games to list there. */
export function trendsAreBelow() {
  return widest.matches || hasOnlyCounts();
}

/**
 * Returns a function that lists the games of the position with a given result. Returns undefined if a filter already chooses a
 * result, or if there are no games to list.
 */
function listOfResult() {
  return session.view.filters.result || hasOnlyCounts() ? undefined : (/** @type {string} */ result) => listResult(result);
}

/**
 * Returns the view that the address names. If it is not offered, returns the view of the moves, whose name is empty.
 * @param {string} named
 * @param {Offered} has
 */
function chosenView(named, has) {
  return offered(has).some(([name]) => name === named) ? named : "";
}

/**
 * Shows the tabs, unless there is only one view. Keeps them if they are already shown: if the pressed tab were replaced, the browser would
 * lay out the page twice.
 * @param {HTMLElement} place
 * @param {string} chosen
 * @param {Offered} has
 * @param {(name: string) => void} choose
 */
function showViews(place, chosen, has, choose) {
  const views = offered(has).map(([name, label]) => /** @type {[string, ...Child[]]} */ ([name, label, ...(name === "gaps" && has.gaps ? [span("tag gap", has.gaps)] : [])]));
  document.body.dataset.view = chosen || "moves";
  const tabs = JSON.stringify([offered(has), has.gaps]);
  const radio = place.querySelector("[aria-checked=true]");
  if (tabs === shownTabs && radio instanceof HTMLElement && radio.dataset.value === chosen) return;
  shownTabs = tabs;
  fill(place, ...(views.length > 1 ? [segments({ "aria-label": "View" }, views, chosen, choose)] : []));
}

/** @param {Offered} has */
function offered({ openings, trends, gaps }) {
  return VIEWS.filter(([name]) => (trends || name !== "trends") && (openings || name !== "openings") && (gaps !== undefined || name !== "gaps"));
}

/** Shows the switch between sources, in the header and in the menu of small screens. */
function drawSources() {
  const { source = "" } = session.view.filters;
  const choose = (/** @type {string} */ name) => {
    menu.close();
    changeFilters({ ...session.view.filters, source: name });
  };
  const names = session.about.sources.map(({ name }) => name);
  const options = /** @type {[string, string][]} */ ([["", "All"], ...names.map((name) => [name, name])]);
  const labeled = { "aria-label": "Source", "data-focus": "source" };
  for (const place of [byId("sources"), byId("more-sources")]) {
    if (names.length < 2) fill(place, span({ class: "quiet", title: "The source" }, names[0] ?? ""));
    else fill(place, segmentsOrMenu(labeled, options, source, choose));
  }
}
