// @ts-check
// The details of a position: the list of games, the openings and the trends. They are requested after the counts.

import { ask, words } from "./api.js";
import { byId, fill, p } from "./dom.js";
import { drawn, sum } from "./format.js";
import { GamesList } from "./games.js";
import { changeShown } from "./history.js";
import { go, jump, listOpening, listResult } from "./navigation.js";
import { OpeningsTable, areSimilar } from "./openings.js";
import { drawViews, table, trendsAreBelow } from "./panelview.js";
import { showGaps } from "./repertoireview.js";
import { comeBack, leaveForGame } from "./returning.js";
import { hasCounts, hasOnlyCounts, session } from "./session.js";
import { otherPreparer, preparingNames } from "./me.js";
import { joined, put, question, ucis } from "./state.js";
import { showSpark, showTrends } from "./trends.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").AnyYear} AnyYear */
/** @typedef {import("./api.js").Openings} Openings */
/** @typedef {import("./api.js").RatingScore} RatingScore */
/** @typedef {import("./api.js").Year} Year */

const games = new GamesList(
  byId("games"),
  byId("games-head"),
  (id) => {
    leaveForGame(id, session.view.play);
    void go({ game: id }, { push: true, opens: true });
  },
  (sort) => changeShown({ sort }),
  listResult,
);
export const openings = new OpeningsTable(byId("openings"), {
  open: (line, opening, count) =>
    jump({}, async (signal) => {
      const { view } = session;
      const filters = { ...view.filters, opening };
      const parameters = put(question({ ...view, filters, play: line }), { moves: 0, topGames: 0, recentGames: 0, legal: 0 });
      // If the request fails, the position reports the error.
      const reaching = await ask("lichess", parameters, signal).then(sum, () => count);
      if (!areSimilar(reaching, count)) return { filters, tab: "" };
      if (!signal.aborted) session.known = [];
      return { play: line, tab: "" };
    }),
  filter: (opening) => jump({ filters: { ...session.view.filters, opening }, tab: "" }),
  list: listOpening,
  sorted: (order) => changeShown({ order }),
});

/**
 * Returns the number of games in the counts of a position that have the result `result`. Returns undefined if it is unknown, as that of a
 * player's wins while a game is open.
 * @param {Answer} counts
 * @param {string} result
 */
function gamesWith(counts, result) {
  const { white, black, wins, losses } = counts;
  return /** @type {Record<string, number | undefined>} */ ({ "1-0": white, "0-1": black, "1/2-1/2": drawn(counts), win: wins, draw: drawn(counts), loss: losses })[result];
}

/**
 * Requests the openings of the games of a view, if it shows them. Counting them takes the server longer than the counts of the position,
 * so `show` requests both at once.
 * @param {import("./state.js").View} view
 * @param {AbortSignal} signal
 * @returns {Promise<Openings | Error> | undefined} Resolves to an error if the request fails.
 */
export function requestOpenings(view, signal) {
  if (view.tab !== "openings" || view.game || hasOnlyCounts()) return undefined;
  return ask("openings", put(question(view), { fold: "variation" }), signal).catch((error) => error);
}

/**
 * Requests and shows the details of a position.
 * @param {Answer} counts
 * @param {Promise<Openings | Error> | undefined} requested The openings, if the view shows them.
 * @param {AbortSignal} signal
 */
export async function showDetails(counts, requested, signal) {
  const { view, opened, lastShared } = session;
  const tabled = lastShared ?? counts;
  const sans = new Map(tabled.polybook.legal.map(({ uci, san }) => [uci, san]));
  const of = question({ ...view, play: ucis(tabled.polybook.line) });
  const { player = "", result: filtered } = view.filters;
  const hasGames = !hasOnlyCounts();
  const result = filtered ? "" : view.list;
  const list = result ? put(new URLSearchParams(of), { result }) : of;
  const counted = hasCounts() ? undefined : result ? gamesWith(tabled, result) : sum(tabled);
  if (session.prepared) return showPreparedGames("theirs", sans);
  const listed = games.show({ question: list, hasGames, sans, player, whose: undefined, open: view.game, sort: view.sort, result, choosesResult: !filtered && (!opened || result !== ""), counted }).then(() => {
    if (!signal.aborted && !session.opened) comeBack(table.buttons()[0]);
  });
  const gaps = showGaps(signal).then(() => {
    if (!signal.aborted) drawViews();
  });
  if (requested) showOpenings(await requested, signal);
  if (!opened) await trends(of, sans, signal);
  await Promise.all([listed, gaps]);
}

/**
 * Lists the games of the position in a preparation.
 * @param {string} whose "theirs" or "yours".
 * @param {Map<string, string>} sans
 * @returns {Promise<void>}
 */
function showPreparedGames(whose, sans) {
  const { prepared, view } = session;
  if (!prepared || prepared.lines) return Promise.resolve();
  const { player = "", color, ...others } = view.filters;
  const isTheirs = whose === "theirs";
  const names = isTheirs ? player : joined(preparingNames());
  const filters = { ...others, player: names, color: (color === "white") === isTheirs ? "white" : "black" };
  const choose = (/** @type {string} */ chosen) => void showPreparedGames(chosen, sans);
  return games.show({
    question: question({ ...view, filters }), hasGames: true, sans, player: names, open: "", sort: view.sort, result: "", choosesResult: false,
    counted: undefined, whose: { chosen: whose, preparer: otherPreparer(), theirs: prepared.here.theirs, yours: prepared.here.yours, choose },
  });
}

/**
 * @param {Openings | Error} found
 * @param {AbortSignal} signal
 */
function showOpenings(found, signal) {
  if (signal.aborted) return;
  if (found instanceof Error) fill(byId("openings"), p("problem", words(found)));
  // If no game passes the filters, `explain` says why in place of the openings.
  else if (found.games) openings.show(found, Boolean(session.view.filters.player), session.view.order);
}

/**
 * Shows the small chart of the years, and the trends if they are visible.
 * @param {URLSearchParams} of
 * @param {Map<string, string>} sans
 * @param {AbortSignal} signal
 */
async function trends(of, sans, signal) {
  const where = (/** @type {Record<string, string | number>} */ values) => put(new URLSearchParams(of), values);
  const byYear = where({ history: "moves", moves: 8, topGames: 0, recentGames: 0 });
  const isShown = trendsAreBelow() || session.view.tab === "trends";
  try {
    const [{ history: all }, { scores }] = await Promise.all([
      /** @type {Promise<{ history: AnyYear[] }>} */ (ask("lichess", byYear, signal)),
      isShown ? /** @type {Promise<{ scores: RatingScore[] }>} */ (ask("scores", where({ by: "rating" }), signal)) : { scores: [] },
    ]);
    if (signal.aborted) return;
    const years = /** @type {Year[]} */ (all.filter(({ year }) => year !== null));
    showSpark(byId("heading").querySelector(".spark"), years);
    if (isShown) showTrends(byId("trends"), years, scores, sans);
  } catch (error) {
    if (!signal.aborted && isShown) fill(byId("trends"), p("problem", words(error)));
  }
}
