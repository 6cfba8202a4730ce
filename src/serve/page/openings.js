// @ts-check
// The view of the openings of the games that reach a position: a table of opening families, whose variations unfold. For a player, it says
// in which openings points are lost, and whether chance alone could explain this.

import { bar } from "./bars.js";
import { button, div, fill, icon, make, on, p, span } from "./dom.js";
import { counted, dateWords, finished, number, splitName, sum } from "./format.js";

/** @typedef {import("./api.js").OpeningRow} OpeningRow */
/** @typedef {import("./api.js").Openings} Openings */
/** @typedef {import("./dom.js").Child} Child */
/**
 * The functions that the table calls when the user presses something in it.
 * @typedef {object} Acts
 * @property {(line: string[], opening: string, games: number) => void} open Shows the usual position of an opening. If few of the opening's games reach it, filters these games instead.
 * @property {(opening: string) => void} filter Filters the games of an opening.
 * @property {(order: string) => void} sorted Called with the order that the user chooses, as the address spells it.
 * @property {(opening: string, result: string) => Promise<void>} list Lists the games of an opening with a result, or all its games.
 */
/** @typedef {{ key: string, ascending: boolean }} Sort */

/** The maximum difference between similar numbers of games, as a share of the games of the opening. */
const SIMILAR = 0.25;
/** The share of openings marked by chance alone, on average: an 80% range misses the true score about that often. */
const BY_CHANCE = 0.2;
/** The minimum number of games of a row that is marked as weaker or stronger. A row is marked if its range does not contain the expected score. */
const ENOUGH = 10;
/** The minimum numbers of games of families and of variations with a row of their own. The others are only counted. */
const [LEAST_FAMILY, LEAST_VARIATION] = [5, 3];

/** The names of the orders in a menu, which replaces the headings if the column is narrow. */
const ORDERS = /** @type {Record<string, string>} */ ({ points: "Most points lost", name: "Name", games: "Most games", losses: "Most losses", score: "Best score", performance: "Best performance", rating: "Best rating", latest: "Last played" });
/** The columns that sort, with their headings. */
const OWN = /** @type {[string, string][]} */ ([["points", "Points"], ["name", "Opening"], ["games", "Games"], ["losses", "W / D / L, %"], ["score", "Score"], ["performance", "Perf."], ["latest", "Last"]]);
const ALL = /** @type {[string, string][]} */ ([["games", "Games"], ["name", "Opening"], ["score", "Score"], ["rating", "Rating"], ["latest", "Last"]]);

/**
 * Returns true if the number of games in the usual position of an opening is similar to the number of games of the opening. If it is
 * not, a click on the opening shows only its games instead of the position.
 * @param {number} reaching
 * @param {number} games
 */
export function areSimilar(reaching, games) {
  return Math.abs(reaching - games) <= SIMILAR * games;
}

export class OpeningsTable {
  #place;
  #acts;
  /** The unfolded families, and the keys of the unfolded rest rows. */
  #unfolded = new Set();

  /**
   * @param {HTMLElement} place
   * @param {Acts} acts
   */
  constructor(place, acts) {
    this.#place = place;
    this.#acts = acts;
    on(place, "keydown", (event) => this.#key(event));
  }

  /** Lists the games of the opening that has the focus. Returns undefined if none has it. */
  listFocused() {
    const { activeElement } = document;
    const chosen = activeElement instanceof HTMLElement && this.#place.contains(activeElement) && /^opening (.*)/.exec(activeElement.dataset.focus ?? "");
    return chosen ? this.#acts.list(chosen[1] ?? "", "") : undefined;
  }

  /**
   * @param {Openings} openings
   * @param {boolean} ofPlayer
   * @param {string} chosen The order that the user chose, as the address spells it.
   */
  show(openings, ofPlayer, chosen) {
    const families = openings.families.map(counting);
    const columns = ofPlayer ? OWN : ALL;
    // The rows have no points if there is no average.
    const usual = ofPlayer && openings.averageScore !== null ? { key: "points", ascending: true } : { key: "games", ascending: false };
    const named = { key: chosen.replace("-", ""), ascending: !chosen.startsWith("-") };
    const sort = columns.some(([key]) => key === named.key) ? named : usual;
    const sorted = (/** @type {OpeningRow[]} */ rows) => [...rows].sort((one, other) => compared(one, other, sort));
    const order = (/** @type {string} */ key, ascending = ["name", "points"].includes(key)) => {
      const other = `${ascending ? "" : "-"}${key}`;
      this.#acts.sorted(other);
      this.show(openings, ofPlayer, other);
    };
    const choose = (/** @type {string} */ key) => order(key, key === sort.key ? !sort.ascending : undefined);
    if (!families.length) {
      fill(this.#place, p("card none", "None of these games has a named opening."));
      return;
    }
    const average = openings.averageScore;
    const folding = (/** @type {string} */ key) => ({
      isOpen: this.#unfolded.has(key),
      toggle: () => {
        if (!this.#unfolded.delete(key)) this.#unfolded.add(key);
        this.show(openings, ofPlayer, chosen);
      },
    });
    // Rows with few games are folded into one row at the end.
    const withRest = (/** @type {string} */ key, /** @type {OpeningRow[]} */ all, /** @type {number} */ least, /** @type {(row: OpeningRow) => HTMLElement[]} */ show) => {
      const rare = all.filter((one) => sum(one) < least);
      const fold = folding(`rest ${key}`);
      const rest = rare.length ? [restRow(rare, least, key ? "variation" : "opening", fold), ...(fold.isOpen ? sorted(rare).flatMap(show) : [])] : [];
      return [...sorted(all.filter((one) => sum(one) >= least)).flatMap(show), ...rest];
    };
    const rows = withRest("", families, LEAST_FAMILY, (family) => {
      const variations = family.variations ?? [];
      const { isOpen, toggle } = folding(family.name);
      const row = this.#row(family, family.name, average, ofPlayer, variations.length ? { isOpen, toggle } : undefined);
      if (!isOpen) return [row];
      return [row, ...withRest(family.name, variations.map(counting), LEAST_VARIATION, (one) => [this.#row(one, `${one.name}${one.name === family.name ? ":" : ","}`, average, ofPlayer, undefined, family.name)])];
    });
    if (openings.unnamed) rows.push(rest(`${counted(openings.unnamed)} without a named opening`));
    const table = div({ role: "table", "aria-label": "Openings" }, div({ role: "rowgroup", class: "head" }, this.#headings(columns, sort, choose)), div({ role: "rowgroup", class: "body" }, ...rows));
    const menu = make("select", { "aria-label": "Order of the openings", "data-focus": "openings-order" }, ...columns.map(([key]) => make("option", { value: key }, ORDERS[key] ?? key)));
    menu.value = sort.key;
    on(menu, "change", () => order(menu.value));
    fill(this.#place, ...(ofPlayer && average !== null ? [this.#mostLost(families, average), key(average, families)] : []), div("order", menu), div(`card openings${ofPlayer ? " of-player" : ""}`, table));
    this.#place.querySelector(".body .name button:not(.fold)")?.setAttribute("tabindex", "0");
  }

  /**
   * @param {[string, string][]} columns
   * @param {Sort} sort
   * @param {(key: string) => void} choose
   */
  #headings(columns, sort, choose) {
    const head = (/** @type {string} */ name, /** @type {string | undefined} */ title = undefined) => {
      const [, label = ""] = columns.find(([other]) => other === name) ?? [];
      const isSorted = sort.key === name;
      const press = button({ "data-focus": `sort ${name}` }, [label, ...(isSorted ? [span({ "aria-hidden": "true" }, sort.ascending ? "\u00a0↑" : "\u00a0↓")] : [])], () => choose(name));
      return div({ role: "columnheader", class: name, title, "aria-sort": isSorted ? (sort.ascending ? "ascending" : "descending") : undefined }, press);
    };
    const plain = (/** @type {string} */ kind, /** @type {string} */ label) => div({ role: "columnheader", class: kind }, label);
    const isOwn = columns === OWN;
    const order = isOwn ? ["name", "games", "losses", "score"] : ["name", "games"];
    const cells = isOwn
      ? [...order.map((name) => head(name)), plain("spread", "Range"), head("points", "Points above or below what the ratings of the opponents predict"), head("performance"), head("latest")]
      : [...order.map((name) => head(name)), plain("losses", "W / D / B, %"), head("score"), head("rating"), head("latest")];
    return div({ role: "row", class: "row" }, ...cells);
  }

  /**
   * @param {OpeningRow} opening
   * @param {string} filter The value of the filter that selects exactly this row.
   * @param {number | null} average
   * @param {boolean} ofPlayer
   * @param {{ isOpen: boolean, toggle: () => void }} [fold]
   * @param {string} [family] The family of a variation. The name in the row does not repeat it.
   */
  #row(opening, filter, average, ofPlayer, fold, family) {
    const { eco, score, points, pointsAboveAverage, scoreRange } = opening;
    const games = sum(opening);
    const cell = (/** @type {string} */ kind, /** @type {Child[]} */ ...content) => div({ role: "cell", class: kind }, ...content);
    const codes = eco[0] === eco[1] ? eco[0] : `${eco[0]}–${eco[1]}`;
    const name = family ? splitName(opening.name).variation || "Without a variation" : opening.name;
    const side = sideOf(opening, average);
    const mark = finished(opening) < ENOUGH ? "" : side;
    const lost = points === undefined ? "" : `, ${number(Number(Math.abs(points).toFixed(1)))} points ${points < 0 ? "below" : "above"} the expectation`;
    const plain = pointsAboveAverage === undefined ? undefined : `${signed(pointsAboveAverage)} compared with the average score, however strong the opponents are`;
    const label = `${opening.name}, ${counted(games)}${score === null ? "" : `, score ${Math.round(score)}%`}${lost}`;
    const open = this.#link(opening, filter, { "aria-label": label, tabindex: -1, "data-focus": `opening ${filter}` }, make(family ? "span" : "b", "", name));
    const unfold = fold
      ? button({ class: "plain fold", "aria-expanded": fold.isOpen, "aria-label": `Variations of ${opening.name}`, tabindex: -1, "data-focus": `fold ${filter}` }, [icon(fold.isOpen ? "down" : "forward")], fold.toggle)
      : span("fold");
    const results = cell("losses", bar(opening, ofPlayer, (result) => void this.#acts.list(filter, result)));
    const last = cell("latest", dateWords(opening.lastPlayed?.slice(0, 7)));
    const nameCell = div({ role: "rowheader", class: "name" }, unfold, div("", open, make("small", "", codes ?? "", span("narrow", ` · ${counted(games)}`))));
    const scored = cell("score", score === null ? "–" : `${Math.round(score)}%`);
    const cells = ofPlayer
      ? [results, scored, cell("spread", ...range(score, scoreRange, expectedScore(opening, average), mark, side)), div({ role: "cell", class: `points ${mark}`, title: plain }, points === undefined ? "–" : signed(points)), cell("performance", opening.performance ?? "–"), last]
      : [results, scored, cell("rating", opening.rating ?? "–"), last];
    return div({ role: "row", class: `row${family ? " variation" : ""}` }, nameCell, cell("games", number(games)), ...cells);
  }

  /**
   * Returns a button that goes to the usual position of an opening, or filters its games.
   * @param {OpeningRow} opening
   * @param {string} filter As for a row.
   * @param {import("./dom.js").Named} attributes
   * @param {Child} content
   */
  #link({ lineGames, line, ...results }, filter, attributes, content) {
    const games = sum(results);
    const isFiltered = lineGames === null || !areSimilar(lineGames, games);
    const title = isFiltered ? "Shows only the games of this opening" : lineGames === games ? undefined : `Goes to the usual position of this opening, which ${counted(lineGames)} of any opening reached`;
    return button({ ...attributes, title }, [content], () => (isFiltered ? this.#acts.filter(filter) : this.#acts.open(line, filter, games)));
  }

  /**
   * Names the opening with the most points lost among those that are marked as weaker, however the table is sorted.
   * @param {OpeningRow[]} families
   * @param {number} average
   */
  #mostLost(families, average) {
    const [worst] = families.filter((one) => finished(one) >= ENOUGH && sideOf(one, average) === "weaker").sort((one, other) => (one.points ?? 0) - (other.points ?? 0));
    const lost = -(worst?.points ?? 0);
    return !worst ? p("most-lost", "No opening costs more than chance would.") : p("most-lost", "Most lost: ", this.#link(worst, worst.name, { class: "plain", "data-focus": "most-lost" }, worst.name), `, ${lost.toFixed(1)} points in ${counted(sum(worst))}`);
  }

  /**
   * Moves the focus between the rows, and unfolds them. The rows are one tab stop.
   * @param {KeyboardEvent} event
   */
  #key(event) {
    const active = document.activeElement;
    const buttons = /** @type {HTMLElement[]} */ ([...this.#place.querySelectorAll(".body .name button:not(.fold)")]);
    const at = buttons.findIndex((one) => one === active);
    if (at < 0) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = buttons[Math.max(0, Math.min(at + step, buttons.length - 1))];
      for (const one of buttons) one.tabIndex = one === next ? 0 : -1;
      next?.focus();
    } else if (event.key === " ") {
      const name = buttons[at]?.dataset.focus ?? "";
      /** @type {HTMLElement | null | undefined} */ (buttons[at]?.closest(".row")?.querySelector("button.fold"))?.click();
      const again = [...this.#place.querySelectorAll(".body .name button")].find((one) => one instanceof HTMLElement && one.dataset.focus === name);
      if (again instanceof HTMLElement) again.focus();
    } else return;
    event.preventDefault();
    // In the rest of the page, these keys choose a move.
    event.stopPropagation();
  }
}

/**
 * Adds the games without a result to the draws, as everywhere else on the page.
 * @param {OpeningRow} row
 * @returns {OpeningRow}
 */
function counting({ draws, unfinished = 0, ...row }) {
  return { ...row, draws: draws + unfinished, unfinished };
}

/** @param {Child} content */
function rest(content) {
  return div({ role: "row", class: "row rest" }, div({ role: "cell" }, content));
}

/**
 * Returns the row in place of openings with few games, with their sums. It unfolds them.
 * @param {OpeningRow[]} rare
 * @param {number} least The number of games below which an opening has few.
 * @param {string} noun
 * @param {{ isOpen: boolean, toggle: () => void }} fold
 */
function restRow(rare, least, noun, { isOpen, toggle }) {
  const points = rare.reduce((all, one) => all + (one.points ?? 0), 0);
  const hasPoints = rare.some((one) => one.points !== undefined);
  const sums = `${counted(rare.reduce((all, one) => all + sum(one), 0))}${hasPoints ? `, ${signed(points)} points` : ""}`;
  const text = `${counted(rare.length, noun)} with fewer than ${least} games each: ${sums}`;
  return rest(button({ class: "plain", "aria-expanded": isOpen, "data-focus": `rest ${rare[0]?.name}` }, [icon(isOpen ? "down" : "forward"), text], toggle));
}

/**
 * Returns a key to the marks of the table, with the number of marked openings and the number that chance alone would mark.
 * @param {number} average
 * @param {OpeningRow[]} families
 */
function key(average, families) {
  const judged = families.filter((one) => finished(one) >= ENOUGH && one.points !== undefined);
  const marked = judged.filter((one) => sideOf(one, average)).length;
  const title = `The dashed line is the score that the ratings predict. Likely: the 80% range of the score misses it, and there are at least ${ENOUGH} games.${judged.length ? ` Marked: ${marked} of ${counted(judged.length, "opening")}; chance alone would mark about ${(BY_CHANCE * judged.length).toFixed(1)}.` : ""}`;
  const sign = (/** @type {string} */ kind, /** @type {string} */ text) => span({ title }, span(`sign ${kind}`), text);
  return p("key", span({ title }, "Points: compared with what ratings predict"), sign("weaker", "likely weaker"), sign("stronger", "likely stronger"), sign("", "could be chance"));
}

/**
 * Returns the score that the ratings of the opponents predict, which follows from the points above it. For games without points, returns the average.
 * @param {OpeningRow} opening
 * @param {number | null} average
 */
function expectedScore({ score, points, ...opening }, average) {
  return score === null || points === undefined ? average : score - (100 * points) / finished(opening);
}

/**
 * Returns "weaker" or "stronger" if the range of an opening's score does not contain the expected score. Otherwise returns an empty string.
 * @param {OpeningRow} opening
 * @param {number | null} average
 */
function sideOf(opening, average) {
  const { scoreRange, points } = opening;
  const expected = expectedScore(opening, average);
  if (!scoreRange || points === undefined || average === null || expected === null) return "";
  return scoreRange[1] < expected ? "weaker" : scoreRange[0] > expected ? "stronger" : "";
}

/**
 * Draws the range in which the true score probably is, and a line at the expected score.
 * @param {number | null} score
 * @param {[number, number] | null} between
 * @param {number | null} average
 * @param {string} mark
 * @param {string} side The mark if the opening had enough games.
 */
function range(score, between, average, mark, side) {
  if (score === null || !between || average === null) return [];
  // The average is in the middle, and half of the width is 30 percentage points. Ends that are further away are outside, where the dot
  // does not hide them.
  const at = (/** @type {number} */ percent) => Math.max(-6, Math.min(106, 50 + (50 / 30) * (percent - average)));
  const line = span("average");
  // An end of the range that is further away from the average is drawn as an arrowhead, unless the dot is there.
  const ends = [between[0] < average - 30 && score >= average - 30 ? " cut-below" : "", between[1] > average + 30 && score <= average + 30 ? " cut" : ""];
  const width = span(`between ${mark}${ends.join("")}`);
  width.style.left = `${at(between[0])}%`;
  width.style.width = `${at(between[1]) - at(between[0])}%`;
  // The dot of a score that is further away is at the edge.
  const dot = span(`sign ${mark}`);
  dot.style.left = `clamp(5px, ${at(score)}%, 100% - 5px)`;
  const title = `${Math.round(score)}%, likely between ${Math.round(between[0])}% and ${Math.round(between[1])}%${mark === side ? "" : `; fewer than ${ENOUGH} games`}`;
  return [span({ class: "field-of", role: "img", title, "aria-label": title }, line, width, dot)];
}

/** @param {number} points */
function signed(points) {
  const text = Math.abs(points).toFixed(1);
  return Number(text) ? `${points < 0 ? "−" : "+"}${text}` : text;
}

/**
 * Compares rows by a column. Rows without a value come last.
 * @param {OpeningRow} one
 * @param {OpeningRow} other
 * @param {Sort} sort
 */
function compared(one, other, { key, ascending }) {
  const value = (/** @type {OpeningRow} */ row) =>
    ({ name: row.name, games: sum(row), losses: (row.losses ?? 0) / (sum(row) || 1), score: row.score, points: row.points, performance: row.performance, rating: row.rating, latest: row.lastPlayed })[key] ?? undefined;
  const [a, b] = [value(one), value(other)];
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
}
