// @ts-check
// Explains why a position has no games, and offers ways to continue.

import { ask, suggestions, words } from "./api.js";
import { VARIANTS, filterWords } from "./chips.js";
import { byId, div, fill, p } from "./dom.js";
import { changeFilters, clearFilters, go, removeFilters } from "./navigation.js";
import { countGames } from "./requests.js";
import { session } from "./session.js";
import { filterQuestion, nameText, namesIn, narrowing, question, sourceOnly, ucis, withoutFilters } from "./state.js";
import { noGames, noName } from "./states.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Facets} Facets */

/**
 * Shows why the position has no games, in place of the table of moves, and of the openings or the gaps if the view shows them.
 * @param {Answer} counts
 * @param {AbortSignal} signal
 */
export async function explain(counts, signal) {
  const { view, opened } = session;
  const place = byId(["openings", "gaps"].includes(view.tab) ? view.tab : "moves");
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
      const names = namesIn(value);
      const found = (await Promise.all(names.map((one) => suggestions(kind, one, filters.source, 5, signal)))).flat();
      // One of several names of a player may be missing.
      if (found.some((one) => names.some((wanted) => one.name.toLowerCase() === wanted.toLowerCase()))) continue;
      const choose = (/** @type {string} */ chosen) => changeFilters({ ...filters, [name]: chosen });
      if (!signal.aborted) fill(place, noName(kind, nameText(value), found, choose, () => removeFilters([name])));
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
    const elsewhere = line.length ? 0 : (counts.polybook.otherStarts ?? facets?.variants?.[variant] ?? 0);
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
  const { view } = session;
  const several = filterWords(view.filters, "");
  if (several.length < 2) return undefined;
  const counts = await Promise.all(
    several.map(async ({ text, names }) => {
      const games = await countGames(question({ ...view, filters: withoutFilters(view.filters, names) }), signal).catch(() => 0);
      return { text, names, games };
    }),
  );
  const most = counts.reduce((one, other) => (other.games > one.games ? other : one));
  return most.games ? most : undefined;
}
