// @ts-check
// What the server answers, and asking it.

/** @typedef {{ uci: string, san: string }} WrittenMove */
/** @typedef {{ eco: string, name: string }} Opening */
/** @typedef {{ name: string, rating: number }} Player */
/**
 * @typedef {object} Game
 * @property {string} id
 * @property {"white" | "black" | null} winner
 * @property {Player} white
 * @property {Player} black
 * @property {number} year
 * @property {string | null} month
 * @property {string} [speed]
 * @property {string} [uci] The move that was played in the position.
 */
/**
 * @typedef {object} Move
 * @property {string} uci
 * @property {string} san
 * @property {number} averageRating
 * @property {number} white
 * @property {number} draws
 * @property {number} black
 * @property {Game | null} game
 * @property {Opening | null} opening
 */
/**
 * @typedef {object} Board
 * @property {string} fen
 * @property {boolean} check
 * @property {WrittenMove[]} line
 * @property {WrittenMove[]} legal
 * @property {{ uci: string, games: number }[]} transpositions
 */
/**
 * @typedef {object} Answer
 * @property {number} white
 * @property {number} draws
 * @property {number} black
 * @property {Move[]} moves
 * @property {Game[]} recentGames
 * @property {Game[]} topGames
 * @property {Opening | null} opening
 * @property {Board} polybook
 */
/** @typedef {{ total: number, games: Game[] }} GameList */
/** @typedef {{ uci: string, san: string, weight: number, probability: number }} BookMove */
/** @typedef {{ name: string, moves: BookMove[] }} Book */
/** @typedef {{ variant: string, start: string | null, moves: WrittenMove[], problem: string | null, tags: [string, string][] }} Moves */
/** @typedef {Game & Moves} OpenGame */
/** @typedef {{ name: string, games: number, variant: string, files: string[] }} Source */
/** @typedef {{ version: string, games: number, positions: number, years: [number, number] | null, sources: Source[], books: string[] }} About */

/**
 * Asks the server. An answer that is not one is an error with the server's own line.
 * @param {string} path
 * @param {URLSearchParams} [parameters]
 * @param {{ signal?: AbortSignal, accept?: string }} [options]
 * @returns {Promise<Response>}
 */
async function response(path, parameters, { signal, accept = "application/json" } = {}) {
  const query = parameters?.toString();
  const answer = await fetch(query ? `${path}?${query}` : path, { signal, headers: { accept } });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answers ${answer.status}`);
  return answer;
}

/**
 * @template T
 * @param {string} path
 * @param {URLSearchParams} [parameters]
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function ask(path, parameters, signal) {
  return (await response(path, parameters, { signal })).json();
}

/**
 * The text of a game, byte for byte.
 * @param {string} id
 */
export async function pgn(id) {
  const answer = await response(`game/${encodeURIComponent(id)}`, undefined, {
    accept: "application/x-chess-pgn",
  });
  return answer.blob();
}

/** @param {{ white: number, draws: number, black: number }} counts */
export function games(counts) {
  return counts.white + counts.draws + counts.black;
}

/** @param {Game} game */
export function result(game) {
  return game.winner === "white" ? "1-0" : game.winner === "black" ? "0-1" : "½-½";
}

/**
 * An element with classes, text and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * The element of the page with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (found);
}

const NUMBER = new Intl.NumberFormat("en");

/** @param {number} value */
export function number(value) {
  return NUMBER.format(value);
}

/** @param {number} count */
export function gameCount(count) {
  return count === 1 ? "1 game" : `${number(count)} games`;
}

/** @param {number} share From 0 to 1. */
export function percent(share) {
  const value = 100 * share;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)}%`;
}
