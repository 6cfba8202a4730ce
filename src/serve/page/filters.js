// @ts-check
// Which games count: a form over the filters of the address, and the command that makes a book of them.

import { make, number } from "./api.js";

/** @typedef {import("./api.js").About} About */

const SPEEDS = [
  ["ultraBullet", "UltraBullet"],
  ["bullet", "Bullet"],
  ["blitz", "Blitz"],
  ["rapid", "Rapid"],
  ["classical", "Classical"],
  ["correspondence", "Correspondence"],
];

const RATINGS = ["0", "1000", "1200", "1400", "1600", "1800", "2000", "2200", "2500"].map(
  (group, index, all) => {
    const next = all[index + 1];
    const range = next ? `${group}–${Number(next) - 1}` : `${group} and above`;
    return [group, index ? range : `under ${next} or unrated`];
  },
);

const RESULTS = [
  ["", "any result"],
  ["1-0", "White won"],
  ["1/2-1/2", "draw"],
  ["0-1", "Black won"],
];

const COLORS = [
  ["", "either color"],
  ["white", "White"],
  ["black", "Black"],
];

/**
 * Builds the form. `changed` is called at each change, `complain` with what is wrong with a text.
 * @param {HTMLFormElement} form
 * @param {About} about
 * @param {(filters: Record<string, string>) => void} changed
 * @param {(problem: string) => void} complain
 */
export function buildFilters(form, about, changed, complain) {
  const sources = about.sources.map(({ name, games }) => [name, `${name} (${number(games)})`]);
  const years = about.years ? about.years.map(String) : ["", ""];
  form.replaceChildren(
    row(field("Player", text("player", "Name as in the games, e.g. anna_plays")), field("Color", choice("color", COLORS))),
    row(field("Opponent", text("opponent", "Name as in the games")), field("Result", choice("result", RESULTS))),
    row(
      field("Since", month("since", years[0] ?? "")),
      field("Until", month("until", years[1] ?? "")),
    ),
    row(field("Event", text("event", "Name as in the games")), field("Opening code (ECO)", text("eco", "B20-B99"))),
    chips("Average rating", "ratings", RATINGS),
    chips("Speed", "speeds", SPEEDS),
  );
  if (sources.length > 1) {
    form.append(row(field("Source", choice("source", [["", "all"], ...sources]))));
  }
  const clear = make("button", { type: "button", class: "quiet" }, "Clear the filters");
  clear.addEventListener("click", () => {
    form.reset();
    changed({});
  });
  form.append(clear);
  form.addEventListener("change", () => {
    const wrong = /** @type {HTMLInputElement | null} */ (form.querySelector("input:invalid"));
    if (wrong) complain(wrong.title);
    else changed(readFilters(form));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

/**
 * @param {HTMLFormElement} form
 * @returns {Record<string, string>}
 */
function readFilters(form) {
  /** @type {Record<string, string>} */
  const filters = {};
  for (const element of form.elements) {
    const isText = element instanceof HTMLInputElement && element.type !== "checkbox";
    if (!isText && !(element instanceof HTMLSelectElement)) continue;
    const isMonth = element.name === "since" || element.name === "until";
    const value = element.value.trim();
    if (value) filters[element.name] = isMonth ? value.replace(".", "-") : value;
  }
  for (const name of ["ratings", "speeds"]) {
    const boxes = [...boxesOf(form, name)];
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    if (chosen.length < boxes.length) filters[name] = chosen.join(",");
  }
  return filters;
}

/**
 * Shows the filters of the address in the form.
 * @param {HTMLFormElement} form
 * @param {Record<string, string>} filters
 */
export function showFilters(form, filters) {
  for (const element of form.elements) {
    if (element instanceof HTMLInputElement && element.type === "checkbox") {
      const list = filters[element.name];
      element.checked = list === undefined || list.split(",").includes(element.value);
    } else if ((element instanceof HTMLInputElement || element instanceof HTMLSelectElement) && element.validity.valid) {
      // A text of the wrong form stays to be corrected.
      element.value = filters[element.name] ?? "";
    }
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function boxesOf(form, name) {
  return /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll(`input[name=${name}]`));
}

/** @param {HTMLElement[]} children */
function row(...children) {
  return make("div", { class: "row" }, ...children);
}

/**
 * @param {string} label
 * @param {HTMLElement} control
 */
function field(label, control) {
  return make("label", {}, make("span", {}, label), control);
}

/**
 * @param {string} name
 * @param {string} placeholder
 */
function text(name, placeholder) {
  return make("input", { name, placeholder, autocomplete: "off", spellcheck: "false" });
}

/**
 * @param {string} name
 * @param {string} year
 */
function month(name, year) {
  return make("input", {
    name,
    placeholder: `Year, e.g. ${year || "2024"}`,
    title: `${name === "since" ? "Since" : "Until"}: write 2019 or 2019-05`,
    pattern: " *[0-9]{4}([.\\-](0[1-9]|1[0-2]))? *",
    inputmode: "numeric",
    autocomplete: "off",
  });
}

/**
 * @param {string} name
 * @param {string[][]} options
 */
function choice(name, options) {
  const select = make("select", { name });
  for (const [value = "", label = value] of options) select.append(make("option", { value }, label));
  return select;
}

/**
 * A group of check boxes.
 * @param {string} label
 * @param {string} name
 * @param {string[][]} options
 */
function chips(label, name, options) {
  const group = make("fieldset", { class: "chips" }, make("legend", {}, `${label} (click to leave out)`));
  for (const [value = "", caption = value] of options) {
    const box = make("input", { type: "checkbox", name, value });
    box.checked = true;
    group.append(make("label", {}, box, make("span", {}, caption)));
  }
  return group;
}

/** What make-book's option for the time of a game takes, in seconds for 40 moves. */
const SECONDS = /** @type {Record<string, [number, number]>} */ ({
  ultraBullet: [0, 29],
  bullet: [30, 179],
  blitz: [180, 479],
  rapid: [480, 1499],
  classical: [1500, 21599],
});

/**
 * The command that makes a book of the filtered games, and where it takes other games than the page.
 * @param {Record<string, string>} filters
 * @param {About} about
 */
export function command(filters, about) {
  const { player, color, opponent, since, until, result, eco, speeds, source } = filters;
  const options = ["polybook make-book --min-game 1"];
  /** @type {string[]} */
  const notes = [];
  const name = (/** @type {string} */ side, /** @type {string | undefined} */ value) => {
    if (value) options.push(`--${side} ${quoted(value)}`);
  };
  if (color) {
    name(color, player);
    name(color === "white" ? "black" : "white", opponent);
  } else {
    name("player", player ?? opponent);
    if (player && opponent) notes.push("This command ignores the opponent. Choose a color to use it.");
  }
  if (player || opponent) options.push("--exact");
  if (filters.event) {
    options.push(`--tag ${quoted(`Event=${filters.event}`)}`);
    notes.push("This command also takes events whose names contain this one.");
  }
  if (since) options.push(`--since ${since.replace("-", ".")}`);
  if (until) options.push(`--until ${until.replace("-", ".")}`);
  if (result) options.push(`--result ${result}`);
  if (eco) options.push(`--eco ${quoted(eco)}`);
  if (speeds !== undefined) {
    const range = secondsOf(speeds.split(",").filter(Boolean));
    if (range) options.push(`--time-control ${range}`);
    else notes.push("This command ignores the speeds. Choose neighboring ones to use them.");
  }
  if (filters.ratings !== undefined) notes.push("This command ignores the average rating.");
  const chosen = about.sources.filter((other) => !source || other.name === source);
  const files = chosen.flatMap((other) => other.files);
  return { command: [...options, ...files.map(quoted), "--bin book.bin"].join(" "), notes };
}

/**
 * The range of seconds that neighbouring speeds take together.
 * @param {string[]} speeds
 */
function secondsOf(speeds) {
  const all = Object.keys(SECONDS);
  const places = speeds.map((speed) => all.indexOf(speed)).sort((a, b) => a - b);
  const isRange = places.every((place, index) => place >= 0 && place === (places[0] ?? 0) + index);
  const [first, last] = [all[places[0] ?? -1], all[places.at(-1) ?? -1]];
  if (!isRange || !first || !last) return "";
  return `${SECONDS[first]?.[0]}-${SECONDS[last]?.[1]}`;
}

/**
 * A word for a shell.
 * @param {string} word
 */
function quoted(word) {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
