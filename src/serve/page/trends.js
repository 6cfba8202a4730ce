// @ts-check
// Trends: games per year, the share of each move by year, and White's score by rating. Each chart has a hidden table with
// its data.

import { b, div, fill, make, p, span } from "./dom.js";
import { QUANTILE, brief, counted, number, percent, score, sum } from "./format.js";
import { path, svg } from "./pieces.js";

/** @typedef {import("./api.js").RatingScore} RatingScore */
/** @typedef {import("./api.js").Year} Year */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */
/** @typedef {import("./dom.js").Child} Child */

/** The number of moves that have a color of their own in the charts. */
const MOVES = 4;
/** The minimum number of games with a result for a rating group to be drawn. */
const LEAST = 10;
/** The minimum number of games in three years. With fewer games, the shares of the year in the middle are drawn pale. */
const FEW = 200;
/** The minimum distance between the labels of the shares, as a fraction of the chart's height: 18 of 136 px. */
const GAP = 18 / 136;
/** The maximum number of labels on the axis of years. */
const LABELS = 5;

/**
 * Returns the years to draw, at most 60. The first one is the first year with enough games to be visible. Years without games are included.
 * @param {Year[]} years
 */
function shown(years) {
  const most = Math.max(...years.map(sum));
  const first = years.find((year) => sum(year) >= most / 200)?.year ?? 0;
  const last = years.at(-1)?.year ?? -1;
  const from = Math.max(first, last - 59);
  const known = new Map(years.map((year) => [year.year, year]));
  return Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => known.get(from + index) ?? { year: from + index, white: 0, draws: 0, black: 0, moves: {} });
}

/**
 * Shows the small chart in the heading.
 * @param {HTMLElement | null} place
 * @param {Year[]} all
 */
export function showSpark(place, all) {
  if (!place) return;
  const years = shown(all).slice(-26);
  const [first, last] = [years[0], years.at(-1)];
  if (!first || !last || years.length < 2) {
    fill(place);
    return;
  }
  // The chart has room for few years.
  const before = all.reduce((games, one) => games + (one.year < first.year ? sum(one) : 0), 0);
  const label = span({ class: "quiet", title: before ? `${counted(before)} of earlier years ${before === 1 ? "is" : "are"} not in this chart` : undefined }, before ? `Games since ${first.year}` : `Games ${first.year}–${last.year}`);
  fill(place, label, bars(years));
}

/** @param {Year[]} years */
function bars(years) {
  const most = Math.max(1, ...years.map(sum));
  const words = `Games per year, ${years[0]?.year} to ${years.at(-1)?.year}, at most ${number(most)}`;
  const chart = div({ class: "years-bars", role: "img", "aria-label": words });
  for (const year of years) {
    const column = make("i", { title: `${year.year}: ${counted(sum(year))}` });
    column.style.height = `${Math.max(2, (100 * sum(year)) / most)}%`;
    chart.append(column);
  }
  return chart;
}

/**
 * Shows all charts of a position.
 * @param {HTMLElement} place
 * @param {Year[]} all
 * @param {RatingScore[]} ratings
 * @param {Map<string, string>} sans The moves of the position in SAN, by their UCI notation.
 */
export function showTrends(place, all, ratings, sans) {
  const years = shown(all);
  if (!years.length) {
    fill(place, p("card none", "There are no games with a known year."));
    return;
  }
  // These draws do not include games without a result.
  const scored = ratings.map((group) => ({ ...group, unfinished: 0 }));
  const known = scored.filter((group) => group.rating !== "unknown" && sum(group) >= LEAST);
  const cards = [div("card charts", sharesChart(years, sans), yearsChart(years))];
  if (known.length > 1) cards.push(div("card charts", ratingsChart(known)));
  fill(place, ...cards);
}

/**
 * Creates a chart, with a table of its data.
 * @param {string} title
 * @param {string} more
 * @param {string[]} head
 * @param {string[][]} rows
 * @param {Child[]} content
 */
function figure(title, more, head, rows, ...content) {
  return make("figure", "", make("figcaption", "", make("h3", "", title), p("quiet", more)), ...content, table(title, head, rows));
}

/** Creates an SVG element that fills its container. */
function canvas() {
  return svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
}

/** @param {(string | number)[]} texts */
function axis(texts) {
  return div({ class: "axis", "aria-hidden": "true" }, ...texts.map((text) => span("", text)));
}

/**
 * @param {string} caption
 * @param {string[]} head
 * @param {string[][]} rows
 */
function table(caption, head, rows) {
  const cells = (/** @type {string[]} */ texts) => make("tr", "", ...texts.map((text, index) => make(index ? "td" : "th", index ? {} : { scope: "row" }, text)));
  return div("unseen",
    make(
      "table",
      "",
      make("caption", "", caption),
      make("thead", "", make("tr", "", ...head.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", "", ...rows.map(cells)),
    ),
  );
}

/** @param {Year[]} years */
function yearsChart(years) {
  const most = Math.max(...years.map(sum));
  const chart = div("columns", span("most", number(most)), bars(years));
  const rows = years.map((year) => [String(year.year), number(sum(year))]);
  return figure("Games per year", "", ["Year", "Games"], rows, chart, yearsAxis(years));
}

/** @param {Year[]} years */
function yearsAxis(years) {
  const step = [1, 2, 5, 10, 20].find((wide) => years.length / wide <= LABELS) ?? 50;
  return axis(years.map(({ year }) => (year % step === 0 ? year : "")));
}

/**
 * Creates the chart of the moves' shares, as moving averages over three years.
 * @param {Year[]} years
 * @param {Map<string, string>} sans
 */
function sharesChart(years, sans) {
  const totals = new Map();
  for (const year of years) for (const [uci, games] of Object.entries(year.moves)) totals.set(uci, (totals.get(uci) ?? 0) + games);
  const moves = [...totals].sort(([, one], [, other]) => other - one).slice(0, MOVES).map(([uci]) => uci);
  const shares = moves.map((uci) =>
    years.map((_, index) => {
      const near = years.slice(Math.max(0, index - 1), index + 2);
      const all = near.reduce((games, year) => games + sum(year), 0);
      const own = near.reduce((games, year) => games + (year.moves[uci] ?? 0), 0);
      return all ? Math.min(1, own / all) : 0;
    }),
  );
  const picture = canvas();
  const x = (/** @type {number} */ index) => ((100 * index) / Math.max(1, years.length - 1)).toFixed(2);
  let base = years.map(() => 0);
  /** @type {[number, string, number][]} */
  const ends = [];
  shares.forEach((share, place) => {
    const below = base;
    const top = base.map((from, index) => Math.min(1, from + (share[index] ?? 0)));
    const point = (/** @type {number[]} */ edge) => (/** @type {unknown} */ _, /** @type {number} */ index) => `${x(index)} ${(100 - 100 * (edge[index] ?? 0)).toFixed(2)}`;
    const up = years.map(point(top));
    const down = years.map(point(below)).reverse();
    // If there is only one year, it fills the width of the chart.
    const d = years.length > 1 ? `M${[...up, ...down].join("L")}Z` : `M0 ${100 - 100 * (top[0] ?? 0)}H100V${100 - 100 * (below[0] ?? 0)}H0Z`;
    picture.append(path(`share${place + 1}`, d));
    ends.push([1 - ((below.at(-1) ?? 0) + (top.at(-1) ?? 0)) / 2, sans.get(moves[place] ?? "") ?? "", share.at(-1) ?? 0]);
    base = top;
  });
  ends.push([(1 - (base.at(-1) ?? 0)) / 2, "other", 1 - (base.at(-1) ?? 0)]);
  const isThin = (/** @type {number} */ index) => years.slice(Math.max(0, index - 1), index + 2).reduce((games, year) => games + sum(year), 0) < FEW;
  const half = 50 / Math.max(1, years.length - 1);
  const thin = years.map((_, index) => (isThin(index) ? `M${(Number(x(index)) - half).toFixed(2)} 0h${(2 * half).toFixed(2)}v100h-${(2 * half).toFixed(2)}z` : "")).join("");
  picture.append(path("grid", "M0 25H100M0 50H100M0 75H100"), path("thin", thin));
  // Move labels apart that are too close to each other: first upwards, beginning at the bottom, then downwards, beginning at the top.
  let floor = 1 + GAP / 2;
  const places = ends.map(([middle]) => (floor = Math.min(middle, floor - GAP)));
  let ceiling = -GAP / 2;
  for (const index of [...places.keys()].reverse()) places[index] = ceiling = Math.max(places[index] ?? 0, ceiling + GAP);
  const labels = ends.map(([, name, share], index) => {
    const isOther = name === "other";
    const label = span({ class: isOther ? "other" : "" }, span(`swatch share${isOther ? 5 : index + 1}`), name, make("i", "", percent(share)));
    label.style.top = `${100 * (places[index] ?? 0)}%`;
    return label;
  });
  const rows = years.map((year, index) => [String(year.year), ...shares.map((share) => percent(share[index] ?? 0))]);
  return figure(
    "Share of the moves",
    years.some((_, index) => isThin(index)) ? "Mean of three years. Pale: few games" : "Mean of three years",
    ["Year", ...moves.map((uci) => sans.get(uci) ?? uci)],
    rows,
    div("shares", div({ class: "scale", "aria-hidden": "true" }, ...["100%", "50%", "0%"].map((text) => span("", text))), picture, div({ class: "shares-labels", "aria-hidden": "true" }, ...labels)),
    yearsAxis(years),
  );
}

/**
 * Returns the 80% range of White's score. Assumes a normal distribution, and adds two games with the mean score, as for the ranges of
 * openings.
 * @param {RatingScore} group
 * @returns {[number, number]}
 */
function scoreRange(group) {
  const [mean, games] = [score(group), sum(group) + 2];
  const variance = Math.max(0.02, (group.white + group.draws / 4 + 2 * mean) / games - mean * mean);
  const half = QUANTILE * Math.sqrt(variance / games);
  return [Math.max(0, mean - half), Math.min(1, mean + half)];
}

/** @param {RatingScore[]} groups */
function ratingsChart(groups) {
  const scores = groups.map(score);
  const ranges = groups.map(scoreRange);
  const [low, high] = [Math.min(0.45, ...ranges.map(([from]) => from)) - 0.02, Math.max(0.55, ...ranges.map(([, to]) => to)) + 0.03];
  const x = (/** @type {number} */ index) => (100 * (index + 0.5)) / groups.length;
  const y = (/** @type {number} */ value) => 100 - (100 * (value - low)) / (high - low);
  const picture = canvas();
  picture.append(
    path("middle", `M0 ${y(0.5)}H100`),
    path("curve", `M${scores.map((value, index) => `${x(index).toFixed(2)} ${y(value).toFixed(2)}`).join("L")}`),
  );
  ranges.forEach(([from, to], index) => picture.append(path("curve", `M${x(index)} ${y(from)}V${y(to)}`)));
  const half = span("half quiet", "50%");
  half.style.top = `${y(0.5)}%`;
  const dots = scores.map((value, index) => {
    const isFew = sum(groups[index] ?? { white: 0, draws: 0, black: 0 }) < FEW;
    const dot = span(isFew ? "dot" : "dot enough", b(Math.round(100 * value)));
    dot.style.left = `${x(index)}%`;
    dot.style.top = `${y(value)}%`;
    return dot;
  });
  const percents = (/** @type {[number, number] | undefined} */ range) => (range ?? []).map((one) => percent(one)).join("–");
  const rows = groups.map((group, index) => [group.rating, percent(scores[index] ?? 0), percents(ranges[index]), number(sum(group))]);
  return figure(
    "White's score by rating",
    `By the mean of both players' known ratings, with 80% ranges.${groups.some((group) => sum(group) < FEW) ? ` Hollow: under ${FEW} games` : ""}`,
    ["Rating", "Score", "80% range", "Games"],
    rows,
    div("curve-field", picture, half, ...dots),
    axis(groups.map(({ rating }) => (rating === "0" ? "<1000" : rating === "2500" ? "2500+" : rating))),
    axis(groups.map((group) => brief(sum(group)))),
  );
}
