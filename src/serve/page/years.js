// @ts-check
// The filter by year: a histogram, two sliders, and two fields for text. The fields accept many spellings of a date, and show which
// date was understood.

import { div, fill, icon, make, on, p, span } from "./dom.js";
import { counted, dateWords, readMonth } from "./format.js";

/** A range of months. An empty text means that there is no limit. */
/** @typedef {{ since: string, until: string }} Range */

export class Years {
  element = make("fieldset", "field years");
  /** Whether a field contains a text that is not a date. */
  isWrong = false;
  #changed;
  #legend = make("legend", "", "Years");
  #histogram = div({ class: "histogram", "aria-hidden": "true" });
  #sliders = { since: slider("First year"), until: slider("Last year") };
  #fields = { since: text("since", "From"), until: text("until", "To") };
  #note = p({ class: "note", role: "status" });
  /** @type {[number, number]} */
  #span = [1900, 2100];

  /** @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
    const { since, until } = this.#fields;
    const range = div("range", this.#histogram, this.#sliders.since, this.#sliders.until);
    this.element.append(this.#legend, range, div("from-to", since, span("", "–"), until), this.#note);
    for (const side of /** @type {const} */ (["since", "until"])) {
      on(this.#fields[side], "input", () => this.#read());
      on(this.#fields[side], "change", () => this.#write());
      on(this.#sliders[side], "input", () => this.#slide(side));
    }
  }

  /** @returns {Range} */
  get value() {
    let [since, until] = [this.#month("since"), this.#month("until")];
    if (since && until && since.slice(0, until.length) > until.slice(0, since.length)) [since, until] = [until, since];
    return { since, until };
  }

  /** @param {Range} range */
  set value({ since, until }) {
    this.#fields.since.value = since ? dateWords(since) : "";
    this.#fields.until.value = until ? dateWords(until) : "";
    this.#read(false);
  }

  /**
   * Shows the number of games in each year.
   * @param {Record<string, number>} years
   * @param {[number, number] | null | undefined} all The first and last year of all games.
   */
  show(years, all) {
    const known = Object.keys(years).map(Number);
    const [first, last] = all ?? [Math.min(...known), Math.max(...known)];
    if (!Number.isFinite(first) || !Number.isFinite(last)) return;
    this.#span = [first, last];
    fill(this.#legend, "Years ", span("", `${first}–${last}`));
    const columns = Math.min(40, last - first + 1);
    const step = (last - first + 1) / columns;
    const counts = Array(columns).fill(0);
    for (const [year, games] of Object.entries(years)) {
      const column = Math.floor((Number(year) - first) / step);
      if (column >= 0 && column < columns) counts[column] += games;
    }
    const most = Math.max(1, ...counts);
    fill(
      this.#histogram,
      ...counts.map((games, column) => {
        const bar = make("i", { title: counted(games), "data-from": first + column * step, "data-to": first + (column + 1) * step - 1 });
        bar.style.height = `${games ? Math.max(4, (100 * games) / most) : 0}%`;
        return bar;
      }),
    );
    for (const one of Object.values(this.#sliders)) {
      one.min = String(first);
      one.max = String(last);
    }
    this.#read(false);
  }

  /** @param {"since" | "until"} side */
  #month(side) {
    return readMonth(this.#fields[side].value) ?? "";
  }

  /** @param {"since" | "until"} side */
  #slide(side) {
    const { since, until } = this.#sliders;
    // A slider that reaches the other one pushes it.
    if (Number(since.value) > Number(until.value)) (side === "since" ? until : since).value = this.#sliders[side].value;
    const [first, last] = this.#span;
    this.#fields.since.value = Number(since.value) > first ? since.value : "";
    this.#fields.until.value = Number(until.value) < last ? until.value : "";
    this.#read();
  }

  /**
   * Reads the dates in the two fields. If a date differs from the typed text, shows how the text was understood.
   * @param {boolean} [isChange]
   */
  #read(isChange = true) {
    /** @type {string[]} */
    const notes = [];
    let wrong = "";
    const [first, last] = this.#span;
    for (const [side, field] of Object.entries(this.#fields)) {
      const typed = field.value.trim();
      const month = readMonth(typed);
      const isBad = typed !== "" && !month;
      field.setAttribute("aria-invalid", String(isBad));
      if (isBad) wrong ||= `“${typed}” is not a date: write 2015, 2015-05 or May 2015.`;
      if (!month) continue;
      if (/\d{1,4}\D+\d{1,2}\D+\d{1,4}/.test(typed)) notes.push(`Days are ignored: ${side === "since" ? "from" : "to"} ${dateWords(month)}.`);
      const year = Number(month.slice(0, 4));
      if (side === "until" && year > last) notes.push(`The last game was played in ${last}, so games up to ${last} are shown.`);
      if (side === "since" && year < first) notes.push(`The first game was played in ${first}.`);
      if (side === "since" && year > last) notes.push(`The last game was played in ${last}, so only games without a date remain.`);
    }
    const { since, until } = this.value;
    if (since && until && since !== this.#month("since")) notes.push(`This is read as ${dateWords(since)} to ${dateWords(until)}.`);
    this.isWrong = wrong !== "";
    this.#note.className = wrong ? "note wrong" : "note";
    fill(this.#note, ...(wrong || notes.length ? [icon("warn"), wrong || notes.join(" ")] : []));
    const bounds = [Number(since.slice(0, 4)) || first, Number(until.slice(0, 4)) || last];
    this.#sliders.since.value = String(bounds[0]);
    this.#sliders.until.value = String(bounds[1]);
    for (const bar of this.#histogram.children) {
      const [from, to] = [Number(bar.getAttribute("data-from")), Number(bar.getAttribute("data-to"))];
      bar.classList.toggle("within", to >= (bounds[0] ?? 0) && from <= (bounds[1] ?? 0));
    }
    if (isChange) this.#changed();
  }

  /** Replaces the texts of the fields by the dates that were read. */
  #write() {
    for (const side of /** @type {const} */ (["since", "until"])) {
      const month = this.#month(side);
      if (month) this.#fields[side].value = dateWords(month);
    }
    const { since, until } = this.value;
    if (since && until && since !== this.#month("since")) this.value = { since, until };
  }
}

/** @param {string} label */
function slider(label) {
  return make("input", { type: "range", "aria-label": label });
}

/**
 * @param {string} name
 * @param {string} label
 */
function text(name, label) {
  return make("input", { name, "aria-label": label, placeholder: label, autocomplete: "off" });
}
