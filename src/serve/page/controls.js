// @ts-check
// The controls: buttons, keys, the mouse on the board, and the search field.

import { flip } from "./boardview.js";
import { openings } from "./details.js";
import { closeOnPressOutside, openBook, openFilters } from "./dialogs.js";
import { byId, copy, dialogTop, div, icon, make, on, p, toggle } from "./dom.js";
import { board, menu, notice, searchField, widest } from "./elements.js";
import { isMe } from "./me.js";
import { openMe } from "./medialog.js";
import { changeFilters, go, goHome, leave, play, refresh, walk } from "./navigation.js";
import { enlargeBoard, table } from "./panelview.js";
import { answerMove, endPractice, isPractising } from "./practise.js";
import { goToRead } from "./readtext.js";
import { edit } from "./recovery.js";
import { toggleLast } from "./repertoireview.js";
import { buildSearch } from "./search.js";
import { session } from "./session.js";

/** The host names of the computer on which the browser runs. */
const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/;

/** Connects all controls with their actions. */
export function connectControls() {
  const openKeys = listenToKeys();
  const acts = /** @type {Record<string, () => void>} */ ({
    first: () => walk("first"),
    back: () => walk("back"),
    forward: () => walk("forward"),
    last: () => walk("last"),
    flip,
    fen: () => void copy(session.answer?.polybook.fen ?? "", "FEN"),
    link: () => void share(),
    me: openMe,
    book: () => void openBook("book"),
    mark: () => void openBook("repertoire"),
    clock: toggleTimes,
    filters: () => openFilters(),
    keys: openKeys,
    more: () => menu.showModal(),
  });
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-act], [data-icon]"))) {
    const { act = "", icon: picture = act === "me" ? "user" : act } = element.dataset;
    element.prepend(icon(picture));
    on(element, "click", () => {
      if (!act || element.getAttribute("aria-disabled") === "true") return;
      menu.close();
      acts[act]?.();
    });
  }
  on(byId("enlarge"), "click", enlargeBoard);
  closeOnPressOutside();
  on(board, "play", (event) => {
    const { detail } = /** @type {CustomEvent<string>} */ (event);
    if (isPractising()) void answerMove(detail);
    else play(detail);
  });
  // The wheel only moves along the known line. Turning it by mistake must not play new moves.
  board.addEventListener("step", (event) => {
    if (isPractising()) return;
    if (/** @type {CustomEvent<number>} */ (event).detail < 0) walk("back");
    else if (session.view.play.length < session.known.length) walk("forward");
  });
  on(byId("home"), "click", (event) => {
    event.preventDefault();
    goHome();
  });
  connectSearch();
}

/** Starts listening for keys, and returns the function that opens their help. */
function listenToKeys() {
  const open = listen([
    { keys: ["ArrowLeft", "ArrowRight"], does: "go one move back or forward; after the end of the line, play the most played move", act: (key) => walk(key === "ArrowLeft" ? "back" : "forward") },
    { keys: ["Home", "End"], does: "go to the start or the end of the line", act: (key) => walk(key === "Home" ? "first" : "last") },
    { keys: ["ArrowUp", "ArrowDown"], does: "select a move in the table", act: (key) => table.choose(key === "ArrowUp" ? -1 : 1) },
    { keys: ["Enter"], does: "play the selected move" },
    { keys: ["a"], does: "add the selected move or your last move to the repertoire, or remove it", act: () => void (table.toggleChosen() || toggleLast()) },
    { keys: ["/"], does: "search players, events and openings, or paste a FEN or moves", act: () => searchField.focus() },
    { keys: ["f"], does: "flip the board", act: flip },
    { keys: ["F"], does: "open the filters", act: () => openFilters() },
    { keys: ["m"], does: "open your names", act: openMe },
    { keys: ["b"], does: "make a book", act: () => void openBook("book") },
    { keys: ["r"], does: "make or open a repertoire", act: () => void openBook("repertoire") },
    { keys: ["g"], does: "go to the games, or to those of the selected opening", act: () => void goToGames() },
    { keys: ["t"], does: "show the mean time of each move, from the clocks in the games", act: toggleTimes },
    { keys: ["c"], does: "copy the link", act: () => void share() },
    { keys: ["?"], does: "open this help", act: () => open() },
    { keys: ["Escape"], does: "go back to the open game, or close it", act: leave },
  ]);
  return open;
}

function connectSearch() {
  buildSearch(searchField, {
    player: (name) => {
      session.view = { ...session.view, game: "" };
      const { filters } = session.view;
      // After the user's own games, another player is an opponent, who has the other color.
      const isOpponent = filters.color && isMe(filters.player) && !isMe(name);
      changeFilters({ ...filters, player: name, ...(isOpponent && { color: filters.color === "white" ? "black" : "white" }) });
    },
    event: (name) => changeFilters({ ...session.view.filters, event: name }),
    opening: (moves) => {
      session.known = [];
      void go({ variant: "", fen: "", play: moves, game: "" }, { push: true });
    },
    position: (read) => void goToRead(read),
    wrong: (problem, text) => notice.show("Not a position:", `${problem}. The board stays as it was.`, ["Edit", () => edit(text)]),
    where: () => ({ variant: session.view.variant, source: session.view.filters.source }),
  });
}

/** Shows the mean times of the moves, or hides them. */
function toggleTimes() {
  session.timed = !session.timed;
  void refresh();
}

/** Shows the games, and focuses the first one. */
async function goToGames() {
  if (session.view.tab) await (openings.listFocused() ?? go({ tab: "" }, { push: true }));
  byId("side").scrollIntoView();
  const first = byId("games").querySelector(".game");
  if (first instanceof HTMLElement) first.focus({ preventScroll: true });
}

/** Shares the address with another app on phones, and copies it elsewhere. */
async function share() {
  if (!widest.matches && typeof navigator.share === "function" && matchMedia("(pointer: coarse)").matches) {
    await navigator.share({ url: location.href, title: document.title }).catch(() => undefined);
  } else await copy(location.href, "Link", LOOPBACK.test(location.hostname) ? ". It works on this computer only." : "");
}

/** @typedef {{ keys: string[], does: string, act?: (key: string) => void }} Key */

const SWITCH = "polybook.keys";

/** The state of the switch for keyboard shortcuts, if the browser could not store it. */
let unstored = /** @type {string | null} */ (null);

/**
 * Starts listening for the keys, and fills the dialog.
 * @param {Key[]} keys
 */
function listen(keys) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("keys"));
  const isOn = () => stored() !== "off";
  const names = /** @type {Record<string, string>} */ ({ ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" });
  const rows = keys.map(({ keys: own, does }) => div("", make("dt", "", ...own.map((key) => make("kbd", "", names[key] ?? key))), make("dd", "", does)));
  dialog.append(
    dialogTop(dialog, "Keyboard and help"),
    div("body",
      make("dl", "", ...rows),
      p("quiet", "The number next to a move counts the games that played it in this position. “+3” means that three more games reached the resulting position by another move order. Below a bar, “after: 52% of 40” is the score of all 40 games that reached it by any move order."),
      toggle("keys", "Single-letter shortcuts", "", isOn(), (isOn) => store(isOn ? "on" : "off")),
    ),
  );
  on(document, "keydown", (event) => {
    const { target, key } = event;
    const types = target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || types) return;
    if (document.querySelector("dialog[open]")) return;
    if (isPractising()) return key === "Escape" ? endPractice() : undefined;
    if (key.length === 1 && !isOn() && key !== "?") return;
    const found = keys.find(({ keys: own, act }) => act && own.includes(key));
    if (!found?.act) return;
    event.preventDefault();
    found.act(key);
  });
  return () => dialog.showModal();
}

function stored() {
  try {
    return unstored ?? localStorage.getItem(SWITCH);
  } catch {
    return unstored;
  }
}

/** @param {string} value */
function store(value) {
  try {
    localStorage.setItem(SWITCH, value);
    unstored = null;
  } catch {
    unstored = value;
  }
}
