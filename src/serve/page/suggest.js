// @ts-check
// A field with suggestions (a combobox). The arrow keys choose one, Enter accepts it, and Esc closes the list.

import { Asking } from "./api.js";
import { div, fill, make, on, span } from "./dom.js";
import { folded } from "./format.js";

/** @typedef {import("./dom.js").Child} Child */
/**
 * @typedef {object} Option
 * @property {Child[]} content
 * @property {string} more
 * @property {() => void} take
 * @property {boolean} [isSimilar] Whether the name only resembles the typed text. It is taken only if the user chooses it.
 */
/** @typedef {{ heading?: string, message?: string, options: Option[] }} Group */

/** The time in milliseconds that typing must pause before suggestions are requested. */
const PAUSE = 120;
let boxes = 0;

export class Combobox {
  #input;
  #box;
  #find;
  #enter;
  /** @type {Option[]} */
  #options = [];
  #chosen = -1;
  /** The text for which the suggestions were requested. */
  #text = "";
  #timer = 0;
  #asking = new Asking();

  /**
   * @param {HTMLInputElement} input The field. The suggestions are inserted after it.
   * @param {(text: string, signal: AbortSignal) => Promise<Group[]>} find
   * @param {(text: string) => void} enter Called when the user presses Enter and no suggestion is chosen.
   */
  constructor(input, find, enter) {
    this.#input = input;
    this.#find = find;
    this.#enter = enter;
    boxes += 1;
    this.#box = div({ class: "suggestions", id: `suggestions${boxes}`, role: "listbox", "aria-label": "Suggestions" });
    this.#box.hidden = true;
    for (const [name, value] of Object.entries({
      role: "combobox",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      "aria-controls": this.#box.id,
      autocomplete: "off",
      spellcheck: "false",
      autocapitalize: "off",
    })) {
      input.setAttribute(name, value);
    }
    input.after(this.#box);
    on(input, "input", () => this.#later());
    on(input, "focus", () => input.value.trim() && this.#later());
    on(input, "blur", () => this.close());
    on(input, "keydown", (event) => void this.#key(event));
    // Keep the focus in the field while the user presses a suggestion.
    on(this.#box, "pointerdown", (event) => event.preventDefault());
  }

  close() {
    clearTimeout(this.#timer);
    this.#asking.end();
    this.#text = "";
    this.#show([]);
  }

  #later() {
    clearTimeout(this.#timer);
    this.#asking.end();
    const text = this.#input.value.trim();
    if (!text) {
      this.#show([]);
      return;
    }
    this.#timer = setTimeout(() => void this.#look(text), PAUSE);
  }

  /** @param {string} text */
  async #look(text) {
    const signal = this.#asking.next();
    try {
      const groups = await this.#find(text, signal);
      if (signal.aborted) return;
      this.#text = text;
      this.#show(groups);
    } catch {
      if (!signal.aborted) this.#show([]);
    }
  }

  /** @param {Group[]} groups */
  #show(groups) {
    this.#options = groups.flatMap(({ options }) => options);
    const rows = groups.flatMap(({ heading, message, options }) => [
      ...(heading ? [div({ class: "group", role: "presentation" }, heading)] : []),
      ...(message ? [div({ class: "message", role: "presentation" }, message)] : []),
      ...options.map((option) => {
        const row = div({ role: "option", "aria-selected": "false" }, span("", ...option.content), span("", option.more));
        on(row, "click", () => this.#take(option));
        return row;
      }),
    ]);
    fill(this.#box, ...rows);
    this.#box.hidden = rows.length === 0;
    this.#input.setAttribute("aria-expanded", String(rows.length > 0));
    this.#choose(this.#options.length && !this.#options[0]?.isSimilar ? 0 : -1);
  }

  /** @param {number} index */
  #choose(index) {
    this.#chosen = index;
    this.#input.removeAttribute("aria-activedescendant");
    this.#box.querySelectorAll("[role=option]").forEach((row, at) => {
      row.id = `${this.#box.id}-${at}`;
      row.setAttribute("aria-selected", String(at === index));
      if (at !== index) return;
      this.#input.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    });
  }

  /** @param {Option} option */
  #take(option) {
    this.close();
    option.take();
  }

  /** @param {KeyboardEvent} event */
  async #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const count = this.#options.length;
    if (step && count) {
      event.preventDefault();
      this.#choose((Math.max(this.#chosen, step < 0 ? 0 : -1) + step + count) % count);
    } else if (event.key === "Enter") {
      const text = this.#input.value.trim();
      event.preventDefault();
      // If the user typed faster than the suggestions arrived, request suggestions for the whole text first.
      if (text && text !== this.#text) {
        clearTimeout(this.#timer);
        this.#asking.end();
        await this.#look(text);
      }
      const option = this.#options[this.#chosen];
      if (option) this.#take(option);
      else if (text) {
        this.close();
        this.#enter(text);
      }
    } else if (event.key === "Escape" && !this.#box.hidden) {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    }
  }
}

/**
 * Returns a name in which the typed text is marked.
 * @param {string} name
 * @param {string} text
 * @returns {Child[]}
 */
export function marked(name, text) {
  const first = folded(text).split(/[\s,]+/)[0] ?? "";
  const at = first ? folded(name).indexOf(first) : -1;
  // If a letter folds to several letters, the offset would be wrong.
  if (at < 0 || folded(name).length !== name.length) return [name];
  return [name.slice(0, at), make("mark", "", name.slice(at, at + first.length)), name.slice(at + first.length)];
}
