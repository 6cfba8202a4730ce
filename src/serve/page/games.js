// @ts-check
// The games of a position, and the one that is open.

import { ask, make, number, pgn, result } from "./api.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").Game} Game */
/** @typedef {import("./api.js").GameList} GameList */
/** @typedef {import("./api.js").OpenGame} OpenGame */

/** How many games a page of all games has. */
const PAGE = 20;

/** How many games the server leaves out at most. */
const MOST_SKIPPED = 10_000;

const TABS = /** @type {const} */ ([
  ["top", "Highest rated"],
  ["recent", "Recent"],
  ["all", "All"],
]);

/** The lists of games under the table. */
export class Games {
  #tab = "top";
  #skip = 0;
  #sort = "recent";
  /** @type {Answer | undefined} */
  #answer;
  #question = new URLSearchParams();
  /** Ends when something else is to be listed: an answer that comes later belongs to another heading. */
  #asking = new AbortController();
  #place;
  #open;

  /**
   * @param {HTMLElement} place
   * @param {(id: string) => void} open
   */
  constructor(place, open) {
    this.#place = place;
    this.#open = open;
  }

  /**
   * @param {Answer} answer
   * @param {URLSearchParams} question
   */
  show(answer, question) {
    this.#answer = answer;
    this.#question = question;
    this.#skip = 0;
    void this.#draw();
  }

  async #draw() {
    const answer = this.#answer;
    if (!answer) return;
    this.#asking.abort();
    this.#asking = new AbortController();
    const focused = document.activeElement?.getAttribute("data-games") ?? "";
    const sans = new Map(answer.polybook.legal.map(({ uci, san }) => [uci, san]));
    if (this.#tab === "all") {
      await this.#drawAll(sans, this.#asking.signal);
    } else {
      const games = this.#tab === "top" ? answer.topGames : answer.recentGames;
      this.#place.replaceChildren(this.#tabs(), this.#list(games, sans));
    }
    const again = this.#place.querySelector(`[data-games="${focused}"]`);
    if (focused && again instanceof HTMLElement) again.focus();
  }

  /**
   * @param {Map<string, string>} sans
   * @param {AbortSignal} signal
   */
  async #drawAll(sans, signal) {
    const question = new URLSearchParams(this.#question);
    question.set("skip", String(this.#skip));
    question.set("limit", String(PAGE));
    question.set("sort", this.#sort);
    try {
      const { total, games } = /** @type {GameList} */ (await ask("games", question, signal));
      if (signal.aborted) return;
      this.#place.replaceChildren(this.#tabs(), this.#list(games, sans), this.#pages(total));
    } catch (error) {
      if (signal.aborted) return;
      this.#place.replaceChildren(this.#tabs(), make("p", { class: "problem" }, String(error)));
    }
  }

  #tabs() {
    const tabs = make("div", { class: "tabs", role: "group", "aria-label": "Which games are listed" });
    for (const [name, label] of TABS) {
      const pressed = String(this.#tab === name);
      const tab = make("button", { type: "button", "aria-pressed": pressed, "data-games": name }, label);
      tab.addEventListener("click", () => {
        this.#tab = name;
        this.#skip = 0;
        void this.#draw();
      });
      tabs.append(tab);
    }
    tabs.prepend(make("h3", {}, "Games"));
    return tabs;
  }

  /**
   * @param {Game[]} games
   * @param {Map<string, string>} sans
   */
  #list(games, sans) {
    if (!games.length) return make("p", { class: "quiet" }, "No games reached this position.");
    const list = make("ul", { class: "games" });
    for (const game of games) {
      const year = game.month ?? (game.year ? String(game.year) : "");
      const button = make(
        "button",
        { type: "button", "data-game": game.id },
        make("span", { class: `result ${game.winner ?? "draw"}` }, result(game)),
        make("span", { class: "players" }, side(game.white), make("span", {}, " – "), side(game.black)),
        make("span", { class: "san" }, game.uci ? (sans.get(game.uci) ?? "") : ""),
        make("span", { class: "year" }, year),
      );
      button.addEventListener("click", () => this.#open(game.id));
      list.append(make("li", {}, button));
    }
    return list;
  }

  /** @param {number} total */
  #pages(total) {
    const last = Math.min(this.#skip + PAGE, total);
    const text = total ? `${number(this.#skip + 1)}–${number(last)} of ${number(total)}` : "";
    const step = (/** @type {string} */ label, /** @type {number} */ skip, /** @type {string} */ name) => {
      const button = make("button", { type: "button", "data-games": name }, label);
      button.disabled = skip < 0 || skip >= total || skip > MOST_SKIPPED;
      button.addEventListener("click", () => {
        this.#skip = skip;
        void this.#draw();
      });
      return button;
    };
    const sort = make("select", { "aria-label": "Order of the games", "data-games": "sort" });
    for (const [value, label] of [["recent", "newest first"], ["rating", "highest rated first"], ["id", "as in the file"]]) {
      sort.append(make("option", { value: value ?? "" }, label ?? ""));
    }
    sort.value = this.#sort;
    sort.addEventListener("change", () => {
      this.#sort = sort.value;
      this.#skip = 0;
      void this.#draw();
    });
    return make(
      "div",
      { class: "pages" },
      step("Previous", this.#skip - PAGE, "previous"),
      make("span", {}, text),
      step("Next", this.#skip + PAGE, "next"),
      sort,
    );
  }
}

/** @param {{ name: string, rating: number }} player */
function side({ name, rating }) {
  return make("span", { class: "player" }, name || "?", rating ? make("small", {}, ` ${rating}`) : "");
}

/**
 * Shows the open game next to the board that plays through it.
 * @param {HTMLElement} place
 * @param {OpenGame} game
 * @param {() => void} close
 * @param {(text: string) => void} say
 */
export function showOpenGame(place, game, close, say) {
  const tag = (/** @type {string} */ name) => {
    const value = game.tags.find(([known]) => known === name)?.[1] ?? "";
    return value === "?" || value.startsWith("????") ? "" : value;
  };
  const facts = ["Event", "Round", "Site", "Date", "TimeControl", "ECO", "Termination"].map(tag);
  const copy = make("button", { type: "button" }, "Copy PGN");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(await (await pgn(game.id)).text());
      say("The game is copied.");
    } catch (error) {
      say(String(error));
    }
  });
  const save = make("a", { href: `game/${game.id}`, download: `${game.id}.pgn` }, "Download PGN");
  const shut = make("button", { type: "button", "aria-label": "Close the game", title: "Close the game" }, "✕");
  shut.addEventListener("click", close);
  place.replaceChildren(
    make("h3", {}, side(game.white), make("span", {}, ` ${result(game)} `), side(game.black)),
    make("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    make("p", { class: "actions" }, copy, save, shut),
  );
  if (game.problem) place.append(make("p", { class: "problem" }, `From here the game cannot be played: ${game.problem}`));
  place.hidden = false;
}
