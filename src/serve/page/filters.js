// @ts-check
// The dialog of the filters. The number of games is updated after each change; the filters are applied when the user submits
// the dialog.

import { Asking, ask, suggestions, words } from "./api.js";
import { RATINGS, SPEEDS, VARIANTS, materialQuery, pawnsQuery, ratingRange } from "./chips.js";
import { button, dialogTop, div, field, fill, icon, make, on, p, segments, span, toggle } from "./dom.js";
import { counted, dateWords, number, readMonth } from "./format.js";
import { suggestionWords } from "./search.js";
import { filterQuestion, joined, nameText, namesIn, put } from "./state.js";
import { Combobox, marked } from "./suggest.js";

/** @typedef {import("./api.js").About} About */
/** @typedef {import("./api.js").Facets} Facets */
/** @typedef {import("./api.js").Suggestion} Suggestion */
/** @typedef {import("./state.js").Filters} Filters */
/** @typedef {{ filters: Filters, variant: string }} Choice */

/** The time in milliseconds that the choice must stay unchanged before its games are counted. */
const PAUSE = 150;
/** The ratio of the numbers of games above which the user must choose between two spellings of a name. */
const MANY = 9;
/** ECO codes and ranges, such as "B90", "B90-B99" and "B". */
const CODES = /^[A-E]\d{0,2}(-[A-E]\d{0,2})?$/;

export class FiltersDialog {
  #dialog;
  #about;
  #apply;
  /** @type {Choice} */
  #choice = { filters: {}, variant: "" };
  #body = div("body");
  #submit = make("button", { class: "main", type: "submit" });
  #years = new Years(() => this.#dates());
  #timer = 0;
  #asking = new Asking();
  /** @type {Facets | undefined} */
  #facets;
  /** Whether the view always counts duplicates once. */
  #isOnce = false;
  /** The position on the board, or an empty string for the one in which games start. */
  #fen = "";
  /** The fields whose meaning depends on whether a player is chosen. */
  #results = /** @type {HTMLElement[]} */ ([]);
  /** The checks of the names that the user typed. */
  #checks = /** @type {Promise<unknown>} */ (Promise.resolve());
  /** Whether the choice has a text that only the server can check, and did not check yet. */
  #isUnread = false;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {About} about
   * @param {(choice: Choice) => void} apply
   */
  constructor(dialog, about, apply) {
    this.#dialog = dialog;
    this.#about = about;
    this.#apply = apply;
    const clear = button("plain small", ["Clear"], () => {
      const { source } = this.#choice.filters;
      this.#choice = { filters: source ? { source } : {}, variant: "" };
      this.#build();
    });
    const close = () => dialog.close();
    const form = make(
      "form",
      { method: "dialog" },
      dialogTop(dialog, "Filters", clear),
      this.#body,
      div("bottom", button("", ["Cancel"], close), this.#submit),
    );
    on(form, "submit", (event) => {
      event.preventDefault();
      void this.#finish();
    });
    dialog.append(form);
    on(dialog, "close", () => this.#asking.end());
  }

  /**
   * @param {Choice} choice
   * @param {string} name The name of the field that gets the focus, or an empty string.
   * @param {boolean} isOnce Whether the view always counts duplicates once, as a preparation does.
   * @param {string} fen The position on the board, or an empty string for the one in which games start.
   */
  open({ filters, variant }, name, isOnce, fen) {
    this.#fen = fen;
    this.#isOnce = isOnce;
    this.#choice = { filters: { ...filters }, variant };
    this.#build();
    this.#dialog.showModal();
    // On a phone, focusing a field opens the keyboard.
    if (name || matchMedia("(pointer: fine)").matches) this.#focus(name || "player");
  }

  /** Applies the choice and closes the dialog, unless a field is wrong. A field that the user has just left may not be checked yet. */
  async #finish() {
    await this.#checks;
    if (this.#isUnread) await this.#ask();
    if (!this.#dialog.open || this.#isUnread) return;
    if (this.#problem()) return this.#body.querySelector("[aria-invalid=true]")?.scrollIntoView({ block: "center" });
    this.#dialog.close();
    this.#apply(this.#choice);
  }

  #build() {
    const { filters, variant } = this.#choice;
    this.#years.value = { since: filters.since ?? "", until: filters.until ?? "" };
    const asked = this.#about.sources.filter(({ name }) => !filters.source || name === filters.source);
    const hasGames = !asked.some(({ counts }) => counts);
    fill(
      this.#body,
      ...(hasGames ? this.#people() : []),
      this.#years.element,
      this.#options("ratings", "Average rating", RATINGS.map((group) => [group, ratingRange(group)])),
      this.#options("speeds", "Speed", SPEEDS),
      ...(hasGames ? this.#others(variant) : []),
    );
    this.#years.element.dataset.field = "since";
    this.#isUnread = false;
    this.#count(0);
  }

  /** Returns the fields for the players and the result. */
  #people() {
    return [pair(this.#name("player", "Player", "Any player", "player"), this.#name("opponent", "Opponent", "Any opponent", "player")), ...this.#resultFields()];
  }

  /** Returns the fields for the color, the result and the opponent's rating. */
  #resultFields() {
    const ofPlayer = Boolean(this.#choice.filters.player);
    const results = /** @type {[string, string][]} */ (
      ofPlayer ? [["", "Any"], ["win", "Won"], ["draw", "Drawn"], ["loss", "Lost"]] : [["", "Any"], ["1-0", "White won"], ["1/2-1/2", "Draw"], ["0-1", "Black won"]]
    );
    const rated = ofPlayer ? [this.#opponentRating()] : [];
    this.#results = [
      pair(
        field("color", "Color", "of the player", this.#segments("color", "Color of the player", [["white", "White"], ["black", "Black"]])),
        field("result", "Result", ofPlayer ? "for the player" : "", this.#segments("result", "Result", results)),
      ),
      ...rated,
    ];
    return this.#results;
  }

  /** @param {string} variant */
  #others(variant) {
    return [
      pair(this.#name("event", "Event", "Any event", "event"), this.#name("eco", "Opening", "Name or ECO code: B90-B99", "opening")),
      this.#board(),
      pair(this.#variants(variant), this.#least()),
      toggle("requireDate", "Only games with a date", "Otherwise games without a year pass every choice of years", Boolean(this.#choice.filters.requireDate), (isOn) =>
        this.#set("requireDate", isOn ? "true" : "")),
      this.#duplicates(),
    ];
  }

  /** Returns the field for a query about the board, with buttons for the pawns and the material of the position on the board. */
  #board() {
    const input = make("input", { name: "position", placeholder: "Anything, or a query: Pd5 and not pc6", "aria-label": "On the board", spellcheck: "false" });
    input.value = this.#choice.filters.position ?? "";
    const take = () => {
      complain(input, "");
      this.#set("position", input.value.trim());
    };
    on(input, "change", take);
    const pick = (/** @type {string} */ label, /** @type {string} */ query) => button("small", [label], () => {
      input.value = query;
      take();
    });
    const picks = this.#fen ? [div("picks", pick("These pawns", pawnsQuery(this.#fen)), pick("This material", materialQuery(this.#fen)))] : [];
    return field("position", "On the board", "in a position of the game", input, wrong(), ...picks);
  }

  #duplicates() {
    const note = this.#isOnce ? "A preparation always counts them once" : "Games with the same players, result and moves count as one";
    const isOn = this.#isOnce || this.#choice.filters.duplicates === "once";
    const element = toggle("duplicates", "Count duplicates once", note, isOn, (isOn) => this.#set("duplicates", isOn ? "once" : ""));
    const press = element.querySelector("button");
    if (press) press.disabled = this.#isOnce;
    return element;
  }

  /**
   * Changes a filter of the choice.
   * @param {string} name
   * @param {string} value
   */
  #set(name, value) {
    const { filters } = this.#choice;
    if (value) filters[name] = value;
    else delete filters[name];
    this.#isUnread ||= name === "position" || name === "eco";
    this.#count();
  }

  #dates() {
    const { since, until } = this.#years.value;
    this.#set("since", since);
    this.#set("until", until);
  }

  /**
   * Creates a field with suggestions, for a name or the code of an opening.
   * @param {string} name
   * @param {string} label
   * @param {string} placeholder
   * @param {string} kind
   */
  #name(name, label, placeholder, kind) {
    const { filters } = this.#choice;
    const input = make("input", { name, placeholder, "aria-label": label });
    const given = () => (kind === "player" ? nameText(filters[name]) : (filters[name] ?? ""));
    // A text after the given names and a slash is a further name of the same player.
    const further = (/** @type {string} */ text) => (kind === "player" && given() && text.startsWith(`${given()} /`) ? text.slice(given().length + 2).trim() : undefined);
    input.value = given();
    const isOpening = kind === "opening";
    const asked = (/** @type {string} */ text, /** @type {number} */ limit, /** @type {AbortSignal} */ signal) => suggestions(kind, text, filters.source, limit, signal);
    const valueOf = (/** @type {Suggestion} */ one) => (isOpening ? (one.eco ?? "") : one.name);
    const code = (/** @type {string} */ text) => (isOpening ? (CODES.exec(text.toUpperCase().replaceAll("–", "-"))?.[0] ?? "") : "");
    const take = (/** @type {string} */ chosen, isFurther = false) => {
      const text = isFurther ? joined([...namesIn(filters[name]), chosen]) : chosen;
      const isFirst = name === "player" && Boolean(filters.player) !== Boolean(text);
      input.value = nameText(text);
      complain(input, "");
      if (isFirst) delete filters.result;
      if (name === "player" && !text) for (const other of ["color", "opponentRating"]) delete filters[other];
      this.#set(name, text);
      if (!isFirst) return;
      // The results now refer to the player.
      const old = this.#results;
      old[0]?.before(...this.#resultFields());
      for (const one of old) one.remove();
    };
    const find = async (/** @type {string} */ text, /** @type {AbortSignal} */ signal) => {
      const more = further(text);
      const wanted = more ?? text;
      if (text === given() || !wanted || code(text)) return [];
      const found = await asked(wanted, 6, signal);
      const isNear = found.every(({ distance }) => distance > 0);
      const options = found.map((one) => ({ content: marked(one.name, wanted), more: suggestionWords(one), isSimilar: one.distance > 0, take: () => take(valueOf(one), more !== undefined) }));
      return [{ message: isNear ? `No ${kind} “${wanted}”.${found.length ? " Did you mean:" : ""}` : "", options }];
    };
    const check = async (/** @type {string} */ text) => {
      if (text === given()) {
        complain(input, "");
        return this.#count();
      }
      if (!text || code(text)) return take(code(text));
      const more = further(text);
      // The user wrote the slash, but no further name.
      if (more === "") return take(filters[name] ?? "");
      const wanted = more ?? text;
      const answer = await asked(wanted, 3, AbortSignal.timeout(5000)).catch(words);
      if (!input.isConnected || input.value.trim() !== text) return;
      const found = typeof answer === "string" ? [] : answer;
      // A similar name may be that of another player.
      const [only, other] = found.filter(({ distance }) => !distance);
      const whole = found.find((one) => one.name.toLowerCase() === wanted.toLowerCase());
      // Most games of the player may have a shorter spelling, such as "Carlsen,M".
      const larger = kind === "player" && only && found.find(({ distance, games }) => distance === 1 && games > MANY * only.games);
      const exact = whole ?? (other || larger ? undefined : only);
      if (exact) return take(valueOf(exact), more !== undefined);
      const none = typeof answer === "string" ? answer : `No ${kind} is called “${wanted}”.`;
      const offered = only && larger ? [only, larger].map(({ name, games }) => `${name} (${counted(games)})`).join(" or ") : found[0]?.name;
      complain(input, offered ? `Choose one of the names, such as ${offered}.` : none);
      this.#count();
    };
    const later = (/** @type {string} */ text) => {
      this.#checks = Promise.all([this.#checks, check(text)]);
    };
    // The suggestions are inserted after the field, which therefore needs a parent.
    const place = div("combobox", input);
    new Combobox(input, find, later);
    on(input, "change", () => later(input.value.trim()));
    return field(name, label, kind === "player" ? "several spellings: A / B" : "", place, wrong());
  }

  /**
   * Moves the focus to a field.
   * @param {string} name
   */
  #focus(name) {
    const place = this.#body.querySelector(`[data-field="${name}"]`);
    const focused = place?.querySelector("input:not([type=range]), select, button:not([tabindex='-1']):not(:disabled)");
    if (focused instanceof HTMLElement) focused.focus();
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {[string, string][]} options
   */
  #segments(name, label, options) {
    return segments({ "aria-label": label }, options, this.#choice.filters[name] ?? "", (value) => this.#set(name, value));
  }

  /**
   * Creates a group of values, any number of which may be chosen. If none is chosen, all are allowed.
   * @param {string} name
   * @param {string} label
   * @param {string[][]} options
   */
  #options(name, label, options) {
    const chosen = () => (this.#choice.filters[name] ?? "").split(",").filter(Boolean);
    const boxes = options.map(([value = "", caption = ""]) => {
      const box = button({ class: "option", role: "checkbox", "data-value": value, "aria-checked": chosen().includes(value) }, [icon("check"), caption, make("small")], () => {
        const isChosen = chosen().includes(value);
        box.setAttribute("aria-checked", String(!isChosen));
        const all = options.map(([other = ""]) => other).filter((other) => (other === value ? !isChosen : chosen().includes(other)));
        this.#set(name, all.join(","));
      });
      return box;
    });
    return make("fieldset", { class: "field", "data-field": name }, make("legend", "", `${label} `, span("", "any, if none is chosen")), div("options", ...boxes));
  }

  /** @param {string} variant */
  #variants(variant) {
    const select = make("select", { name: "variant", "aria-label": "Variant" });
    for (const [value, label] of VARIANTS) select.append(make("option", { value: value === "standard" ? "" : value }, label));
    select.value = variant;
    on(select, "change", () => {
      this.#choice.variant = select.value;
      this.#count();
    });
    return field("variant", "Variant", "", select);
  }

  #opponentRating() {
    const input = make("input", { name: "opponentRating", placeholder: "Any rating, or 2000-2199", "aria-label": "Rating of the opponent" });
    input.value = this.#choice.filters.opponentRating ?? "";
    on(input, "input", () => {
      const text = input.value.trim().replace("–", "-");
      const [, low = "", high = ""] = /^(\d{0,4})-(\d{0,4})$/.exec(text) ?? [];
      const isRange = Boolean(low || high) && !(low && high && Number(low) > Number(high));
      complain(input, text && !isRange ? "Enter a range of ratings, such as 2000-2199 or 2000-." : "");
      this.#set("opponentRating", isRange ? text : "");
    });
    return field("opponentRating", "Opponent rated", "", input, wrong());
  }

  #least() {
    const input = make("input", { name: "minPly", inputmode: "numeric", placeholder: "Any length", "aria-label": "Minimum number of moves" });
    const plies = Number(this.#choice.filters.minPly);
    input.value = plies ? String(Math.ceil(plies / 2)) : "";
    on(input, "input", () => {
      const moves = /^\s*(\d{1,3})(\s+moves?)?\s*$/.exec(input.value)?.[1];
      complain(input, input.value.trim() && !moves ? "Enter a number of moves, such as 10." : "");
      this.#set("minPly", moves && Number(moves) ? String(2 * Number(moves)) : "");
    });
    return field("minPly", "At least", "moves", input, wrong());
  }

  /** Returns true if the choice cannot be applied. */
  #problem() {
    return this.#years.isWrong || this.#body.querySelector("[aria-invalid=true]") !== null;
  }

  /**
   * Counts the games of the choice, and those that each value would select.
   * @param {number} [pause]
   */
  #count(pause = PAUSE) {
    clearTimeout(this.#timer);
    this.#asking.end();
    this.#submit.disabled = this.#problem();
    if (this.#facets) this.#showCounts(this.#facets, false);
    this.#timer = setTimeout(() => void this.#ask(), pause);
  }

  async #ask() {
    clearTimeout(this.#timer);
    const signal = this.#asking.next();
    try {
      const facets = /** @type {Facets} */ (await ask("facets", put(filterQuestion(this.#choice), this.#isOnce ? { duplicates: "once" } : {}), signal));
      if (signal.aborted) return;
      this.#isUnread = false;
      this.#facets = facets;
      this.#showCounts(facets, true);
    } catch (error) {
      if (signal.aborted) return;
      this.#isUnread = false;
      // The filters can be applied without counts.
      fill(this.#submit, "Show the games");
      const [, name, problem] = /^the parameter (\w+) is malformed: (.*)/.exec(words(error)) ?? [];
      const input = name && this.#body.querySelector(`[name=${name}]`);
      if (!problem || !(input instanceof HTMLElement)) return;
      complain(input, `${problem[0]?.toUpperCase()}${problem.slice(1)}.`);
      this.#submit.disabled = true;
    }
  }

  /**
   * @param {Facets} facets
   * @param {boolean} isNew
   */
  #showCounts(facets, isNew) {
    const { player, source } = this.#choice.filters;
    if (isNew) {
      const whose = player ? ` of ${nameText(player)}` : "";
      fill(this.#submit, `Show ${counted(facets.games)}`, span("whose", whose));
    }
    for (const name of /** @type {const} */ (["ratings", "speeds"])) {
      for (const box of this.#body.querySelectorAll(`[data-field=${name}] .option`)) {
        const value = box.getAttribute("data-value") ?? "";
        const games = value === "unknown" ? facets.unknownRatings : (facets[name][value] ?? 0);
        box.querySelector("small")?.replaceChildren(number(games));
        // A chosen value can always be removed.
        if (box instanceof HTMLButtonElement) box.disabled = !games && box.getAttribute("aria-checked") !== "true";
      }
    }
    for (const option of facets.variants ? this.#body.querySelectorAll("option") : []) {
      const games = facets.variants?.[option.value || "standard"] ?? 0;
      const label = VARIANTS.find(([name]) => name === (option.value || "standard"))?.[1] ?? "";
      option.textContent = `${label} (${number(games)})`;
      option.disabled = !games && !option.selected;
    }
    const own = this.#about.sources.find(({ name }) => name === source);
    this.#years.show(facets.years, own?.years ?? this.#about.years);
  }
}

/** Returns the place of the problem of a field. */
function wrong() {
  return p({ class: "note wrong", role: "status" });
}

/**
 * Shows the problem of a field, or removes the message if the text is empty.
 * @param {HTMLElement} input
 * @param {string} text
 */
function complain(input, text) {
  input.setAttribute("aria-invalid", String(text !== ""));
  input.closest(".field")?.querySelector(".wrong")?.replaceChildren(text);
}

/** @param {HTMLElement[]} fields */
function pair(...fields) {
  return div("two", ...fields);
}

/** A range of months. The text of a missing limit is empty. */
/** @typedef {{ since: string, until: string }} Range */

class Years {
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
    }
    const { since, until } = this.value;
    if (since && until && since !== this.#month("since")) notes.push(`This is read as ${dateWords(since)} to ${dateWords(until)}.`);
    const [from = 0, to = 0] = [since, until].map((month) => Number(month.slice(0, 4)));
    if (from > last) notes.push(`The last game was played in ${last}, so only games without a date remain.`);
    else if (to > last) notes.push(`The last game was played in ${last}, so games up to ${last} are shown.`);
    if (to && to < first) notes.push(`The first game was played in ${first}, so only games without a date remain.`);
    else if (from && from < first) notes.push(`The first game was played in ${first}.`);
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
