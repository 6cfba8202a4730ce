// @ts-check
// The lines that the user added to repertoires. The browser stores them until the user saves the repertoire and the server starts
// with the saved file.

/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */
/**
 * The lines that were added to a repertoire.
 * @typedef {object} Edits
 * @property {string} version The state of the file to which they were added.
 * @property {string[]} lines Moves in UCI notation from the start, separated by commas. The last move of each was added.
 * @property {boolean} isSaved Whether the user downloaded the repertoire with all of these lines.
 */

const KEY = "polybook.edits";
/** The maximum length of the edits in a request, which has at most 8 KiB. */
const LONGEST = 4000;

/** The edits of all repertoires, if the browser does not store anything. */
let unstored = /** @type {Record<string, Edits>} */ ({});

/** @returns {Record<string, Edits>} */
function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return unstored;
  }
}

/**
 * @param {ServedRepertoire} repertoire
 * @param {Edits | undefined} edits
 */
function store({ name, color }, edits) {
  const { [`${name} ${color}`]: _, ...others } = stored();
  unstored = edits?.lines.length ? { ...others, [`${name} ${color}`]: edits } : others;
  try {
    localStorage.setItem(KEY, JSON.stringify(unstored));
  } catch {
    // The browser does not store anything.
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
 * Returns the lines that were added to another state of the file, and not saved.
 * @param {ServedRepertoire} repertoire
 */
export function olderLines({ name, color, version }) {
  const edits = stored()[`${name} ${color}`];
  return edits && edits.version !== version && !edits.isSaved ? edits.lines : [];
}

/**
 * Replaces the added lines of a repertoire. Returns false if they are too long for a request.
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
