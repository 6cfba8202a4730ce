// @ts-check
// The requests for a view: the counts of its position, the open game, and the games of the player's colors.

import { Refused, ask, askFile } from "./api.js";
import { warn } from "./dom.js";
import { sum } from "./format.js";
import { sharedPlies } from "./game.js";
import { isMe } from "./me.js";
import { session } from "./session.js";
import { commonPlies, filterQuestion, narrowing, put, question, sourceOnly, ucis } from "./state.js";

/** The number of lines to study first that are requested for a preparation. */
const LINES = 7;

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Facets} Facets */
/** @typedef {import("./api.js").OpenGame} OpenGame */
/** @typedef {import("./api.js").Preparation} Preparation */
/** @typedef {import("./state.js").View} View */

/**
 * Requests the counts of a position: those of all games, or those of the player.
 * @param {View} of
 * @param {boolean} isPlayer
 * @param {AbortSignal} signal
 * @returns {Promise<Answer>}
 */
export async function count(of, isPlayer, signal) {
  const parameters = put(question(of), { moves: 100, recentGames: 0, transpositions: "true", resulting: "true" });
  if (!isPlayer) put(parameters, { topGames: 0 });
  const route = isPlayer ? "player" : "lichess";
  try {
    if (session.timed) return await ask(route, put(new URLSearchParams(parameters), { clocks: "true" }), signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // Reading times from the games failed, for example because their file is compressed. The counts do not need the texts of games.
    session.timed = false;
    warn(error);
  }
  return ask(route, parameters, signal);
}

/**
 * Requests the number of games, without their moves.
 * @param {URLSearchParams} parameters
 * @param {AbortSignal} signal
 */
export async function countGames(parameters, signal) {
  const all = put(new URLSearchParams(parameters), { moves: 0, topGames: 0, recentGames: 0 });
  return sum(/** @type {Answer} */ (await ask("lichess", all, signal)));
}

/**
 * Requests the number of games that the player has with each color.
 * @param {AbortSignal} signal
 */
export async function countColors(signal) {
  const parameters = filterQuestion(session.view);
  parameters.delete("color");
  const key = parameters.toString();
  if (session.colors.key === key) return;
  const facets = /** @type {Facets} */ (await ask("facets", parameters, signal));
  session.colors = { key, white: 0, black: 0, ...facets.colors };
}

/**
 * If the view names a player but no color, chooses a color. With both colors, the table would mix the player's own moves with the
 * opponents' moves. If all repertoires are for one color, the user gets this color, and an opponent the other one. Without games of
 * this color, chooses the color with which the player has more games.
 * @param {AbortSignal} signal
 */
export async function chooseColor(signal) {
  const { filters } = session.view;
  if (!filters.player || filters.color) return;
  await countColors(signal);
  if (signal.aborted) return;
  const { colors, about } = session;
  const isUser = isMe(filters.player);
  const [only, ...others] = new Set(about.repertoires?.map((one) => ((one.color === "white") === isUser ? "white" : "black")));
  const color = only && !others.length && colors[only] ? only : colors.black > colors.white ? "black" : "white";
  session.view = { ...session.view, filters: { ...session.view.filters, color } };
}

/**
 * Requests the preparation for the player of a view.
 * @param {View} of
 * @param {string[]} me The names of the user.
 * @param {Record<string, string>} repertoire The parameters of the user's repertoire.
 * @param {AbortSignal} signal
 * @returns {Promise<Preparation>}
 */
export async function prepare(of, me, repertoire, signal) {
  const parameters = question(of);
  for (const name of ["opponent", "result"]) parameters.delete(name);
  for (const name of me) parameters.append("me", name);
  const { side: _, ...others } = repertoire;
  put(parameters, { ...others, ...(of.halfLife && { halfLife: of.halfLife }), ...(!of.play.length && !of.fen && { lines: LINES }) });
  return { .../** @type {Preparation} */ (await ask("prepare", parameters, signal)), file: () => askFile("prepare", parameters) };
}

/**
 * Requests the game that the view names, unless it is already open. If the line of the view is not the beginning of the game,
 * changes the line: to the game's own moves to the same position or, if the game does not reach this position, to the start of the
 * game.
 * @param {boolean} opens Whether the game is opened so that the page continues to show the same position.
 * @param {AbortSignal} signal
 */
export async function openGame(opens, signal) {
  const { view: wanted, opened, shown } = session;
  if (!wanted.game) return;
  if (!/^[\w-]+$/.test(wanted.game)) throw new Refused(`“${wanted.game}” is not the id of a game`, 404);
  if (opened?.id === wanted.game && !opens && wanted.filters.source === shown?.filters.source) return opened;
  const parameters = question({ ...wanted, filters: sourceOnly(wanted.filters) });
  const game = { .../** @type {OpenGame} */ (await ask(`game/${encodeURIComponent(wanted.game)}`, parameters, signal)), id: wanted.game };
  if (signal.aborted) return game;
  const line = ucis(game.moves);
  const start = game.start ?? "";
  const isOther = wanted.fen !== start;
  if (isOther || (opens && commonPlies(wanted.play, line) < wanted.play.length)) {
    // The game reaches the position by another move order, or starts from another position.
    session.view = { ...wanted, fen: start, play: line.slice(0, game.ply ?? 0), variant: game.variant === "normal" ? "" : game.variant };
  }
  return game;
}

/**
 * Returns the line of the requested view up to the last position that other games share with the open game. If filters are set, returns the
 * whole line, because it is unknown which of its positions have games that pass the filters.
 * @param {OpenGame | undefined} game
 */
export function sharedLine(game) {
  const { play, filters } = session.view;
  return game && !narrowing(filters).length ? play.slice(0, sharedPlies(game, play)) : play;
}
