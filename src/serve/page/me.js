// @ts-check
// The names of the user in the games. The browser stores them, and only this server gets them.

import { session } from "./session.js";
import { namesIn } from "./state.js";

const KEY = "polybook.me";

/** The names, if the browser does not store anything. */
let unstored = /** @type {string[] | undefined} */ (undefined);

/** Returns the names of the user: those that the user chose, or else those with which the server was started. */
export function myNames() {
  return chosen() ?? session.about.me ?? [];
}

function chosen() {
  try {
    const text = localStorage.getItem(KEY);
    return text === null ? unstored : /** @type {string[]} */ (JSON.parse(text));
  } catch {
    return unstored;
  }
}

/** @param {string[]} names */
export function setMyNames(names) {
  unstored = names;
  try {
    localStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // The browser does not store anything.
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

/** Returns the names for which the view is a preparation, or an empty list if it is none. */
export function preparingNames() {
  const { view, about } = session;
  const { player, color } = view.filters;
  const isCounts = about.sources.some(({ counts }) => counts);
  if (view.tab !== "prepare" || view.game || !player || !color || isCounts || isMe(player)) return [];
  return view.me ? namesIn(view.me) : myNames();
}
