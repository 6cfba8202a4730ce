// @ts-check
// The user's edits of repertoires: lines that are added, and moves that are removed. The browser stores them until the user saves the
// repertoire and the server starts with the saved file.

import { warn } from "./dom.js";

/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */
/**
 * The edits of a repertoire, in the order in which the user made them.
 * @typedef {object} Edits
 * @property {string} version Identifies the content of the file that was edited.
 * @property {string[]} lines Moves in UCI notation from the start, separated by commas. A line means that its last move was added. With a
 *   minus sign before the line, it means that its last move was removed.
 * @property {boolean} isSaved Whether the user downloaded the repertoire with all of these edits.
 */

const KEY = "polybook.edits";
/** The maximum length of the edits in a request. The server accepts forms of at most 48 KiB, which also contain the other parameters. */
const LONGEST = 40_000;

/** The edits of all repertoires, if the browser could not store them. */
let unstored = /** @type {Record<string, Edits> | undefined} */ (undefined);

/** @returns {Record<string, Edits>} */
function stored() {
  if (unstored) return unstored;
  try {
    const all = Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {});
    return Object.fromEntries(all.filter(/** @returns {entry is [string, Edits]} */ (entry) => isEdits(entry[1])));
  } catch {
    return {};
  }
}

/**
 * Returns true if a stored value contains edits. Another program that used this port may have stored something else.
 * @param {any} value
 */
function isEdits(value) {
  return typeof value?.version === "string" && Array.isArray(value.lines) && value.lines.every((/** @type {unknown} */ line) => typeof line === "string");
}

/**
 * @param {ServedRepertoire} repertoire
 * @param {Edits | undefined} edits
 */
function store({ name, color }, edits) {
  const { [`${name} ${color}`]: _, ...others } = stored();
  const all = edits?.lines.length ? { ...others, [`${name} ${color}`]: edits } : others;
  try {
    // Removing works even if the storage is full.
    if (Object.keys(all).length) localStorage.setItem(KEY, JSON.stringify(all));
    else localStorage.removeItem(KEY);
    unstored = undefined;
  } catch {
    unstored = all;
    warn("The browser could not store the change, so it is lost when the page is loaded again.");
  }
}

/**
 * Returns the edits of a repertoire.
 * @param {ServedRepertoire} repertoire
 * @returns {Edits}
 */
export function editsOf({ name, color, version }) {
  const edits = stored()[`${name} ${color}`];
  return edits?.version === version ? edits : { version, lines: [], isSaved: false };
}

/**
 * Returns the unsaved edits that were made for an earlier content of the file.
 * @param {ServedRepertoire} repertoire
 */
export function olderLines({ name, color, version }) {
  const edits = stored()[`${name} ${color}`];
  return edits && edits.version !== version && !edits.isSaved ? edits.lines : [];
}

/**
 * Replaces the edits of a repertoire. Returns false if they are too long for a request.
 * @param {ServedRepertoire} repertoire
 * @param {string[]} lines
 */
export function setLines(repertoire, lines) {
  if (encodeURIComponent(lines.join(";")).length > LONGEST) return false;
  store(repertoire, { version: repertoire.version, lines, isSaved: false });
  return true;
}

/**
 * Notes that the user saved a repertoire with its edits.
 * @param {ServedRepertoire} repertoire
 */
export function markSaved(repertoire) {
  store(repertoire, { ...editsOf(repertoire), isSaved: true });
}

/**
 * Returns the numbers of added and of removed moves.
 * @param {string[]} lines The edits.
 */
export function editCounts(lines) {
  const removed = lines.filter(isRemoval).length;
  return { added: lines.length - removed, removed };
}

/**
 * Returns true if an edit removes a move.
 * @param {string} line
 */
function isRemoval(line) {
  return line.startsWith("-");
}

/**
 * Returns the edits that result if the user presses the button of a move, which adds or removes the move.
 * @param {string[]} lines The edits before.
 * @param {string} line The moves from the start that end with the move.
 * @param {"added" | "known" | "new"} state Whether the user added the move, the file contains it, or neither.
 */
export function toggledEdits(lines, line, state) {
  const removal = `-${line}`;
  if (state === "new") return lines.includes(removal) ? lines.filter((other) => other !== removal) : [...lines, line];
  const left = lines.filter((other) => other !== line && !other.startsWith(`${line},`));
  // A move that was added by another move order has no line of its own here, so a removal is needed.
  return state === "added" && left.length < lines.length ? left : [...left, removal];
}
