// @ts-check
// The address of the page, and the entries of the browser's history.

import { session } from "./session.js";
import { address } from "./state.js";

/** @typedef {import("./state.js").View} View */

/** Whether the next view that is shown becomes a new entry of the history. If false, it replaces the current entry. */
let pushes = false;
/** Whether the user went back or forward in the history, and the view of that entry is not shown yet. */
let popped = false;

/** Makes the requested view a new entry of the history when it is shown. */
export function pushNext() {
  pushes = true;
}

/** Makes the requested view replace the current entry of the history. */
export function replaceNext() {
  pushes = false;
}

/** Notes that the user went back or forward in the history. */
export function notePop() {
  popped = true;
}

/** Writes the requested view into the address. From now on it is the shown view. */
export function writeView() {
  const { view, shown } = session;
  const target = address(view);
  if (pushes && shown && target !== address(shown)) history.pushState(null, "", target);
  else history.replaceState(null, "", target);
  pushes = popped = false;
  session.shown = view;
}

/**
 * Makes the shown view the requested one again, because the requested view cannot be shown. Writes it into the address, unless the user
 * went back or forward in the history: then the address stays, and the next view becomes a new entry.
 * @param {View} shown
 */
export function restoreView(shown) {
  session.view = shown;
  pushes = popped;
  if (!popped) history.replaceState(null, "", address(shown));
}

/**
 * Changes a part of the view that does not affect the counts, and writes it into the address.
 * @param {Partial<View>} change
 */
export function changeShown(change) {
  session.view = { ...session.view, ...change };
  if (session.shown) session.shown = { ...session.shown, ...change };
  history.replaceState(null, "", address(session.shown ?? session.view));
}
