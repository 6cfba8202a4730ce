// @ts-check
// The search field. It finds players, events and openings by name, and accepts a FEN, moves or a game.

import { on } from "./dom.js";
import { focusView } from "./elements.js";
import { ask, suggestions, words } from "./api.js";
import { counted, plyNumber } from "./format.js";
import { firstPly } from "./line.js";
import { Combobox, marked } from "./suggest.js";

/** @typedef {import("./api.js").Moves} Moves */
/** @typedef {import("./api.js").Suggestion} Suggestion */
/** @typedef {import("./suggest.js").Group} Group */
/** @typedef {import("./suggest.js").Option} Option */
/**
 * The actions of the search.
 * @typedef {object} Searched
 * @property {(name: string) => void} player
 * @property {(name: string) => void} event
 * @property {(moves: string[]) => void} opening
 * @property {(read: Moves) => void} position
 * @property {(problem: string, text: string) => void} wrong
 * @property {() => { variant: string, source: string | undefined }} where
 */

/** The maximum length of a text in a request. */
const LONGEST = 6000;

/**
 * Turns an input field into a search field.
 * @param {HTMLInputElement} input
 * @param {Searched} searched
 */
export function buildSearch(input, searched) {
  const done = (/** @type {() => void} */ act) => () => {
    input.value = "";
    // In the field, the arrow keys would not move along the line.
    input.blur();
    focusView();
    act();
  };
  const read = async (/** @type {string} */ text) => {
    try {
      const found = await readPosition(text, searched.where().variant);
      if (found.problem && !found.moves.length && !found.start) searched.wrong(found.problem, text);
      else searched.position(found);
    } catch (error) {
      searched.wrong(words(error), text);
    }
  };
  const find = async (/** @type {string} */ text, /** @type {AbortSignal} */ signal) => {
    if (isPosition(text)) return positionGroups(text, signal, searched.where().variant, (found) => done(() => searched.position(found)));
    return nameGroups(text, signal, searched, done);
  };
  const enter = (/** @type {string} */ text) => {
    if (isPosition(text)) void read(text);
    else searched.wrong(`nothing is called “${text}”`, text);
  };
  new Combobox(input, find, (text) => done(() => enter(text))());
  on(input, "keydown", (event) => {
    // If suggestions are open, the key has already closed them and does nothing more.
    if (event.key !== "Escape" || event.defaultPrevented) return;
    input.value = "";
    input.blur();
  });
  on(input, "paste", (event) => {
    const text = event.clipboardData?.getData("text/plain").trim() ?? "";
    if (input.value || !isPosition(text)) return;
    // Read the text directly, because the input field would join its lines.
    event.preventDefault();
    input.blur();
    void read(text);
  });
}

/**
 * @param {string} text
 * @param {string} variant
 * @param {AbortSignal} [signal]
 * @returns {Promise<Moves>}
 */
async function readPosition(text, variant, signal) {
  const problem = isFen(text) ? fenProblem(text) : "";
  if (problem) throw new Error(problem);
  const parameters = new URLSearchParams({ text: condensed(text) });
  if (variant) parameters.set("variant", variant);
  return ask("read", parameters, signal);
}

/**
 * Shortens a game so that it fits into a request: removes comments, and tags that do not affect its moves.
 * @param {string} text
 */
function condensed(text) {
  if (text.length < 1000) return text;
  const plain = text
    .replace(/\{[^}]*\}|\$\d+/g, " ")
    .replace(/^\s*\[(?!FEN|SetUp|Variant)[^\]]*\]\s*$/gm, "")
    .replace(/\s+/g, " ");
  return plain.slice(0, LONGEST);
}

/** @param {string} text */
function isFen(text) {
  return /^[pnbrqkPNBRQK1-9~]+\//.test(text.trim());
}

/**
 * Returns true if a text is a position, moves or a game, rather than a name.
 * @param {string} text
 */
function isPosition(text) {
  const plain = text.trim();
  if (isFen(plain) || /^\[\w+ "/.test(plain) || /^\d+\s*\.+\s*\S/.test(plain)) return true;
  const move = /^([KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](=?[QRBNqrbn])?|O-O(-O)?|0-0(-0)?)[+#]?[!?]*$/;
  const parts = plain.split(/[\s,]+/);
  return parts.every((part) => move.test(part)) || (parts.length > 1 && move.test(parts[0] ?? "") && move.test(parts[1] ?? ""));
}

/**
 * Returns what is wrong with the board of a FEN, naming the rank, or an empty string.
 * @param {string} fen
 */
export function fenProblem(fen) {
  const board = (fen.trim().split(/[\s_]/)[0] ?? "").replace(/\[.*/, "");
  const ranks = board.split("/");
  if (ranks.length < 8) return `a FEN has 8 ranks, this one has ${ranks.length}`;
  for (const [index, rank] of ranks.slice(0, 8).entries()) {
    const squares = [...rank.replaceAll("~", "")].reduce((all, letter) => all + (Number(letter) || 1), 0);
    if (squares !== 8) return `rank ${8 - index} has ${counted(squares, "square")} (“${rank}”)`;
    const letter = /[^pnbrqkPNBRQK1-8~]/.exec(rank)?.[0];
    if (letter) return `rank ${8 - index} has “${letter}”, which is not a piece`;
  }
  return "";
}

/**
 * @param {string} text
 * @param {AbortSignal} signal
 * @param {string} variant
 * @param {(found: Moves) => () => void} take
 * @returns {Promise<Group[]>}
 */
async function positionGroups(text, signal, variant, take) {
  const problem = isFen(text) && fenProblem(text);
  if (problem) return [{ message: `Not a position: ${problem}`, options: [] }];
  const found = await readPosition(text, variant, signal);
  if (!found.moves.length && !found.start) return [{ message: found.problem ?? "No moves", options: [] }];
  const count = counted(found.moves.length, "half-move");
  const options = [{ content: [lineWords(found)], more: found.moves.length ? count : "position", take: take(found) }];
  return [{ message: found.problem ? `The line ends before ${found.problem}` : undefined, options }];
}

/**
 * Describes the last moves of a line.
 * @param {Moves} read
 */
function lineWords({ moves, start }) {
  if (!moves.length) return start ? "Go to this position" : "Starting position";
  const first = firstPly(start ?? "");
  const from = Math.max(0, moves.length - 6);
  const parts = moves.slice(from).map(({ san }, index) => {
    const ply = first + from + index;
    return ply % 2 === 0 || index === 0 ? `${plyNumber(ply)} ${san}` : san;
  });
  return `${from ? "… " : ""}${parts.join(" ")}`;
}

/**
 * @param {string} text
 * @param {AbortSignal} signal
 * @param {Searched} searched
 * @param {(act: () => void) => () => void} done
 * @returns {Promise<Group[]>}
 */
async function nameGroups(text, signal, searched, done) {
  const { source } = searched.where();
  const [players, events, openings] = await Promise.all([
    // The request fails for sources of counts, which contain no names.
    suggestions("player", text, source, 4, signal).catch(() => []),
    suggestions("event", text, source, 3, signal).catch(() => []),
    suggestions("opening", text, source, 3, signal),
  ]);
  /** @type {[string, Suggestion[], (found: Suggestion) => void][]} */
  const kinds = [
    ["Players", players, ({ name }) => searched.player(name)],
    ["Events", events, ({ name }) => searched.event(name)],
    ["Openings", openings, ({ uci = "" }) => searched.opening(uci.split(",").filter(Boolean))],
  ];
  const option = (/** @type {Suggestion} */ found, /** @type {(found: Suggestion) => void} */ act) => ({
    content: marked(found.name, text),
    more: suggestionWords(found),
    take: done(() => act(found)),
  });
  const exact = kinds.map(([heading, found, act]) => ({ heading, options: found.filter(({ distance }) => !distance).map((one) => option(one, act)) }));
  const hits = exact.filter(({ options }) => options.length);
  const [player] = players;
  const closest = player?.distance === 1 ? [{ message: "Did you mean:", options: [option(player, ({ name }) => searched.player(name))] }] : [];
  if (hits.length) return [...hits, ...closest];
  // Unlike in other fields, Enter takes even a similar name here, because the page then shows which name was taken.
  const near = kinds.flatMap(([, found, act]) => found.map((one) => ({ one, act })));
  near.sort((a, b) => a.one.distance - b.one.distance);
  const message = `Nothing is called “${text}”.${near.length ? " Did you mean:" : ""}`;
  return [{ message, options: near.slice(0, 5).map(({ one, act }) => option(one, act)) }];
}

/** @param {Suggestion} suggestion */
export function suggestionWords({ games, since, until, eco }) {
  const years = since && (since.slice(0, 4) === until?.slice(0, 4) ? since.slice(0, 4) : `${since.slice(0, 4)}–${until?.slice(0, 4)}`);
  return [eco, counted(games), years].filter(Boolean).join(" · ");
}
