// @ts-check
// Formatting of numbers, dates and results.

/**
 * Numbers of games by result.
 * @typedef {{ white: number, draws: number, black: number, unfinished?: number }} Counts `draws` contains the unfinished games, which have no result.
 */

const NUMBER = new Intl.NumberFormat("en");
/**
 * The 90 % quantile of the normal distribution. 80 % of the values are within this many standard deviations, as for the ranges of
 * openings.
 */
export const QUANTILE = 1.2816;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** @param {number} value */
export function number(value) {
  return NUMBER.format(value);
}

/**
 * Returns a count with its noun: "1 game", "2,183 games".
 * @param {number} count
 * @param {string} [noun]
 */
export function counted(count, noun = "game") {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Returns a number of games for a narrow column, such as "27,585" or "1.25M".
 * @param {number} games
 */
export function brief(games) {
  return games < 1e6 ? number(games) : `${(games / 1e6).toFixed(games < 1e7 ? 2 : 1)}M`;
}

/** @param {Counts} counts */
export function sum(counts) {
  return counts.white + counts.draws + counts.black;
}

/**
 * Returns the number of games with a result. Scores are calculated from these games.
 * @param {Counts} counts
 */
export function finished(counts) {
  return sum(counts) - (counts.unfinished ?? 0);
}

/**
 * Returns the number of drawn games.
 * @param {Counts} counts
 */
export function drawn(counts) {
  return counts.draws - (counts.unfinished ?? 0);
}

/**
 * Returns the number of games without a result as text, such as ", 10 without result", or an empty string if there are none.
 * @param {Counts} counts
 */
export function withoutResult({ unfinished = 0 }) {
  return unfinished ? `, ${number(unfinished)} without result` : "";
}

/** @param {number} share From 0 to 1. */
export function percent(share) {
  const value = 100 * share;
  if (value >= 99.5 && value < 100) return ">99%";
  if (value >= 9.95) return `${Math.round(value)}%`;
  if (value >= 0.095) return `${value.toFixed(1)}%`;
  return value > 0 ? "<0.1%" : "0%";
}

/**
 * Returns White's score in the games with a result, from 0 to 1, or 0 if there are none.
 * @param {Counts} counts
 */
export function score(counts) {
  const total = finished(counts);
  return total ? (counts.white + drawn(counts) / 2) / total : 0;
}

/**
 * Returns a date as text: "3 May 2015", "May 2015" or "2015".
 * @param {string | null | undefined} date "2015-05-03" or shorter.
 */
export function dateWords(date) {
  const [year, month, day] = (date ?? "").split("-");
  return [day && String(Number(day)), month && MONTHS[Number(month) - 1], year].filter(Boolean).join(" ");
}

/**
 * Returns a text in lower case and without diacritics.
 * @param {string} text
 */
export function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * Returns the address in the name of an event, and the name with a short form of the address.
 * @param {string | null | undefined} event
 */
export function eventWords(event) {
  const address = /https?:\/\/\S+/.exec(event ?? "")?.[0] ?? "";
  return { address, name: (event ?? "").replace(address, () => address.replace(/^\w+:\/\/(www\.)?|[/?#]+$/g, "").replace(/^([^/]*)\/.{12,}(.{8})$/, "$1/…$2")) };
}

/**
 * Returns the first word of a name as a part of the name of a file. It has only letters and digits of ASCII.
 * @param {string | undefined} name
 */
export function fileName(name = "") {
  return folded(name).split(/[\s,]/)[0]?.replace(/[^\w-]/g, "") ?? "";
}

/**
 * Parses a month or a year in one of many spellings: "2015", "2015-05", "2015.05.03", "5/2015", "May 2015".
 * @param {string} text
 * @returns {string | undefined} "2015" or "2015-05", or undefined if the text is neither a month nor a year.
 */
export function readMonth(text) {
  const plain = folded(text).trim();
  const year = /(?<!\d)\d{4}(?!\d)/.exec(plain);
  if (!year) return;
  const rest = `${plain.slice(0, year.index)} ${plain.slice(year.index + 4)}`.split(/[\s,./-]+/).filter(Boolean);
  // If the year comes first, the month is the first of the other numbers, otherwise the last.
  const name = rest.find((part) => /^[a-z]{2}[a-z]+$/.test(part));
  const month = name ? MONTHS.findIndex((known) => name.startsWith(known.toLowerCase())) + 1 : Number(year.index > 0 ? rest.at(-1) : rest[0]);
  if (!rest.length) return year[0];
  const isKnown = month >= 1 && month <= 12 && rest.length <= 2 && rest.every((part) => part === name || /^\d{1,2}$/.test(part));
  return isKnown ? `${year[0]}-${String(month).padStart(2, "0")}` : undefined;
}

/**
 * Splits the name of an opening at its first colon or comma: "Sicilian Defense" and "Najdorf Variation, Adams Attack".
 * @param {string} name
 */
export function splitName(name) {
  const family = name.split(/[:,] /, 1)[0] ?? "";
  return { family, variation: name.slice(family.length + 2) };
}

/**
 * Returns the name of an opening without the words that the heading already contains.
 * @param {string} name
 * @param {string | undefined} above The name in the heading.
 */
export function shortName(name, above) {
  if (!above) return name;
  if (name === above) return "";
  const [mine, other] = [splitName(name), splitName(above)];
  if (mine.family !== other.family || !mine.variation) return name;
  const [parts, known] = [mine.variation.split(", "), other.variation.split(", ")];
  let same = 0;
  while (same < parts.length - 1 && parts[same] === known[same]) same += 1;
  return parts.slice(same).join(", ");
}

/**
 * Returns the move number before a half-move: "6." or "6...".
 * @param {number} ply The number of the half-move, from 0.
 */
export function plyNumber(ply) {
  return `${Math.floor(ply / 2) + 1}${ply % 2 ? "..." : "."}`;
}
