// @ts-check
// The dialog that makes a book of the filtered games: its size at once, a download, and the same as a command.

import { ask, askFile, words } from "./api.js";
import { filterWords } from "./chips.js";
import { b, button, copy, div, icon, make, on, p, save, segments, small, span } from "./dom.js";
import { counted, folded, number, percent, sum } from "./format.js";
import { filterQuestion } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").BookSize} BookSize */
/** @typedef {import("./state.js").View} View */

const PAUSE = 250;
const FIRST_MOVES = 5;

export class BookDialog {
  #dialog;
  #edit;
  #view = /** @type {View | undefined} */ (undefined);
  #choice = { side: "both", depth: 12, minGame: 3, weights: "results", format: "bin" };
  #chips = p("chips");
  #form = div("form");
  #preview = div({ class: "preview", role: "status" });
  #problem = p({ class: "problem", role: "alert" });
  #download = button("main", [], () => void this.#save());
  #copy = button("plain", [icon("copy"), "Copy the command"], () => void copy(this.#command, "Command"));
  #command = "";
  /** @type {Answer | undefined} */
  #answer;
  #timer = 0;
  #asking = new AbortController();
  #saving = new AbortController();

  /**
   * @param {HTMLDialogElement} dialog
   * @param {() => void} edit Opens the filters.
   */
  constructor(dialog, edit) {
    this.#dialog = dialog;
    this.#edit = edit;
    const close = () => dialog.close();
    dialog.append(
      div("grip"),
      div("top", make("h2", { id: "book-title" }, "Make a book of these games"), button({ class: "plain icon-only", "aria-label": "Close" }, [icon("close")], close)),
      div("body", this.#form, this.#preview),
      this.#problem,
      div("bottom", this.#copy, span("", button("", ["Cancel"], close), this.#download)),
    );
    on(dialog, "close", () => {
      // The server ends a book that nobody waits for.
      this.#asking.abort();
      this.#saving.abort();
    });
  }

  /**
   * @param {View} view
   * @param {Answer | undefined} start The counts of the first position.
   */
  open(view, start) {
    this.#view = view;
    this.#answer = start;
    this.#choice.side = view.filters.color ?? "both";
    this.#build();
    this.#problem.replaceChildren();
    this.#dialog.showModal();
    this.#download.focus();
  }

  #build() {
    const view = this.#view;
    if (!view) return;
    const texts = filterWords(view.filters, view.variant).map(({ text }) => span("chip", text));
    const change = button("small plain", [texts.length ? "Change" : "Choose games"], () => {
      this.#dialog.close();
      this.#edit();
    });
    this.#chips.replaceChildren(...(texts.length ? texts : ["All games"]), change);
    const choose = (/** @type {"side" | "weights"} */ name) => (/** @type {string} */ value) => this.#set({ [name]: value });
    this.#form.replaceChildren(
      this.#chips,
      field("Moves of", "", segments({ "aria-label": "Moves of" }, [["white", "White"], ["black", "Black"], ["both", "Both sides"]], this.#choice.side, choose("side"))),
      field("Depth", "moves from the start", this.#number("depth", "Depth in moves", 1, 40)),
      field("Fewest games", "a move needs to be kept", this.#number("minGame", "Fewest games", 1, 50)),
      field(
        "Weights",
        "",
        segments({ "aria-label": "Weights" }, [["results", "By results"], ["games", "By number of games"], ["uniform", "All alike"]], this.#choice.weights, choose("weights")),
      ),
      field(
        "Format",
        "",
        segments(
          { "aria-label": "Format", class: "formats" },
          [
            ["bin", b(".bin"), small("Polyglot, for engines and GUIs")],
            ["pgn", b(".pgn"), small("lines with variations, to study")],
          ],
          this.#choice.format,
          (format) => this.#set({ format }),
        ),
      ),
    );
    this.#set({});
  }

  /**
   * A number, by a slider and a field.
   * @param {"depth" | "minGame"} name
   * @param {string} label
   * @param {number} least
   * @param {number} most
   */
  #number(name, label, least, most) {
    const bounds = { min: String(least), max: String(most), value: String(this.#choice[name]) };
    const slider = make("input", { type: "range", "aria-label": label, ...bounds });
    const text = make("input", { inputmode: "numeric", "aria-label": `${label}, as a number`, value: bounds.value });
    on(slider, "input", () => {
      text.value = slider.value;
      this.#set({ [name]: Number(slider.value) });
    });
    on(text, "change", () => {
      const value = Math.round(Math.max(least, Math.min(Number(text.value) || this.#choice[name], name === "depth" ? 300 : 1e6)));
      text.value = String(value);
      slider.value = String(value);
      this.#set({ [name]: value });
    });
    return div("number", slider, text);
  }

  /** @param {Partial<{ side: string, depth: number, minGame: number, weights: string, format: string }>} change */
  #set(change) {
    Object.assign(this.#choice, change);
    this.#download.replaceChildren(icon("save"), `Download ${this.#name()}`);
    clearTimeout(this.#timer);
    this.#asking.abort();
    this.#preview.classList.add("stale");
    this.#timer = setTimeout(() => void this.#count(), PAUSE);
  }

  #name() {
    const { player = "", color = "" } = this.#view?.filters ?? {};
    const parts = [folded(player).split(/[\s,]/)[0]?.replace(/[^\w-]/g, ""), color].filter(Boolean);
    return `${parts.join("-") || "book"}.${this.#choice.format}`;
  }

  #question() {
    const { side, depth, minGame, weights } = this.#choice;
    const parameters = filterQuestion(this.#view ?? { variant: "", filters: {} });
    for (const [name, value] of Object.entries({ side, depth: 2 * depth, minGame, weights })) parameters.set(name, String(value));
    return parameters;
  }

  async #count() {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const parameters = this.#question();
    parameters.set("count", "true");
    try {
      const size = /** @type {BookSize} */ (await ask(`book.${this.#choice.format}`, parameters, signal));
      if (!signal.aborted) this.#show(size);
    } catch (error) {
      if (signal.aborted) return;
      // Such as a filter that make-book does not have.
      this.#command = "";
      this.#able(false);
      this.#preview.replaceChildren(p({ class: "problem", role: "alert" }, `${words(error)}.`));
    }
    if (!signal.aborted) this.#preview.classList.remove("stale");
  }

  /** @param {boolean} isMade Whether there is a book. */
  #able(isMade) {
    this.#download.disabled = !isMade;
    this.#copy.disabled = !isMade;
  }

  /** @param {BookSize} size */
  #show({ games, entries, bytes, command }) {
    this.#command = command;
    this.#able(entries > 0);
    this.#preview.replaceChildren(
      p("size", counted(entries, "move")),
      p("quiet", entries ? `${byteWords(bytes)}, from ${counted(games)}` : `from ${counted(games)}; fewer games a move keep more moves`),
      ...this.#firstMoves(),
      make("details", { open: "" }, make("summary", "", "The same on the command line"), make("code", "command", command)),
    );
  }

  #firstMoves() {
    const answer = this.#answer;
    if (!answer?.moves.length) return [];
    const [most] = answer.moves;
    const rows = answer.moves.slice(0, FIRST_MOVES).map((move) => {
      const bar = make("i");
      bar.style.width = `${(100 * sum(move)) / sum(most ?? move)}%`;
      return make("li", "", b(move.san), span("", bar), percent(sum(move) / sum(answer)));
    });
    return [div("first-moves", p("quiet", "First moves"), make("ul", "", ...rows))];
  }

  async #save() {
    this.#saving.abort();
    this.#saving = new AbortController();
    const { signal } = this.#saving;
    this.#download.setAttribute("aria-busy", "true");
    this.#problem.replaceChildren();
    try {
      const book = await askFile(`book.${this.#choice.format}`, this.#question(), signal);
      if (signal.aborted) return;
      save(book, this.#name());
      this.#dialog.close();
    } catch (error) {
      if (!signal.aborted) this.#problem.replaceChildren(words(error));
    } finally {
      this.#download.removeAttribute("aria-busy");
    }
  }
}

/**
 * @param {string} label
 * @param {string} more
 * @param {HTMLElement} content
 */
function field(label, more, content) {
  return div("field", p("label", label, ...(more ? [span("", ` ${more}`)] : [])), content);
}

/** @param {number} bytes */
function byteWords(bytes) {
  if (bytes < 1000) return `${number(bytes)} bytes`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
