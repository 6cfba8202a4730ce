// @ts-check
// The filters as chips. Pressing a chip changes its filter, and × removes it. Dashed chips add further filters.

import { button, byId, fill, icon, span } from "./dom.js";
import { counted, dateWords, number } from "./format.js";
import { FILTERS, nameText } from "./state.js";

/** @typedef {import("./state.js").Filters} Filters */

/** The rating groups of the API, and "unknown" for games without a known rating. */
export const RATINGS = ["0", "1000", "1200", "1400", "1600", "1800", "2000", "2200", "2500", "unknown"];

export const SPEEDS = named("ultraBullet bullet blitz rapid classical correspondence");

export const VARIANTS = [
  ...named("standard chess960 antichess atomic crazyhouse horde"),
  .../** @type {[string, string][]} */ ([["kingOfTheHill", "King of the Hill"], ["racingKings", "Racing Kings"], ["threeCheck", "Three-check"]]),
];

/**
 * Pairs names of the API with labels that begin with a capital letter.
 * @param {string} names
 * @returns {[string, string][]}
 */
function named(names) {
  return names.split(" ").map((name) => [name, name.charAt(0).toUpperCase() + name.slice(1)]);
}

/**
 * Returns a rating group as a range, such as "2200–2499".
 * @param {string} group
 */
export function ratingRange(group) {
  const next = RATINGS[RATINGS.indexOf(group) + 1];
  if (group === "unknown") return "not known";
  if (group === "0") return "under 1000";
  return next === "unknown" ? `${group}+` : `${group}–${Number(next) - 1}`;
}

/**
 * Returns the chosen rating groups as text. Neighboring groups are joined.
 * @param {string} list
 */
function ratingsWords(list) {
  const chosen = RATINGS.map((group) => list.split(",").includes(group));
  const words = [];
  for (let from = 0; from < RATINGS.length; from += 1) {
    if (!chosen[from]) continue;
    let to = from;
    const group = RATINGS[from] ?? "";
    while (group !== "unknown" && chosen[to + 1] && RATINGS[to + 1] !== "unknown") to += 1;
    const [first, last] = [ratingRange(group), ratingRange(RATINGS[to] ?? "")];
    if (from === to) words.push(first);
    else if (group === "0") words.push(last.endsWith("+") ? "any" : `under ${RATINGS[to + 1]}`);
    else words.push(last.endsWith("+") ? `${group}+` : `${group}–${last.split("–")[1]}`);
    from = to;
  }
  const known = words.filter((word) => word !== "not known");
  // The group "unknown" is not a range of ratings, so it is described separately.
  if (known.length === words.length) return known.length ? `rated ${known.join(", ")}` : "no rating";
  return known.length ? `rated ${known.join(", ")}, or rating not known` : "rating not known";
}

const RESULTS = /** @type {Record<string, string>} */ ({
  "1-0": "White won",
  "0-1": "Black won",
  "1/2-1/2": "draw",
  win: "won",
  loss: "lost",
  draw: "drawn",
});

/**
 * Describes the filters that are set. Each description contains the name of its field in the dialog, a text, and the names of the
 * filters that the text describes.
 * @param {Filters} filters
 * @param {string} variant
 * @returns {{ field: string, text: string, names: string[] }[]}
 */
export function filterWords(filters, variant) {
  const { player, color, opponent, opponentRating, requireDate, result, since, until, ratings, speeds, event, eco, opening, position, minPly, duplicates } = filters;
  const chip = (/** @type {string} */ field, /** @type {string} */ text, names = [field]) => ({ field, text, names });
  const range = since && until ? (since === until ? dateWords(since) : `${dateWords(since)}–${dateWords(until)}`) : since ? `since ${dateWords(since)}` : `until ${dateWords(until)}`;
  const speedWords = SPEEDS.filter(([name]) => speeds?.split(",").includes(name)).map(([, label]) => label);
  return [
    ...(variant ? [chip("variant", VARIANTS.find(([name]) => name === variant)?.[1] ?? variant)] : []),
    ...(player ? [chip("player", nameText(player), ["player", "color"])] : []),
    ...(color ? [chip("color", color === "white" ? "White" : "Black")] : []),
    ...(opponent ? [chip("opponent", `against ${nameText(opponent)}`)] : []),
    ...(opponentRating ? [chip("opponentRating", `opponent rated ${opponentRating.replace(/^-/, "up to ").replace(/-$/, "+").replace("-", "–")}`)] : []),
    ...(result ? [chip("result", result.split(",").map((one) => RESULTS[one] ?? one).join(", "))] : []),
    ...(since || until ? [chip("since", range, ["since", "until"])] : []),
    ...(requireDate ? [chip("requireDate", "with a date")] : []),
    ...(ratings !== undefined ? [chip("ratings", ratingsWords(ratings))] : []),
    ...(speeds !== undefined ? [chip("speeds", speedWords.join(", ") || "no speed")] : []),
    ...(event ? [chip("event", event)] : []),
    ...(eco ? [chip("eco", eco)] : []),
    ...(opening ? [chip("eco", opening.replace(/[:,]$/, ""), ["opening"])] : []),
    ...(position ? [chip("position", queryWords(position))] : []),
    ...(minPly ? [chip("minPly", `at least ${counted(Math.ceil(Number(minPly) / 2), "move")}`)] : []),
    ...(duplicates ? [chip("duplicates", "duplicates once")] : []),
    ...Object.entries(filters).filter(([name]) => !FILTERS.includes(name)).map(([name, value]) => chip(name, conditionWords(name, value))),
  ];
}

/**
 * Describes a filter that only the address can set, such as "time control 180-480".
 * @param {string} name
 * @param {string} value
 */
function conditionWords(name, value) {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return value === "true" ? words : `${words} ${nameText(value)}`;
}

const OFFERS = Object.entries({ player: "Player", since: "Years", ratings: "Rating", event: "Event", eco: "Opening", result: "Result" });
/** The filters that are offered for sources of counts, which contain no single games. */
const OFFERS_OF_COUNTS = Object.entries({ since: "Years", ratings: "Rating", speeds: "Speed" });

/** The index of the chip that was removed last, or -1 if the chips have been drawn since. */
let removed = -1;

/**
 * @param {HTMLElement} place
 * @param {Filters} filters
 * @param {string} variant
 * @param {{ hasGames: boolean, hasVariants: boolean, isMe: boolean, preparer: string | undefined, fen: string }} shown `isMe` says whether
 *   the player is the user. `preparer` is the name of the person who prepares, an empty string for the user, or undefined. `fen` is the
 *   position, or an empty string for the one in which games start.
 * @param {{ edit: (field: string) => void, find: (query: string) => void, remove: (names: string[]) => void, clear: () => void, openMe: () => void, leavePreparation: () => void }} on
 */
export function showChips(place, filters, variant, { hasGames, hasVariants, isMe, preparer, fen }, on) {
  const words = filterWords(filters, variant);
  const chips = words.map(({ field, text, names }, index) => {
    const isMine = isMe && field === "player";
    const edit = isMine
      ? button({ title: text, "data-focus": "edit-player" }, [icon("user"), "Me"], on.openMe)
      : button({ title: "Change this filter", "data-focus": `edit-${field}` }, [text], () => on.edit(field));
    const remove = button({ "aria-label": `Remove the filter ${text}`, "data-focus": `remove-${field}` }, [icon("close")], () => {
      removed = index;
      on.remove(names);
    });
    return span(isMine ? "chip me" : "chip", edit, remove);
  });
  if (preparer !== undefined) {
    const leave = button({ "aria-label": "End the preparation", "data-focus": "end-preparation" }, [icon("close")], on.leavePreparation);
    chips.push(span("with-answers", preparer ? "with the answers of" : "with my answers:"), span("chip me", button({ title: "Your names", "data-focus": "my-names" }, [icon("user"), preparer || "Me"], on.openMe), leave));
  }
  const offer = (/** @type {string} */ field, /** @type {string} */ label) =>
    button({ class: "chip offer", "data-focus": `offer-${field}` }, [icon("plus"), label], () => on.edit(field));
  const isSet = (/** @type {string} */ field) => words.some((one) => one.field === field);
  const variants = hasVariants && hasGames ? [["variant", "Variant"]] : [];
  const offers = [...(hasGames ? OFFERS : OFFERS_OF_COUNTS), ...variants].filter(([field = ""]) => !isSet(field)).map(([field = "", label = ""]) => offer(field, label));
  const clear = words.length ? [button({ class: "small plain", "data-focus": "clear" }, ["Clear all"], on.clear)] : [];
  const find = (/** @type {string} */ label, /** @type {string} */ query) =>
    button({ class: "chip offer", "data-focus": `find-${label}`, title: `All games with ${label.toLowerCase()}, by any moves` }, [icon("plus"), label], () => on.find(query));
  const ofBoard = hasGames && fen && !filters.position && preparer === undefined ? [find("These pawns", pawnsQuery(fen)), find("This material", materialQuery(fen))] : [];
  fill(place, ...chips, ...ofBoard, ...offers, ...clear);
  // The dialog contains the filters for which there is no room.
  while (ofBoard.length && offers.length && place.scrollWidth > place.clientWidth) offers.pop()?.remove();
  // If there is no room for all chips, a single chip opens the dialog with all filters.
  if (place.scrollWidth > place.clientWidth) fill(place, ...chips, offer("", "Filter"), ...clear);
  if (removed >= 0 && document.activeElement === document.body) {
    // The focused chip was removed. Move the focus to the next one.
    const next = chips[Math.min(removed, chips.length - 1)]?.querySelector("button:last-child") ?? byId("filters-button");
    if (next instanceof HTMLElement) next.focus();
  }
  removed = -1;
  const badge = words.length ? [span("badge", number(words.length))] : [];
  for (const opener of document.querySelectorAll("[data-act=filters]")) {
    opener.querySelector(".badge")?.remove();
    opener.append(...badge.map((one) => one.cloneNode(true)));
  }
}

/**
 * Returns the ranks of a FEN, from the eighth one, with a character for each square. Empty squares are dots.
 * @param {string} fen
 */
function ranksOf(fen) {
  const [placement = ""] = fen.split(/[ []/);
  return placement.replaceAll("~", "").split("/").slice(0, 8).map((rank) => rank.replace(/\d/g, (empty) => ".".repeat(Number(empty))));
}

/**
 * Returns the query for games in which the pawns stood as in a position.
 * @param {string} fen
 */
export function pawnsQuery(fen) {
  const ranks = ranksOf(fen).map((rank) => rank.replace(/[^Pp]/g, "."));
  const count = (/** @type {string} */ pawn) => ranks.join("").split(pawn).length - 1;
  const counts = `P = ${count("P")} and p = ${count("p")}`;
  const placement = ranks.map((rank) => rank.replace(/\.+/g, (empty) => String(empty.length))).join("/");
  return /[Pp]/.test(placement) ? `board[${placement}] and ${counts}` : counts;
}

/**
 * Returns the query for games with the material of a position.
 * @param {string} fen
 */
export function materialQuery(fen) {
  const pieces = [...ranksOf(fen).join("")];
  const side = (/** @type {string} */ letters) => [...letters].map((letter) => pieces.filter((piece) => piece === letter).join("")).join("");
  return `material[${side("KQRBNP")}v${side("kqrbnp").toUpperCase()}]`;
}

/**
 * Describes a query.
 * @param {string} query
 */
function queryWords(query) {
  if (/^(board\[[Pp\d/]+\] and )?P = \d+ and p = \d+$/.test(query)) return "these pawns";
  const [, white, black] = /^material\[([A-Z]+)v([A-Z]+)\]$/.exec(query) ?? [];
  return white ? `material ${white} v ${black}` : `on the board: ${query}`;
}
