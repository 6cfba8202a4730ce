// @ts-check
// The element <polybook-board>: a board with the moves of its position, for other pages and for the page with embed=1.
//
// The attribute `src` is the address of a view of the explorer, or of its server. The attributes `fen`, `play` and `flip` replace the
// parameters of this address. The element sets `play` to the line that the user plays. It dispatches the event `change` when it shows a
// position, and `error` when it cannot show one.

import { Asking, ask, words } from "./api.js";
import { arrowMoves } from "./arrows.js";
import { bar } from "./bars.js";
import { squares } from "./board.js";
import { button, div, fill, icon, make, on, p } from "./dom.js";
import { counted, sum } from "./format.js";
import { showLine } from "./line.js";
import { MovesTable } from "./moves.js";
import { commonPlies, put, ucis } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/** The attributes that replace parameters of the address. */
const REPLACING = ["fen", "play", "flip"];

class PolybookBoard extends HTMLElement {
  static observedAttributes = ["src", ...REPLACING];

  #asking = new Asking();
  /** @type {Answer | undefined} */
  #answer;
  /**
   * The longest line that the user visited, which begins with the line that is shown.
   * @type {WrittenMove[]}
   */
  #known = [];
  /** Whether the position is requested after the other attributes are set, too. */
  #isDue = false;
  #isConnected = false;

  #board = /** @type {import("./board.js").ChessBoard} */ (document.createElement("chess-board"));
  #link = make("a", { class: "button icon-only", target: "_blank", title: "Open in the explorer", "aria-label": "Open in the explorer" }, icon("open"));
  #steps = /** @type {[string, string, () => string[] | undefined][]} */ ([
    ["first", "To the start", () => []],
    ["back", "One move back", () => this.#line.slice(0, -1)],
    ["forward", "One move forward", () => this.#next()],
    ["last", "To the end", () => ucis(this.#known)],
  ]).map(([name, title, line]) => ({ line, press: button({ title, "aria-label": title }, [icon(name)], () => this.#go(line())) }));
  #moves = div({ class: "line", role: "group", "aria-label": "Moves of the line" });
  #results = div("");
  #rows = div("");
  #table;

  constructor() {
    super();
    const style = make("link", { rel: "stylesheet", href: new URL("style.css", import.meta.url).href, crossorigin: "anonymous" });
    const controls = div({ class: "below", role: "toolbar", "aria-label": "Move through the line" }, div("steps", ...this.#steps.map(({ press }) => press)), this.#link);
    const content = div("embed", make("section", { "aria-label": "Board" }, this.#board, controls), make("section", { class: "column", "aria-label": "Moves of the position" }, this.#moves, this.#results, this.#rows));
    // The board would fill the page until its styles are loaded.
    content.hidden = true;
    for (const event of /** @type {const} */ (["load", "error"])) on(style, event, () => (content.hidden = false));
    this.attachShadow({ mode: "open" }).append(style, content);
    this.#table = new MovesTable(this.#rows);
    on(this.#board, "play", (event) => this.#play(/** @type {CustomEvent<string>} */ (event).detail));
    this.#board.addEventListener("step", (event) => {
      const isBack = /** @type {CustomEvent<number>} */ (event).detail < 0;
      if (isBack || this.#known.length > this.#line.length) this.#step(isBack ? "ArrowLeft" : "ArrowRight");
    });
    on(this, "keydown", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !this.#step(event.key)) return;
      event.preventDefault();
    });
  }

  connectedCallback() {
    this.#isConnected = true;
    this.#showSoon();
  }

  disconnectedCallback() {
    this.#isConnected = false;
    this.#asking.end();
  }

  /**
   * @param {string} name
   * @param {string | null} before
   * @param {string | null} now
   */
  attributeChangedCallback(name, before, now) {
    if (!this.#isConnected || before === now) return;
    // A line belongs to its first position.
    if (name === "fen" || name === "src") this.removeAttribute("play");
    this.#showSoon();
  }

  /** Returns the address of the explorer with the position of the attributes. */
  #address() {
    const address = new URL(this.getAttribute("src") ?? location.href, document.baseURI);
    for (const name of REPLACING) {
      const value = this.getAttribute(name);
      if (value !== null) address.searchParams.set(name, value);
      // A line of the address does not begin in another position.
      if (name === "fen" && value !== null) address.searchParams.delete("play");
    }
    address.searchParams.delete("embed");
    return address;
  }

  /** Returns the moves that lead to the position that is shown. */
  get #line() {
    return ucis(this.#answer?.polybook.line ?? []);
  }

  /** Returns the line with the next move of the known line or, at its end, with the most played move. */
  #next() {
    const next = this.#known[this.#line.length] ?? this.#answer?.moves[0];
    return next && [...this.#line, next.uci];
  }

  /** @param {string[] | undefined} line */
  #go(line) {
    if (line && line.join() !== this.#line.join()) this.setAttribute("play", line.join());
  }

  /** @param {string} uci */
  #play(uci) {
    this.#go([...this.#line, uci]);
  }

  /**
   * Moves along the line. Returns false if the key does not do so.
   * @param {string} key
   */
  #step(key) {
    const step = this.#steps[["Home", "ArrowLeft", "ArrowRight", "End"].indexOf(key)];
    if (step) this.#go(step.line());
    return step !== undefined;
  }

  #showSoon() {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (this.#isConnected) void this.#show();
    });
  }

  /** Requests and shows the position of the attributes. */
  async #show() {
    const signal = this.#asking.next();
    const address = this.#address();
    const parameters = put(new URLSearchParams(address.searchParams), { moves: 100, topGames: 0, recentGames: 0, transpositions: "true", resulting: "true" });
    const isPlayer = parameters.has("player") && parameters.has("color");
    this.setAttribute("aria-busy", "true");
    try {
      const answer = /** @type {Answer} */ (await ask(new URL(isPlayer ? "player" : "lichess", address).href, parameters, signal));
      if (signal.aborted) return;
      this.#answer = answer;
      this.#draw(answer, isPlayer, address);
      const { fen, line } = answer.polybook;
      this.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: { fen, play: ucis(line), san: line.map(({ san }) => san), answer } }));
    } catch (error) {
      if (signal.aborted) return;
      const message = words(error);
      fill(this.#results, p("problem", message));
      fill(this.#rows);
      this.dispatchEvent(new CustomEvent("error", { detail: { message } }));
    } finally {
      if (!signal.aborted) this.removeAttribute("aria-busy");
    }
  }

  /**
   * @param {Answer} answer
   * @param {boolean} ofPlayer
   * @param {URL} address
   */
  #draw(answer, ofPlayer, address) {
    const { fen, check, legal, line } = answer.polybook;
    const start = address.searchParams.get("fen") ?? "";
    if (commonPlies(ucis(line), ucis(this.#known)) < line.length) this.#known = line;
    const last = line.at(-1);
    const { from, to } = last ? squares(last) : { from: "", to: "" };
    this.#board.flipped = ["1", "true", ""].includes(address.searchParams.get("flip") ?? "0");
    this.#board.position = { fen, check, legal, last: last && `${from}${to}` };
    this.#point(answer, "");
    showLine(this.#moves, this.#known, line.length, start, (ply) => this.#go(ucis(this.#known.slice(0, ply))));
    const isOver = line.length === this.#known.length && !answer.moves.length;
    for (const [index, isOff] of [!line.length, !line.length, isOver, line.length === this.#known.length].entries()) {
      this.#steps[index]?.press.setAttribute("aria-disabled", String(isOff));
    }
    this.#link.href = address.href;
    if (!sum(answer)) {
      fill(this.#results, p("none", legal.length ? "No games reached this position" : "The game is over here"));
      fill(this.#rows);
      return;
    }
    fill(this.#results, bar(answer, ofPlayer, undefined, true), p("quiet", counted(sum(answer))));
    const play = (/** @type {string} */ uci) => this.#play(uci);
    const point = (/** @type {string} */ uci) => this.#point(answer, uci);
    this.#table.show(answer, { books: [], repertoire: undefined, ofPlayer, side: "Move", whose: "", gameMove: "", play, point, list: undefined });
  }

  /**
   * Draws the arrows of the most played moves, and that of the row at which the user points.
   * @param {Answer} answer
   * @param {string} uci
   */
  #point(answer, uci) {
    const often = arrowMoves(answer).filter((move) => move.uci !== uci).map((move) => ({ ...move, full: false, isGap: false }));
    this.#board.arrows = uci ? [{ uci, share: 1, full: true, isGap: false }, ...often.slice(0, -1)] : often;
  }
}

customElements.define("polybook-board", PolybookBoard);
