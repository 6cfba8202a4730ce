// @ts-check
// The dialog with the names of the user. Games under any of these names count as the user's.

import { ask, suggestions, words } from "./api.js";
import { button, byId, dialogTop, div, fill, icon, make, on, p, small, span } from "./dom.js";
import { say } from "./elements.js";
import { counted, folded } from "./format.js";
import { isMe, myNames, setMyNames } from "./me.js";
import { go } from "./navigation.js";
import { countGames } from "./requests.js";
import { suggestionWords } from "./search.js";
import { session } from "./session.js";
import { joined, nameText, put, sourceOnly } from "./state.js";
import { Combobox, marked } from "./suggest.js";

/** @typedef {import("./api.js").Facets} Facets */

const dialog = /** @type {HTMLDialogElement} */ (byId("me"));
const note = p("note wrong");
/** Resolves when the last name has been added. Names are added one after the other, because each is compared with all others. */
let adding = Promise.resolve(true);

/** Opens the dialog. */
export function openMe() {
  note.textContent = "";
  build();
  dialog.showModal();
  dialog.querySelector("input")?.focus();
}

/** Builds the dialog for the current names. */
function build() {
  const names = myNames();
  const rows = names.map((name) => {
    const facts = small();
    void describe(name, facts);
    const remove = button({ class: "plain icon-only", "aria-label": `Remove ${name}` }, [icon("close")], () => change(names.filter((other) => other !== name), `Removed ${name}`));
    return make("li", "", span("", name), facts, remove);
  });
  const input = make("input", { "aria-label": "A name in the games", placeholder: "Lichess, Chess.com or over the board" });
  const field = div("field", p("label", names.length ? "Add a name " : "Your name ", span("", "as the games spell it")), div("combobox", input), note);
  const show = button({ class: "main", disabled: names.length ? undefined : "" }, ["Show my games"], async () => {
    // A name that was typed counts, too.
    const typed = input.value.trim();
    if (typed && !(await add(typed))) return;
    dialog.close();
    void go({ fen: "", play: [], tab: "", me: "", list: "", game: "", flip: "", filters: { ...sourceOnly(session.view.filters), player: joined(myNames()) } }, { push: true });
  });
  on(input, "input", () => (show.disabled = !names.length && !input.value.trim()));
  void countMine(names, show);
  const bottom = div("bottom", ...(names.length ? [button("", ["Forget me"], () => change([], "Your names are forgotten"))] : []), show);
  // If a press closed the suggestions, the buttons would move away from the pointer.
  on(bottom, "pointerdown", (event) => event.preventDefault());
  fill(
    dialog,
    dialogTop(dialog, names.length ? "This is me" : "Which player are you?"),
    div("body",
      ...(rows.length ? [make("ul", { class: "card names", "aria-label": "Your names" }, ...rows)] : []),
      field,
      p("quiet", "Games under any of these names count as yours. The list stays in this browser. A link that you share names the players, not “me”."),
    ),
    bottom,
  );
  new Combobox(input, find, (text) => void add(text));
}

/**
 * Stores other names, and shows them.
 * @param {string[]} names
 * @param {string} news
 */
function change(names, news) {
  const isStored = setMyNames(names);
  note.textContent = "";
  build();
  say(news);
  if (!isStored) warn("The browser could not store your names, so this change is lost when the page is loaded again.");
  dialog.querySelector("input")?.focus();
}

/**
 * Says which names of the user contain all words of a text. Returns an empty string if none does.
 * @param {string} text
 */
function listed(text) {
  const names = myNames().filter((name) => folded(text).split(/[\s,]+/).every((word) => folded(name).includes(word)));
  return names.length ? `Already in the list: ${nameText(joined(names))}.` : "";
}

/**
 * Suggests names that are not in the list yet.
 * @param {string} text
 * @param {AbortSignal} signal
 */
async function find(text, signal) {
  const found = await suggestions("player", text, session.view.filters.source, 6, signal, myNames());
  const options = found.filter(({ name }) => !isMe(name)).map((one) => ({ isSimilar: one.distance > 0 || isMe(text), content: marked(one.name, text), more: `${suggestionWords(one)}${one.met ? ` · ${counted(one.met)} against you` : ""}`, take: () => void add(one.name) }));
  return [{ message: [listed(text), options.length ? options[0]?.isSimilar && "Similar names:" : `No other player is called “${text}”.`].filter(Boolean).join(" "), options }];
}

/**
 * Opens the dialog if it is closed, and shows a problem in it.
 * @param {string} problem
 */
function warn(problem) {
  if (!dialog.open) openMe();
  note.textContent = problem;
}

/**
 * Adds a name after the names that are being added. Returns false if it is refused, and shows the reason.
 * @param {string} text
 */
function add(text) {
  adding = adding.then(async () => {
    const problem = await tryAdd(text).catch(words);
    if (problem) warn(problem);
    return !problem;
  });
  return adding;
}

/**
 * Adds names until one is refused.
 * @param {string[]} names
 */
export async function addAll(names) {
  for (const name of names) if (!(await add(name))) return;
}

/**
 * Adds a name. Returns a problem if no game contains the name, or if a game was played between this name and another name of the user.
 * @param {string} text
 */
async function tryAdd(text) {
  const { source } = session.view.filters;
  const found = (await suggestions("player", text, source, 1, undefined, myNames())).find(({ name }) => name.toLowerCase() === text.toLowerCase());
  if (!found) return listed(text) || `No player has the whole name “${text}”.`;
  if (isMe(found.name)) {
    // Outside the dialog, nothing needs to be said, because the name is in the list as the user wants.
    if (dialog.open) warn(listed(found.name));
    return "";
  }
  for (const other of found.met ? myNames() : []) {
    const together = new URLSearchParams({ player: found.name, opponent: other, ...(source && { source }) });
    const games = await countGames(together, AbortSignal.timeout(5000));
    if (games) return `${found.name} and ${other} played ${counted(games)} against each other, so they are two players.`;
  }
  // The user may have changed the names in the meantime.
  change([...myNames(), found.name], `Added ${found.name}. ${counted(found.games)}`);
  return "";
}

/**
 * Shows the number of games of a name, and their years.
 * @param {string} name
 * @param {HTMLElement} place
 */
async function describe(name, place) {
  const found = await suggestions("player", name, session.view.filters.source, 1).catch(() => []);
  const exact = found.find((one) => one.name.toLowerCase() === name.toLowerCase());
  place.textContent = exact ? suggestionWords(exact) : "no games here";
}

/**
 * Writes the number of games of all names on a button.
 * @param {string[]} names
 * @param {HTMLElement} place
 */
async function countMine(names, place) {
  if (!names.length) return;
  const parameters = put(new URLSearchParams(sourceOnly(session.view.filters)), {});
  for (const name of names) parameters.append("player", name);
  const facets = /** @type {Facets | undefined} */ (await ask("facets", parameters).catch(() => undefined));
  if (facets) place.textContent = `Show my ${counted(facets.games)}`;
}
