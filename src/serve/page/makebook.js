// @ts-check
// The dialog that makes a book or a repertoire from the filtered games. It shows the size, a download button, and the
// equivalent command.

import { Asking, ask, askFile, words } from "./api.js";
import { filterWords } from "./chips.js";
import { b, button, copy, dialogTop, div, field, fill, icon, make, on, p, save, segments, small, span, unbroken } from "./dom.js";
import { counted, fileName, number, percent, sum } from "./format.js";
import { useRepertoire } from "./sent.js";
import { blackBelow } from "./session.js";
import { filterQuestion, put } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */
/** @typedef {import("./api.js").BookSize} BookSize */
/** @typedef {import("./state.js").View} View */

const PAUSE = 250;
const FIRST_MOVES = 5;
const FIRST_LINES = 6;
/** The formats, with the usual one of books first. */
const FORMATS = /** @type {[string, string, string][]} */ ([["bin", ".bin", "Polyglot book, for engines and chess programs"], ["pgn", ".pgn", "lines with variations, for study"]]);

export class BookDialog {
  #dialog;
  #edit;
  #view = /** @type {View | undefined} */ (undefined);
  #choice = { kind: "book", side: "both", depth: 12, minGame: 3, least: 0, weights: "results", reach: 200, by: "games", format: "bin" };
  #chips = p("chips");
  #form = div("form");
  #preview = div({ class: "preview", role: "status" });
  #problem = p({ class: "problem", role: "alert" });
  #download = button("", [], () => void this.#save(this.#download, async (signal) => save(await askFile(this.#path(), this.#question(), signal), this.#name())));
  #use = button("main", [icon("mark"), "Use it here"], () => void this.#save(this.#use, async (signal) => useRepertoire(await askFile("repertoire.pgn", this.#question(), signal), this.#name(), this.#choice.side)));
  #copy = button("plain", [icon("copy"), "Copy the command"], () => void copy(this.#command, "Command"));
  #command = "";
  /** @type {Answer | undefined} */
  #answer;
  #timer = 0;
  #asking = new Asking();
  #saving = new Asking();

  /**
   * @param {HTMLDialogElement} dialog
   * @param {() => void} edit Opens the filters.
   */
  constructor(dialog, edit) {
    this.#dialog = dialog;
    this.#edit = edit;
    const close = () => dialog.close();
    dialog.append(
      dialogTop(dialog, "Make a book or repertoire from these games"),
      div("body", this.#form, this.#preview),
      this.#problem,
      div("bottom", this.#copy, span("", button("", ["Cancel"], close), this.#download, this.#use)),
    );
    on(dialog, "close", () => {
      // Aborting the request also cancels the work of the server.
      this.#asking.end();
      this.#saving.end();
    });
  }

  /**
   * @param {"book" | "repertoire"} kind
   * @param {View} view
   * @param {Answer | undefined} start The counts of the first position.
   */
  open(kind, view, start) {
    this.#view = view;
    this.#answer = start;
    Object.assign(this.#choice, { kind, side: view.filters.color ?? (kind === "repertoire" && blackBelow() ? "black" : "both"), format: usualFormat(kind) });
    this.#build();
    fill(this.#problem);
    fill(this.#preview, "Counting…");
    this.#dialog.showModal();
    (kind === "book" ? this.#download : this.#use).focus();
  }

  #build() {
    const view = this.#view;
    if (!view) return;
    const texts = filterWords(view.filters, view.variant).map(({ text }) => span("chip", text));
    const change = button("small plain", [texts.length ? "Change" : "Choose games"], () => {
      this.#dialog.close();
      this.#edit();
    });
    fill(this.#chips, ...(texts.length ? texts : ["All games"]), change);
    const isBook = this.#choice.kind === "book";
    this.#use.hidden = isBook;
    this.#download.className = isBook ? "main" : "";
    if (!isBook && this.#choice.side === "both") this.#choice.side = "white";
    const choice = (/** @type {"kind" | "side" | "weights" | "by"} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options) =>
      field(name, label, "", segments({ "aria-label": label }, options, this.#choice[name], (value) => {
        this.#set({ [name]: value, ...(name === "kind" && { format: usualFormat(value) }) });
        if (name === "kind") this.#build();
      }));
    const sides = /** @type {[string, string][]} */ ([["white", "White"], ["black", "Black"], ["both", "Both sides"]]);
    fill(
      this.#form,
      choice("kind", "Make", [["book", "A book"], ["repertoire", "A repertoire"]]),
      choice("side", "Moves of", sides.slice(0, isBook ? 3 : 2)),
      ...(isBook ? [] : [field("file", "Your own repertoire", "a PGN file or a book, for the side above", this.#file())]),
      this.#chips,
      field("depth", "Depth", "moves from the start", this.#number("depth", "Depth in moves", 1, 40)),
      ...(isBook
        ? [
            field("minGame", "Minimum games", "of each move in the book", this.#number("minGame", "Minimum games", 1, 50)),
            choice("weights", "Weights", [["results", "By results"], ["games", "By number of games"], ["uniform", "All equal"]]),
          ]
        : [
            field("reach", "Answer replies", "played in at least one game out of", this.#number("reach", "One game out of", 10, 1000)),
            field("least", "Minimum games", "of each of your moves; 0 chooses it for you", this.#number("least", "Minimum games of your moves", 0, 50)),
            choice("by", "Own moves", [["games", "Most games"], ["score", "Best score"]]),
          ]),
      field(
        "format",
        "Format",
        "",
        segments(
          { "aria-label": "Format", class: "formats" },
          (isBook ? FORMATS : FORMATS.toReversed()).map(([format, name, use]) => [format, b(name), small(use)]),
          this.#choice.format,
          (format) => this.#set({ format }),
        ),
      ),
    );
    this.#set({});
  }

  /** Creates a button that opens a file of the user as a repertoire. */
  #file() {
    const input = make("input", { type: "file", accept: ".pgn,.bin", hidden: "" });
    on(input, "change", () => {
      const [file] = input.files ?? [];
      if (file) void this.#save(input, () => useRepertoire(file, file.name, this.#choice.side));
    });
    return span("", input, button("", [icon("open"), "Open a file"], () => input.click()));
  }

  /**
   * Creates a field for a number, with a slider.
   * @param {"depth" | "minGame" | "least" | "reach"} name
   * @param {string} label
   * @param {number} least
   * @param {number} most
   */
  #number(name, label, least, most) {
    const bounds = { min: least, max: most, value: this.#choice[name] };
    const slider = make("input", { type: "range", "aria-label": label, ...bounds });
    const text = make("input", { inputmode: "numeric", "aria-label": `${label}, as a number`, value: bounds.value });
    on(slider, "input", () => {
      text.value = slider.value;
      this.#set({ [name]: Number(slider.value) });
    });
    on(text, "change", () => {
      const value = Math.round(Math.max(least, Math.min(Number(text.value || NaN) >= 0 ? Number(text.value) : this.#choice[name], { depth: 300, minGame: 1e6, least: 1e6, reach: 1e4 }[name])));
      text.value = String(value);
      slider.value = String(value);
      this.#set({ [name]: value });
    });
    return div("number", slider, text);
  }

  /** @param {Record<string, string | number>} change */
  #set(change) {
    Object.assign(this.#choice, change);
    fill(this.#download, icon("save"), `Download ${this.#name()}`);
    clearTimeout(this.#timer);
    this.#asking.end();
    // A message is not a preview, so it is not dimmed.
    this.#preview.classList.toggle("stale", this.#preview.childElementCount > 0);
    this.#timer = setTimeout(() => void this.#count(), PAUSE);
  }

  #name() {
    const { kind, side } = this.#choice;
    const { player = "", color = "" } = this.#view?.filters ?? {};
    const parts = [fileName(player), kind === "book" ? color : side].filter(Boolean);
    return `${parts.join("-") || kind}.${this.#choice.format}`;
  }

  #question() {
    const { kind, side, depth, minGame, least, weights, reach, by } = this.#choice;
    /** @type {Record<string, string | number>} */
    const own = kind === "book" ? { minGame, weights } : { reach, by, ...(least && { minGame: least }) };
    return put(filterQuestion(this.#view ?? { variant: "", filters: {} }), { side, depth: 2 * depth, ...own });
  }

  #path() {
    return `${this.#choice.kind}.${this.#choice.format}`;
  }

  async #count() {
    const signal = this.#asking.next();
    const parameters = put(this.#question(), { count: "true" });
    try {
      const size = /** @type {BookSize} */ (await ask(this.#path(), parameters, signal));
      if (signal.aborted) return;
      this.#show(size);
      if (size.answers) await this.#showLines(signal);
    } catch (error) {
      if (signal.aborted) return;
      // The server refuses the request, for example because make-book cannot apply one of the filters.
      this.#command = "";
      this.#able(false);
      fill(this.#preview, p({ class: "problem", role: "alert" }, `${words(error)}.`));
    }
    if (!signal.aborted) this.#preview.classList.remove("stale");
  }

  /** @param {boolean} isMade Whether a book can be downloaded. */
  #able(isMade) {
    this.#download.disabled = !isMade;
    this.#use.disabled = !isMade;
    this.#copy.disabled = !isMade;
  }

  /** @param {BookSize} size */
  #show({ games, entries, answers = 0, minGame = 0, singleGame = 0, unanswered = 0, openings = [], bytes, command }) {
    const made = entries ?? answers;
    // The file has the name that is on the button.
    this.#command = (command ?? "").replace(new RegExp(`(--(?:bin|out) )${this.#path()}`), (_, option) => option + this.#name());
    this.#able(made > 0);
    fill(
      this.#preview,
      p("size", counted(made, entries === undefined ? "answer" : "move")),
      p("quiet", made ? `${byteWords(bytes)}, from ${counted(games)}` : `from ${counted(games)}. To keep more moves, lower the minimum number of games${this.#choice.weights === "results" ? ", or choose weights by number of games" : ""}.`),
      ...(minGame ? [p("", `Each answer was played in at least ${counted(minGame)}.`)] : []),
      ...(singleGame ? [p("", `${number(singleGame)} of ${counted(answers, "answer")} ${singleGame === 1 ? "was" : "were"} played in a single game.`)] : []),
      ...(openings.length ? [make("details", "", make("summary", "", `${counted(openings.length, "opening")} covered`), ...openings.map((one) => p("", `${one.name}: ${counted(one.answers, "answer")}`)))] : []),
      ...(unanswered ? [p("", `${counted(unanswered, "position")} without an answer, because the games end there.`)] : []),
      ...(entries ? this.#firstMoves() : []),
      ...(this.#command ? [make("details", { open: "" }, make("summary", "", "Command for the terminal"), make("code", "command", ...commandLines(this.#command)))] : []),
    );
  }

  /**
   * Shows the first lines of the repertoire. The server has kept the file that it made to determine the size, so this request takes
   * little time.
   * @param {AbortSignal} signal
   */
  async #showLines(signal) {
    const file = await askFile("repertoire.pgn", this.#question(), signal);
    const lines = firstLines(await file.text());
    if (signal.aborted || !lines.length) return;
    const list = make("ol", "lines", ...lines.slice(0, FIRST_LINES).map((line) => make("li", "", ...unbroken(line))));
    this.#preview.querySelector("details:last-child")?.before(div("", p("quiet", "First lines"), list));
  }

  #firstMoves() {
    const answer = this.#answer;
    const { side, minGame } = this.#choice;
    const moves = side === "black" ? [] : (answer?.moves.filter((move) => sum(move) >= minGame) ?? []);
    const [most] = moves;
    if (!answer || !most) return [];
    const rows = moves.slice(0, FIRST_MOVES).map((move) => {
      const bar = make("i");
      bar.style.width = `${(100 * sum(move)) / sum(most)}%`;
      return make("li", "", b(move.san), span("", bar), percent(sum(move) / sum(answer)));
    });
    return [div("", p("quiet", "First moves"), make("ul", "", ...rows))];
  }

  /**
   * Downloads or opens a file, and closes the dialog.
   * @param {HTMLElement} pressed The element that is busy in the meantime.
   * @param {(signal: AbortSignal) => Promise<void>} act
   */
  async #save(pressed, act) {
    const signal = this.#saving.next();
    pressed.setAttribute("aria-busy", "true");
    fill(this.#problem);
    try {
      await act(signal);
      this.#dialog.close();
    } catch (error) {
      if (!signal.aborted) fill(this.#problem, words(error));
    } finally {
      pressed.removeAttribute("aria-busy");
    }
  }
}

/** @param {string} kind */
function usualFormat(kind) {
  return kind === "book" ? "bin" : "pgn";
}

/**
 * Returns a command as lines that a shell joins again: an option for each line, and a line for each of several commands. A line does not
 * break within a word, or before the backslash at its end.
 * @param {string} command
 */
function commandLines(command) {
  const text = command.replaceAll(" && ", " &&\n").replaceAll(" --", " \\\n  --").replaceAll(/ --exact (?![\\&-])/g, " --exact \\\n  ");
  return [...text.matchAll(/(\s*)(\S+(?: \\(?=\n))?)/g)].flatMap(([, space = "", word = ""]) => [space, span("", word)]);
}

/**
 * A line of a game, with the variations that branch off from it.
 * @typedef {object} Branch
 * @property {string[]} words
 * @property {number} ply The number of half-moves so far.
 * @property {number} from The number of half-moves before the line.
 * @property {Branch[]} variations
 */

/**
 * Returns a line, followed by its variations. Each variation begins with its own first move. Variations that branch off later come first,
 * so that a reader finds the moves before a variation in the lines above it.
 * @param {Branch} line
 * @returns {Branch[]}
 */
function unfolded(line) {
  return [line, ...[...line.variations].sort((one, other) => other.from - one.from).flatMap(unfolded)];
}

/**
 * Returns the lines of games with variations: the main line first, then each variation without the moves before it.
 * @param {string} pgn
 */
function firstLines(pgn) {
  /** @type {Branch[]} */
  const games = [];
  for (const game of pgn.split(/\n\n(?!\[)/)) {
    const moves = game.replace(/^\s*\[[^\n]*$/gm, "").replace(/\{[^}]*\}|\$\d+/g, " ");
    /** @type {Branch[]} */
    const open = [];
    for (const token of moves.match(/[()]|[^\s()]+/g) ?? []) {
      if (token === ")") open.pop();
      else if (token === "(" || !open.length) {
        const parent = open.at(-1);
        const from = parent ? parent.ply - 1 : 0;
        const line = { words: [parent ? "…" : token], ply: from, from, variations: [] };
        (parent?.variations ?? games).push(line);
        open.push(line);
      } else if (/^\d+\.\.\.$/.test(token)) {
        // In the file, a number with dots precedes a move of Black that follows a variation. Here, variations are separate lines.
        if (open.at(-1)?.words.join() === "…") open.at(-1)?.words.push(token);
      } else if (!/^(\*|1-0|0-1|1\/2-1\/2)$/.test(token)) {
        const line = open.at(-1);
        line?.words.push(token);
        if (line && !/^\d/.test(token)) line.ply += 1;
      }
    }
  }
  // A variation of the first move has no moves before it.
  return games.flatMap(unfolded).map(({ words }) => words.join(" ").replace(/^… (?=1\. )/, ""));
}

/** @param {number} bytes */
function byteWords(bytes) {
  if (bytes < 1000) return `${number(bytes)} bytes`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
