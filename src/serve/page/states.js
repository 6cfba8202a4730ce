// @ts-check
// Messages for cases in which there is nothing to show: no games, an unknown name, an unfinished index, or no server.

import { b, button, div, fill, icon, make, p, small, span } from "./dom.js";
import { counted } from "./format.js";

/** @typedef {import("./api.js").Indexing} Indexing */
/** @typedef {import("./dom.js").Child} Child */

/**
 * Creates a card with a message and ways to continue.
 * @param {string} sign
 * @param {string} title
 * @param {Child[]} content
 * @param {HTMLElement[]} ways
 */
function blank(sign, title, content, ways) {
  return div("card blank", icon(sign), make("h3", "", title), ...content, ...(ways.length ? [div("ways", ...ways)] : []));
}

/**
 * Explains that no game reaches the position, or that no game that reaches it passes the filters.
 * @param {{ all: number, unfiltered: number, back: number, one: { text: string, names: string[], games: number } | undefined, isFiltered: boolean, isOver: boolean, isEnd: boolean, elsewhere: number, hasLine: boolean, variants: [string, string, number][] }} counts `one` is the filter whose removal leaves the most games.
 * @param {{ clear: () => void, back: () => void, remove: (names: string[]) => void, variant: (name: string) => void }} on
 */
export function noGames({ all, unfiltered, back, one, isFiltered, isOver, isEnd, elsewhere, hasLine, variants }, on) {
  if (isOver || isEnd) return blank("grid", isOver ? "The game is over here" : "The game ends here", [], hasLine ? [button("", [icon("back"), "One move back"], on.back)] : []);
  if (variants.length) {
    const ways = variants.map(([name, label, games]) => button("", [`${label} · ${counted(games)}`], () => on.variant(name)));
    return blank("grid", "There are no games of standard chess", [p("", "The games are of other variants. Choose one:")], ways);
  }
  if (elsewhere) {
    const text = `There are ${counted(elsewhere)} of this variant. To see one, paste its FEN or its moves into the search.`;
    return blank("grid", "These games start from other positions", [p("", text)], [button("", ["Remove the variant"], on.clear)]);
  }
  const title = !isFiltered ? "No games reached this position" : all ? `None of the ${counted(all)} reached this position` : "No games pass these filters";
  const ways = [];
  if (one) ways.push(button("main", [`Remove “${one.text}” · ${counted(one.games)}`], () => on.remove(one.names)));
  if (isFiltered) ways.push(button(one ? "" : "main", [unfiltered ? `Remove ${one ? "all" : "the"} filters · ${counted(unfiltered)}` : `Remove ${one ? "all" : "the"} filters`], on.clear));
  if (hasLine) ways.push(button("", [icon("back"), back ? `One move back · ${counted(back)}` : "One move back"], on.back));
  return blank("grid", title, [], ways);
}

/**
 * Explains that no player or event has a name, and offers similar names.
 * @param {string} kind
 * @param {string} name
 * @param {{ name: string, games: number }[]} near
 * @param {(name: string) => void} choose
 * @param {() => void} remove
 */
export function noName(kind, name, near, choose, remove) {
  const ways = near.map((one) => button("", [one.name, small(counted(one.games))], () => choose(one.name)));
  const text = near.length ? "Did you mean:" : "Search for the beginning of any word of the name. Up to two typing errors are allowed.";
  return blank("search", `No ${kind} is called “${name}”`, [p("", text)], [...ways, button("plain", ["Remove this filter"], remove)]);
}

/**
 * Shows the progress of the index.
 * @param {Indexing} indexing
 * @param {string} name
 */
export function reading({ read, of, done: part = null }, name) {
  const isWritten = of !== null && read >= of;
  const done = part === null ? undefined : Math.min(100, Math.round(100 * part));
  const inner = make("i");
  inner.style.width = `${done ?? 0}%`;
  const bar = div({ class: "progress", role: "progressbar", "aria-valuenow": done, "aria-label": isWritten ? "Writing the index" : "Reading the games" }, inner);
  const text = `${done === undefined ? "" : `${done}% is done. `}First the games are read, then the index is written. The next start uses the finished index.`;
  return blank("menu", isWritten ? `Writing the index of ${name}` : `Reading ${name}`, [bar, p("", text)], []);
}

/** The pauses, in seconds, between attempts to reach a server that does not answer. */
const PAUSES = [2, 5, 10, 30];

/** The message above the page: what went wrong, and what the user can do. */
export class Notice {
  #place;
  #timer = 0;
  #failures = 0;

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
  }

  clear() {
    clearInterval(this.#timer);
    this.#failures = 0;
    fill(this.#place);
  }

  /**
   * Shows a problem that the user can solve.
   * @param {string} title
   * @param {string} text
   * @param {[string, () => void] | undefined} way
   * @param {string} [kind]
   */
  show(title, text, way, kind = "bad") {
    clearInterval(this.#timer);
    const act = way && button("small", [way[0]], way[1]);
    const close = button({ class: "small plain icon-only", "aria-label": "Close the message" }, [icon("close")], () => this.clear());
    fill(
      this.#place,
      div({ class: `banner ${kind}`, role: "alert" }, icon("warn"), p("", b(title), ` ${text}`), ...(act ? [act] : []), close),
    );
  }

  /**
   * Shows that the server does not answer, and retries by itself.
   * @param {() => void} retry
   */
  stopped(retry) {
    clearInterval(this.#timer);
    let left = PAUSES[Math.min(this.#failures, PAUSES.length - 1)] ?? 30;
    this.#failures += 1;
    const seconds = span("quiet");
    const again = () => {
      clearInterval(this.#timer);
      seconds.textContent = "…";
      retry();
    };
    const tick = () => {
      seconds.textContent = `in ${left} s`;
      left -= 1;
      if (left < 0) again();
    };
    const text = p("", b("polybook serve does not answer."), " The page still shows its last answer, and keeps your position and filters.");
    const isNew = !this.#place.querySelector(".stopped");
    const way = button({ class: "small", "data-focus": "retry" }, [icon("retry"), "Retry ", seconds], again);
    if (isNew) fill(this.#place, div({ class: "banner bad stopped", role: "alert" }, icon("plug"), text, way));
    else {
      const old = this.#place.querySelector("button");
      const hadFocus = old === document.activeElement;
      old?.replaceWith(way);
      if (hadFocus) way.focus();
    }
    tick();
    this.#timer = setInterval(tick, 1000);
  }
}
