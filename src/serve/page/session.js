// @ts-check
// The session: what the server offers, which view is requested, and which view is shown. Other modules read and change it.

import { readView } from "./state.js";

/** @typedef {import("./api.js").About} About */
/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./api.js").Preparation} Preparation */
/** @typedef {import("./api.js").Repertoire} Repertoire */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */
/** @typedef {import("./state.js").View} View */
/**
 * @typedef {object} Session
 * @property {About} about A description of the server's games, books and repertoires.
 * @property {View} view The requested view. The page may not show it yet; the next change is applied to it.
 * @property {View | undefined} shown The view that the page shows.
 * @property {Answer | undefined} answer The counts of the position that the page shows.
 * @property {Repertoire | undefined} report The report of the chosen repertoire about this position.
 * @property {Preparation | undefined} prepared The opponent's moves next to the user's results, if the view is a preparation.
 * @property {string} unprepared The reason why the server refuses the preparation, or an empty string.
 * @property {WrittenMove[]} known The longest line that the user visited, or the line of the open game. Going forward replays the
 *   moves after the position that is shown.
 * @property {string} knownStart The variant and the starting position of `known`.
 * @property {OpenGame | undefined} opened The open game.
 * @property {Answer | undefined} lastShared If the shown position is reached only by the open game: the counts of the
 *   last position that other games share with it. The table and the list of games then show this position.
 * @property {number} ahead The number of moves that the user requested after the end of the line. They are played when the
 *   answers arrive, which say which moves are played most.
 * @property {boolean} timed Whether the table contains the mean times of the moves, for which the server must read games.
 * @property {{ key: string, white: number, black: number }} colors The number of the player's games with each color, and the
 *   query that they belong to.
 */

export const session = /** @type {Session} */ ({
  about: { version: "", games: 0, years: null, sources: [], books: [] },
  view: readView(location.search),
  shown: undefined,
  answer: undefined,
  report: undefined,
  prepared: undefined,
  unprepared: "",
  known: [],
  knownStart: "",
  opened: undefined,
  lastShared: undefined,
  ahead: 0,
  timed: false,
  colors: { key: "", white: 0, black: 0 },
});

/** Returns the chosen source, or undefined if none is chosen. */
export function chosenSource() {
  return session.about.sources.find(({ name }) => name === session.view.filters.source);
}

/** Returns the sources that answer queries: the chosen one, or all. */
function queriedSources() {
  const chosen = chosenSource();
  return chosen ? [chosen] : session.about.sources;
}

/**
 * Returns the number of games in the chosen source or in all sources. Returns null if it is unknown, because a source of counts
 * does not contain it.
 */
export function sourceGames() {
  const { games } = chosenSource() ?? session.about;
  return games === null ? null : games - uncountedGames();
}

/** Returns the number of games in the chosen source or in all sources that were not indexed, because they were rejected or filtered out. */
export function uncountedGames() {
  return (chosenSource() ?? session.about).notCounted ?? 0;
}

/** Returns true if one of the queried sources contains counts instead of games. */
export function hasCounts() {
  return queriedSources().some((source) => source.counts);
}

/** Returns true if none of the queried sources contains games. */
export function hasOnlyCounts() {
  return queriedSources().every((source) => source.counts);
}

/** Returns true if the sources contain games of several variants. */
export function hasVariants() {
  return Object.keys(session.about.variants ?? {}).length > 1;
}

/** Returns the variant of all sources, or an empty string if it is standard chess or the sources differ. */
export function servedVariant() {
  const [first = "", ...others] = new Set(session.about.sources.map(({ variant }) => variant));
  return others.length || ["normal", "fischerandom", "auto"].includes(first) ? "" : first;
}

/**
 * Returns true if Black is at the bottom of the board. If the user turned the board, this choice applies. Otherwise, the side of
 * the filter's player is at the bottom (in a preparation, the side of the user). Without a player, Black is at the bottom if all
 * repertoires are for Black.
 * @param {boolean} isPreparing Whether the view is a preparation.
 */
export function blackBelow(isPreparing = Boolean(session.prepared)) {
  const { about, view } = session;
  const { flip, filters } = view;
  if (flip || filters.player) return flip ? flip === "1" : filters.color === (isPreparing ? "white" : "black");
  return Boolean(about.repertoires?.length) && !about.repertoires?.some(({ color }) => color === "white");
}
