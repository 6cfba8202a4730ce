// @ts-check
// Requests to the server, and the types of its answers.

/** @typedef {{ uci: string, san: string }} WrittenMove */
/** @typedef {{ eco: string, name: string }} Opening */
/** @typedef {{ name: string, rating: number, title?: string }} Player */
/**
 * A game in a list.
 * @typedef {object} Game
 * @property {string} id
 * @property {"white" | "black" | null} winner
 * @property {boolean} [unfinished] Whether the game has no result.
 * @property {Player} white
 * @property {Player} black
 * @property {string | null} [uci] The move that was played in the position. Null if the game ended there, or if `unindexed` is set.
 * @property {boolean} [unindexed] Whether the game continues, but its next move is not indexed.
 * @property {string | null} [date] A date such as "2015-05-03", or a shorter one if the day or the month is unknown.
 * @property {string | null} [event]
 * @property {string | null} [eco]
 * @property {number} [plies]
 * @property {number} [copies] The number of duplicates of this game that the list does not show.
 * @property {{ more: number, skip?: number }} [match] The number of further games of the same two players in this event.
 */
/**
 * A move that was played in a position, and the results of its games. If a player is chosen, it also contains the player's results.
 * @typedef {object} Move
 * @property {string} uci
 * @property {string} san
 * @property {number} [averageRating]
 * @property {number} white
 * @property {number} draws
 * @property {number} black
 * @property {number} [wins]
 * @property {number} [losses]
 * @property {number | null} [averageOpponentRating]
 * @property {number | null} [performance] The performance rating, if there are at least ten games.
 * @property {number} [performanceGames] The number of games that have a result and a rated opponent.
 * @property {number} [ratingGames] The number of games with a known rating, if not all ratings are known.
 * @property {number} [unfinished] The number of games without a result, which are included in the draws.
 * @property {string} [lastPlayed]
 * @property {Opening | null} opening
 * @property {import("./format.js").Counts & { games: number }} [resulting] The results of the position after the move, by any order of moves.
 */
/**
 * The data of a position that the page cannot calculate, because it does not know the rules of chess.
 * @typedef {object} Board
 * @property {string} fen
 * @property {boolean} check
 * @property {WrittenMove[]} line
 * @property {WrittenMove[]} legal
 * @property {{ uci: string, games: number }[] | null} transpositions For a move, the number of games that reach the position after it by another move order. Null if these numbers are unknown.
 * @property {number} [minGame] If rare positions are missing from the counts, the minimum number of moves in a position.
 * @property {number} [otherStarts] The number of games that pass the filters but begin in another position than the line.
 * @property {number} [maxPly] The number of half-moves of each game that were counted, if the games were not counted to their end.
 * @property {({ uci: string, depth: number } & Evaluation)[]} [evals] The evaluations of the positions after the legal moves.
 * @property {{ read: number, moves: { uci: string, games: number, mean: number, median: number }[] }} [clocks] The mean and median times of the moves in seconds.
 */
/**
 * The "counts" of a position: the results of the games that reach it, and its moves. If a player is chosen, they also contain the
 * player's results.
 * @typedef {object} Answer
 * @property {number} white
 * @property {number} draws
 * @property {number} black
 * @property {number} [wins]
 * @property {number} [losses]
 * @property {number} [unfinished] The number of games without a result, which are included in the draws.
 * @property {number} [performance] The performance rating, if there are at least ten games.
 * @property {number} [performanceGames] The number of games that have a result and a rated opponent.
 * @property {number} [opponentRating] The mean rating of the rated opponents.
 * @property {number} [playerRating]
 * @property {number} [playerRatingGames] The number of games in which the player's own rating is known.
 * @property {string} [lastPlayed]
 * @property {Move[]} moves
 * @property {Opening | null} opening
 * @property {Board} polybook
 */
/**
 * @template Y
 * @typedef {{ year: Y, white: number, draws: number, black: number, unfinished?: number, moves: Record<string, number> }} YearOf
 */
/** @typedef {YearOf<number>} Year */
/** @typedef {YearOf<number | null>} AnyYear The year is null for games without one. */
/** @typedef {{ total: number, games: Game[], next: number | null }} GameList */
/** @typedef {{ uci: string, san: string, weight: number, probability: number }} BookMove */
/** @typedef {{ name: string, moves: BookMove[] }} Book */
/** @typedef {{ variant: string, start: string | null, moves: WrittenMove[], problem: string | null, tags: [string, string][] }} Moves */
/** @typedef {{ cp: number } | { mate: number }} Evaluation From White's point of view: in centipawns, or the number of moves until mate. */
/** @typedef {WrittenMove & { clk?: number, eval?: Evaluation, nags?: number[], comments?: string[] }} GameMove */
/**
 * @typedef {object} OpenGame
 * @property {string} id
 * @property {Player} white
 * @property {Player} black
 * @property {string} result
 * @property {string | null} [event]
 * @property {string | null} [site]
 * @property {string | null} [date]
 * @property {string | null} [round]
 * @property {string | null} [eco]
 * @property {Opening | null} opening
 * @property {string} variant
 * @property {string | null} start
 * @property {GameMove[]} moves
 * @property {string[]} [comments] The comments before the first move.
 * @property {(number | null)[]} reached The number of games that reach the position after each half-move.
 * @property {number | null} novelty The index of the move after which no position of the game occurs in another game.
 * @property {number | null} ply The number of half-moves after which the game reaches the position of the request.
 * @property {string | null} problem
 * @property {[string, string][]} tags
 */
/** @typedef {{ name: string, games: number, met?: number, since?: string, until?: string, eco?: string, uci?: string, distance: number }} Suggestion `met` is the number of games against the players whom the request names. */
/**
 * The number of games that each value of a filter would select.
 * @typedef {object} Facets
 * @property {number} games
 * @property {Record<string, number>} speeds
 * @property {Record<string, number>} ratings
 * @property {number} unknownRatings The number of games without a known rating.
 * @property {Record<string, number>} years
 * @property {Record<string, number>} [variants]
 * @property {{ white: number, black: number }} [colors]
 */
/** @typedef {{ rating: string, white: number, draws: number, black: number, unfinished?: number }} RatingScore `draws` does not contain the unfinished games. */
/**
 * An opening of the games of a position: a family, or a variation. Scores are in percent.
 * @typedef {object} OpeningRow
 * @property {string} name
 * @property {string[]} eco The first and the last ECO code.
 * @property {number} white
 * @property {number} draws The number of drawn games, without the games that have no result.
 * @property {number} black
 * @property {number} [unfinished]
 * @property {number} [wins]
 * @property {number} [losses]
 * @property {number | null} score The player's score, or White's.
 * @property {[number, number] | null} scoreRange
 * @property {number} [points] The player's points minus the points that the ratings of the opponents predict.
 * @property {number} [pointsAboveAverage] The player's points minus the points that the player's average score would give.
 * @property {number | null} [performance]
 * @property {number | null} [rating] Without a player, the mean of the known ratings.
 * @property {string | null} [lastPlayed]
 * @property {string[]} line The moves that lead to the position in which the opening is usually reached.
 * @property {number | null} lineGames The number of games that reach this position. Some of them may have become another opening. Null if the position is not indexed.
 * @property {OpeningRow[]} [variations]
 */
/** @typedef {{ otherStarts?: number, games: number, unnamed: number, averageScore: number | null, families: OpeningRow[] }} Openings */
/** @typedef {{ games: number, entries?: number, answers?: number, minGame?: number, singleGame?: number, unanswered?: number, openings?: { name: string, answers: number }[], bytes: number, command: string | null }} BookSize A repertoire has answers instead of entries. The command is null if the book would be empty. */
/** @typedef {WrittenMove & { oneIn: number | null, games: number }} Gap An opponent's move that the repertoire does not answer: a gap, or a move after the end of a line. One in `oneIn` games reaches it. */
/** @typedef {{ name: string, id?: string, color: "white" | "black", pgn: boolean, practise: boolean, version: string }} ServedRepertoire A repertoire that the user sent has an `id`, a secret that requests contain in place of the name. `pgn` says whether it is a PGN file, which can be edited. `version` identifies the content of the file. */
/**
 * The next position to practise, or null if nothing is left, with the result of the previous answer.
 * @typedef {object} Practice
 * @property {number} due
 * @property {number} again The number of positions that are due because the last answer, which was given today, was wrong.
 * @property {number} new
 * @property {{ right: boolean, moves: WrittenMove[], played: WrittenMove, days: number }} [graded]
 * @property {{ fen: string, check: boolean, line: WrittenMove[], legal: WrittenMove[], start: string | null, kept: number, isNew: boolean, number: number } | null} question
 * @property {{ days: number, positions: number } | null} next The next day with due positions: in how many days it is, and how many are due then.
 */
/** @typedef {WrittenMove & { answers?: WrittenMove[], added?: boolean }} KnownMove A move of a repertoire. An opponent's move has the answers to it. `added` is true for a move that only the edits of the user contain. */
/** @typedef {ServedRepertoire & { isKnown: boolean, oneIn: number | null, moves: KnownMove[], gaps: Gap[], lineEnds: Gap[] }} Repertoire The report of a repertoire about a position. `lineEnds` are the moves if a line of the repertoire ends here. */
/** @typedef {{ moves: string, move: string, oneIn: number, games: number }} LineGap An opponent's move, `move`, that a repertoire does not answer. `moves` is the line up to and including this move. */
/**
 * The gaps of a whole repertoire, and the opponent's moves after the ends of its lines. The most frequent ones come first.
 * @typedef {object} Gaps
 * @property {string | null} start The position in which lines start, if it is not the usual one.
 * @property {number} total The number of all gaps; not all of them may be listed.
 * @property {LineGap[]} gaps
 * @property {number} totalLineEnds
 * @property {LineGap[]} lineEnds
 * @property {{ ply: number, share: number, ended: number }[]} coverage The share of the games that is still in the repertoire after each half-move of the opponent.
 * @property {{ line: string, moves: string[] }[]} severalMoves The positions in which the repertoire has several moves.
 */
/** @typedef {{ name: string, games: number | null, notCounted?: number, years?: [number, number] | null, variant: string, files: string[], counts?: boolean }} Source */
/** @typedef {{ read: number, of: number | null, done?: number | null }} Indexing The progress of an index: `read` and `of` are bytes of games, and `done` is the finished fraction of the whole work, from 0 to 1. */
/** @typedef {{ games: number, white: number, draws: number, black: number, unfinished?: number }} Results `draws` does not contain the unfinished games. */
/** @typedef {Results & { rating: number | null, lastPlayed: string | null }} PlayerGames */
/**
 * A move in the preparation for an opponent.
 * @typedef {object} PreparedMove
 * @property {string} uci
 * @property {string} san
 * @property {Opening | null} opening
 * @property {Results & { recent: number }} theirs
 * @property {Results} yours
 * @property {[number, number] | null} scoreRange The range of the user's score in percent.
 * @property {number | null} expectedScore The score in percent that the ratings of the opponents predict.
 * @property {(WrittenMove & { games: number, source: "repertoire" | "games" }) | null} answer
 * @property {boolean} gap
 * @property {boolean} [lineEnd] Whether a line of the repertoire ends before the move.
 */
/** @typedef {Results & { play: string[], san: string[], opening: Opening | null, chance: number, theirs: Results & { recent: number }, score: number | null, scoreRange: [number, number] | null, expectedScore: number | null, loss: number | null, answer: PreparedMove["answer"], gap: boolean, lineEnd?: boolean }} PreparedLine `loss` is null unless the player is likely to lose points. */
/**
 * The preparation for an opponent: the opponent's moves, the user's results after them, and the user's answers.
 * @typedef {object} Preparation
 * @property {PlayerGames} theirs
 * @property {PlayerGames} yours
 * @property {PlayerGames} met
 * @property {{ theirs: number, yours: number }} here
 * @property {number | null} recentSince
 * @property {PreparedMove[]} moves
 * @property {PreparedLine[]} [lines] The lines to study first.
 * @property {{ judged: number, listed: number, byChance: number }} [weakLines] The numbers of lines that were judged, that are listed because they cost points, and that chance alone would list.
 * @property {number} [halfLife] The number of years after which a game counts half in the chances of the lines.
 * @property {PreparedLine[]} [lineEnds] The likeliest lines at whose end a line of the repertoire ends.
 * @property {() => Promise<Blob>} file Requests these lines as PGN. The server does not send this property.
 */
/** @typedef {{ version: string, games: number | null, notCounted?: number, years: [number, number] | null, sources: Source[], conditions?: string[], variants?: Record<string, number>, books: string[], repertoires?: ServedRepertoire[], me?: string[], indexing?: Indexing | null }} About */

/** Requests of one kind. Only one of them runs at a time: starting a request aborts the previous one. */
export class Asking {
  #controller = new AbortController();

  get signal() {
    return this.#controller.signal;
  }

  next() {
    this.end();
    this.#controller = new AbortController();
    return this.signal;
  }

  end() {
    this.#controller.abort();
  }
}

/** The server refused a request. The message says why. */
export class Refused extends Error {
  /**
   * @param {string} text
   * @param {number} status
   */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

/** The maximum length of a query string with edits of a repertoire. The headers of a request have at most 8 KiB. */
const LONGEST = 4000;

/**
 * Sends a request. The path is an address, or relative to the page. If edits of a repertoire make its query string too long, sends all parameters as a form.
 * @param {string} path
 * @param {URLSearchParams | undefined} parameters
 * @param {AbortSignal | undefined} signal
 * @param {string} accept
 * @param {(answer: Response) => Promise<any>} read
 * @param {Blob | URLSearchParams} [sent] The body of the request. The parameters are a form if they are the body.
 */
async function asked(path, parameters, signal, accept, read, sent) {
  const query = parameters?.toString() ?? "";
  const body = sent ?? (query.length > LONGEST && parameters?.has("edits") ? parameters : undefined);
  const address = new URL(query && body !== parameters ? `${path}?${query}` : path, document.baseURI);
  // To another origin, this header would need a request of its own before each request.
  const own = address.origin === location.origin ? { "x-polybook": "1" } : undefined;
  try {
    const answer = await fetch(address, { ...(body && { method: "POST", body }), signal, headers: { accept, ...own } });
    if (answer.ok) return await read(answer);
    const isJson = answer.headers.get("content-type") === "application/json";
    const text = isJson ? (await answer.json()).error : (await answer.text()).trim();
    // A reverse proxy sends these statuses if the server behind it is not running.
    if (answer.status === 502 || answer.status === 504) throw new Unreachable();
    throw new Refused(text || `the server answers ${answer.status}`, answer.status);
  } catch (error) {
    if (signal?.aborted || error instanceof Refused) throw error;
    throw new Unreachable("polybook serve does not answer.");
  }
}

/**
 * @template T
 * @param {string} path
 * @param {URLSearchParams} [parameters]
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function ask(path, parameters, signal) {
  return asked(path, parameters, signal, "application/json", (answer) => answer.json());
}

/**
 * Sends a request that stores something.
 * @template T
 * @param {string} path
 * @param {URLSearchParams} parameters
 * @param {Blob} [file] The body of the request. Without it, the parameters are the body.
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export function send(path, parameters, file, signal) {
  return asked(path, parameters, signal, "application/json", (answer) => answer.json(), file ?? parameters);
}

/**
 * Requests a file: games as PGN, or a book.
 * @param {string} path
 * @param {URLSearchParams} [parameters]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Blob>}
 */
export function askFile(path, parameters, signal) {
  return asked(path, parameters, signal, "application/x-chess-pgn, */*;q=0.1", (answer) => answer.blob());
}

/**
 * Requests suggestions for a text.
 * @param {string} field
 * @param {string} text
 * @param {string | undefined} source
 * @param {number} limit
 * @param {AbortSignal} [signal]
 * @param {string[]} [against] Names whose games against the suggested players are counted.
 * @returns {Promise<Suggestion[]>}
 */
export function suggestions(field, text, source, limit, signal, against = []) {
  const parameters = new URLSearchParams({ field, text, limit: String(limit) });
  if (source) parameters.set("source", source);
  for (const name of against) parameters.append("with", name);
  return ask("suggest", parameters, signal);
}

/** @param {unknown} error */
export function words(error) {
  return error instanceof Error ? error.message : String(error);
}
