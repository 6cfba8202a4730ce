// @ts-check
// The names under which the user plays, and the repertoire of the user. The browser stores the names, and sends them only to this
// server.

import { blackBelow, session } from "./session.js";
import { namesIn } from "./state.js";

const KEY = "polybook.me";

/** The names that the browser could not store. */
let unstored = /** @type {string[] | undefined} */ (undefined);

/** Returns the names of the user: those that the user chose, or else those with which the server was started. */
export function myNames() {
  return chosen() ?? session.about.me ?? [];
}

function chosen() {
  try {
    return unstored ?? listed(JSON.parse(localStorage.getItem(KEY) ?? "null"));
  } catch {
    return unstored;
  }
}

/**
 * Returns a stored value if it is a list of names. Another program that used this port may have stored something else.
 * @param {unknown} value
 */
function listed(value) {
  const isList = Array.isArray(value) && value.every((name) => typeof name === "string" && name.trim());
  return isList ? /** @type {string[]} */ (value) : undefined;
}

/**
 * Replaces the names of the user. Returns false if the browser could not store them.
 * @param {string[]} names
 */
export function setMyNames(names) {
  try {
    // Removing works even if the storage is full.
    if (!names.length) localStorage.removeItem(KEY);
    // A stored empty list hides the names with which the server was started.
    if (names.length || session.about.me?.length) localStorage.setItem(KEY, JSON.stringify(names));
    unstored = undefined;
    return true;
  } catch {
    unstored = names;
    return false;
  }
}

/**
 * Returns true if all names of a player are names of the user.
 * @param {string | undefined} player The names, one on each line.
 */
export function isMe(player) {
  const mine = myNames().map((name) => name.toLowerCase());
  const names = namesIn(player);
  return names.length > 0 && names.every((name) => mine.includes(name.toLowerCase()));
}

/**
 * Returns the first name for which the view is a preparation, without the first names of the person. Returns an empty string if the
 * person is the user.
 */
export function otherPreparer() {
  const names = preparingNames();
  return isMe(names.join("\n")) ? "" : (names[0]?.split(",")[0] ?? "");
}

/** Returns the names for which the view is a preparation, or an empty list if it is none. */
export function preparingNames() {
  const { view, about } = session;
  const { player, color } = view.filters;
  const isCounts = about.sources.some(({ counts }) => counts);
  if (view.tab !== "prepare" || view.game || !player || !color || isCounts || isMe(player)) return [];
  return view.me ? namesIn(view.me) : myNames();
}

/**
 * Returns the repertoire that the page shows. It is one for the side at the bottom, if there is one. In the games of the user, it is
 * one for the color of the user, however the board is turned.
 * @param {boolean} [isPreparing] Whether the view is a preparation, if the page does not show it yet.
 */
export function chosenRepertoire(isPreparing) {
  const all = session.about.repertoires ?? [];
  const { player, color } = session.view.filters;
  const side = color && isMe(player) ? color : blackBelow(isPreparing) ? "black" : "white";
  const ofSide = all.filter(({ color }) => color === side);
  const offered = ofSide.length ? ofSide : all;
  return offered.find(({ name }) => name === session.view.repertoire) ?? offered[0];
}
