// @ts-check
// The list of the games that reach a position, sorted by rating or by date. It shows all games or those with one result. A button
// loads more games.

import { Asking, ask, askFile, words } from "./api.js";
import { button, warn, div, fill, icon, make, p, save, segments, small, span } from "./dom.js";
import { counted, dateWords, eventWords, number } from "./format.js";
import { namesIn, put } from "./state.js";

/** @typedef {import("./api.js").Game} Game */
/** @typedef {import("./api.js").GameList} GameList */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {{ chosen: string, preparer: string, theirs: number, yours: number, choose: (whose: string) => void }} Whose `preparer` is empty if the user prepares. */
/**
 * The contents of the list.
 * @typedef {object} Listed
 * @property {URLSearchParams} question
 * @property {boolean} hasGames Whether a source contains games, instead of only counts. Otherwise the list is empty.
 * @property {string} result The result of the listed games, or an empty string for all.
 * @property {boolean} choosesResult Whether the list has buttons that choose a result. It has none if a filter already chooses one.
 * @property {number | undefined} counted The number of games with this result in the counts of the position, if the counts come from the same sources as the list.
 * @property {Map<string, string>} sans The moves of the position in SAN, by their UCI notation.
 * @property {string} player The names of the player whose results are shown, one on each line, or an empty string.
 * @property {Whose | undefined} whose In a preparation, the choice between the opponent's games and the user's.
 * @property {string} open The id of the open game.
 * @property {string} sort The order that the user chose, or an empty string: then a player's games are sorted by date, other games by rating.
 */

/** The number of games in a request. */
const PAGE = 20;
/** The maximum number of games that are saved as PGN. */
const SAVED = 200;

/** The results of the games as buttons: those of the colors, and those of a player. */
const RESULTS = /** @type {[string, string][]} */ ([["", "All"], ["1-0", "1–0"], ["1/2-1/2", "½–½"], ["0-1", "0–1"]]);
const OWN_RESULTS = /** @type {[string, string][]} */ ([["", "All"], ["win", "Won"], ["draw", "Drawn"], ["loss", "Lost"]]);

/** The list of the games, and the buttons for its order. */
export class GamesList {
  /** @type {Listed | undefined} */
  #listed;
  /** @type {Game[]} */
  #games = [];
  #total = 0;
  /** @type {number | null} */
  #next = null;
  #asking = new Asking();
  /** Whether a request for more games is running. */
  #isBusy = false;
  #place;
  #head;
  #open;
  #sorted;
  #chooses;

  /**
   * @param {HTMLElement} place
   * @param {HTMLElement} head The heading, with the buttons for the results and the order.
   * @param {(id: string) => void} open
   * @param {(sort: string) => void} sorted Called when the user chooses another order.
   * @param {(result: string) => void} chooses Called when the user chooses another result.
   */
  constructor(place, head, open, sorted, chooses) {
    this.#place = place;
    this.#head = head;
    this.#open = open;
    this.#sorted = sorted;
    this.#chooses = chooses;
  }

  #order() {
    const { sort, player } = this.#listed ?? {};
    return ["rating", "recent"].find((order) => order === sort) ?? (player ? "recent" : "rating");
  }

  /**
   * Lists other games. The old ones stay until the new ones arrive.
   * @param {Listed} listed
   */
  async show(listed) {
    this.#listed = listed;
    const signal = this.#asking.next();
    if (!listed.hasGames) {
      fill(this.#head);
      fill(this.#place);
      this.#place.removeAttribute("aria-busy");
      return;
    }
    this.#place.setAttribute("aria-busy", "true");
    const stale = setTimeout(() => this.#place.classList.add("stale"), 150);
    try {
      const { total, games, next } = await this.#ask(listed.question, { sort: this.#order(), fold: "match" }, signal);
      this.#total = total;
      this.#games = games;
      this.#next = next;
      this.#draw();
    } catch (error) {
      if (!signal.aborted) fill(this.#place, p("problem", words(error)));
    } finally {
      clearTimeout(stale);
      if (!signal.aborted) {
        this.#place.classList.remove("stale");
        this.#place.removeAttribute("aria-busy");
      }
    }
  }

  /**
   * @param {URLSearchParams} question
   * @param {Record<string, string | number>} others
   * @param {AbortSignal} signal
   */
  async #ask(question, others, signal) {
    const parameters = put(new URLSearchParams(question), { limit: PAGE, duplicates: "once", ...others });
    const list = /** @type {GameList} */ (await ask("games", parameters, signal));
    signal.throwIfAborted();
    return list;
  }

  #draw() {
    const listed = this.#listed;
    if (!listed) return;
    const hadFocus = this.#place.contains(document.activeElement);
    const order = segments(
      { "aria-label": "Order of the games" },
      [["rating", "Best rated"], ["recent", "Latest"]],
      this.#order(),
      (sort) => {
        this.#sorted(sort);
        void this.show({ ...listed, sort });
      },
    );
    const download = button(
      { class: "small plain", title: `Save up to ${SAVED} games as PGN`, "data-focus": "pgn" },
      [icon("save"), "PGN"],
      () => void this.#save(listed),
    );
    fill(this.#head, make("h3", "", "Games"), ...(listed.whose ? [whoseGames(listed.whose)] : this.#results(listed)), div({ id: "games-tools" }, order, download));
    if (!this.#games.length) {
      fill(this.#place, p("card none", "There are no games to list."));
      return;
    }
    const list = make("ul", "", ...this.#games.map((game) => this.#item(game, listed)));
    const copies = this.#games.reduce((all, game) => all + (game.copies ?? 0), 0);
    // More duplicates may be hidden among the games that are not shown yet.
    const shown = `${number(this.#games.length)} of ${number(this.#total)}${copies ? ` · ${counted(copies, "duplicate")}${this.#next === null ? "" : " of these"} hidden` : ""}`;
    // The number of listed games may differ from that in the table of moves. Say why, because it looks like an error.
    const all = listed.counted;
    const duplicates = listed.question.get("duplicates") === "once" ? "" : "counts duplicates, and ";
    const isSame = all === undefined || all === this.#total || (all === this.#total + copies && this.#next === null);
    const foot = p("foot", span("", shown, ...(isSame ? [] : [" ", small(`The ${listed.result ? "bar" : "table of moves"} has ${counted(all)}. It ${duplicates}leaves out games that end here.`)])));
    if (this.#next !== null) foot.append(button({ "data-focus": "more-games" }, ["Show more"], () => void this.#more(listed)));
    fill(this.#place, div("card games", list, foot));
    if (hadFocus && document.activeElement === document.body) list.querySelector("button")?.focus({ preventScroll: true });
  }

  /**
   * Returns the buttons that choose a result, or the chosen one with a button that lists all games again.
   * @param {Listed} listed
   */
  #results({ result, player, choosesResult, counted: counts = 0, question }) {
    if (!choosesResult) return [];
    const results = player ? OWN_RESULTS : RESULTS;
    const chosen = results.find(([value]) => value === result && value);
    if (!chosen) return [segments({ "aria-label": "Result of the games" }, results, "", this.#chooses)];
    const all = button({ class: "small one-result", "data-focus": `Result of the games ${result}`, "aria-label": `${chosen[1]}, ${counted(this.#total)}: list all games` }, [`${chosen[1]} · ${number(this.#total)}`, icon("close")], () => this.#chooses(""));
    // The bar that lists these games counts duplicates.
    const isFewer = this.#total < counts && question.get("duplicates") !== "once";
    return [all, ...(isFewer ? [small(`of ${number(counts)} with duplicates`)] : [])];
  }

  /** @param {Listed} listed */
  #more({ question }) {
    return this.#add(async (signal) => {
      const skip = this.#next ?? 0;
      const { games, next } = await this.#ask(question, { sort: this.#order(), fold: "match", skip }, signal);
      this.#next = next;
      return this.#games.push(...games) - games.length;
    });
  }

  /**
   * Shows the other games of a match after the game that represents them.
   * @param {Game} game
   * @param {Listed} listed
   */
  #unfold(game, { question, player }) {
    const [one, other] = namesIn(player).some((name) => same(name, game.black.name)) ? [game.black, game.white] : [game.white, game.black];
    const skip = game.match?.skip ?? 0;
    const match = { ...(game.event && { event: game.event }), player: one.name, opponent: other.name, limit: 100, sort: "recent", skip };
    return this.#add(async (signal) => {
      const { games, next, total } = await this.#ask(question, match, signal);
      const others = games.filter(({ id }) => !this.#games.some((known) => known.id === id));
      const at = this.#games.indexOf(game);
      this.#games.splice(at, 1, { ...game, match: undefined }, ...others);
      // If the match has more games than one response, the last game gets the button that loads the others.
      const last = this.#games[at + others.length];
      if (last && next !== null) last.match = { more: total - next, skip: next };
      return at + 1;
    });
  }

  /**
   * Adds games to the list, unless other games are being added. The focus moves to the first new game.
   * @param {(signal: AbortSignal) => Promise<number>} read Adds the games, and returns the index of the first one.
   */
  async #add(read) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#place.setAttribute("aria-busy", "true");
    const { signal } = this.#asking;
    try {
      const first = await read(signal);
      this.#draw();
      this.#place.querySelectorAll("li")[first]?.querySelector("button")?.focus();
    } catch (error) {
      if (!signal.aborted) warn(error);
    } finally {
      this.#isBusy = false;
      if (!signal.aborted) this.#place.removeAttribute("aria-busy");
    }
  }

  /**
   * Saves the first games of the list, without the duplicates that it hides.
   * @param {Listed} listed
   */
  async #save({ question }) {
    const parameters = put(new URLSearchParams(question), { limit: SAVED, sort: this.#order(), duplicates: "once" });
    try {
      save(await askFile("games", parameters, this.#asking.signal), "games.pgn");
    } catch (error) {
      warn(error);
    }
  }

  /**
   * @param {Game} game
   * @param {Listed} listed
   */
  #item(game, listed) {
    const { sans, open, whose } = listed;
    // Elsewhere in a preparation, green means that the user won. The results of the opponent's games are therefore in the colors of White
    // and Black.
    const player = whose?.chosen === "theirs" ? "" : listed.player;
    const [white, black] = pointsOf(game);
    const line = (/** @type {Game["white"]} */ { name, rating }, /** @type {boolean} */ won) =>
      span("", make(won ? "b" : "span", {}, name || "?"), ...(rating ? [small(rating)] : []));
    const facts = [game.eco, game.plies && counted(Math.ceil(game.plies / 2), "move")];
    const result = game.winner ? `${game.winner === "white" ? "White" : "Black"} won` : game.unfinished ? "no result" : "draw";
    const row = button(
      { class: "game", "data-game": game.id, "data-focus": `game${game.id}`, "aria-current": game.id === open ? "true" : undefined },
      [
        game.unindexed
          ? make("small", { class: "san", title: "The game continues, but its next move is not in the index, which was made with --max-ply" }, "not indexed")
          : span("san", game.uci ? (sans.get(game.uci) ?? "") : ""),
        span({ class: "points", "aria-hidden": "true" }, point(white), point(black)),
        span("names", line(game.white, game.winner === "white"), line(game.black, game.winner === "black"), span("unseen", result)),
        span("event", span("", eventWords(game.event).name), small(facts.filter(Boolean).join(" · "))),
        span("date", dateWords(game.date)),
      ],
      () => this.#open(game.id),
    );
    const item = make("li", { class: outcome(game, player) }, row);
    const more = game.match?.more;
    if (more) {
      const title = `${counted(more, "more game")} of these two in this event`;
      item.append(button({ class: "folded", title, "aria-label": title, "data-focus": `match${game.id}` }, [`+${more} more`], () => void this.#unfold(game, listed)));
    }
    return item;
  }
}

/** @param {Whose} whose */
function whoseGames({ chosen, preparer, theirs, yours, choose }) {
  return segments({ "aria-label": "Whose games" }, [["theirs", "Theirs ", small(number(theirs))], ["yours", preparer ? `${preparer}’s ` : "Yours ", small(number(yours))]], chosen, choose);
}

/** @param {Game} game */
function pointsOf({ winner, unfinished }) {
  if (unfinished) return ["–", "–"];
  return winner === null ? ["½", "½"] : winner === "white" ? ["1", "0"] : ["0", "1"];
}

/** @param {string | undefined} text */
function point(text) {
  return make(text === "1" ? "b" : "span", {}, text ?? "");
}

/**
 * Returns the CSS class of a game. It depends on the color that won or, if a player is chosen, on the player's result.
 * @param {Game} game
 * @param {string} player
 */
function outcome(game, player) {
  const { winner, unfinished } = game;
  if (unfinished) return "open";
  if (!winner) return player ? "even" : "draw";
  if (!player) return winner;
  return namesIn(player).some((name) => same(name, game[winner].name)) ? "win" : "loss";
}

/**
 * @param {string} one
 * @param {string} other
 */
function same(one, other) {
  return one.toLowerCase() === other.toLowerCase();
}
