// @ts-check
// Opens the dialogs of the filters, and of books and repertoires.

import { ask } from "./api.js";
import { byId, fill, on } from "./dom.js";
import { FiltersDialog } from "./filters.js";
import { BookDialog } from "./makebook.js";
import { go } from "./navigation.js";
import { session } from "./session.js";
import { filterQuestion, put } from "./state.js";

/** @typedef {import("./api.js").Answer} Answer */

/** @type {FiltersDialog | undefined} */
let filtersDialog;
const bookDialog = new BookDialog(byId("book"), () => openFilters());

/** Builds the dialog of the filters, for the games that the server shows. */
export function buildFilters() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("filters"));
  if (dialog.open) return;
  fill(dialog);
  filtersDialog = new FiltersDialog(dialog, session.about, ({ filters, variant }) => {
    // The games with the same pawns or material came to the position by other moves, too.
    const isOther = variant !== session.view.variant || (filters.position ?? "") !== (session.view.filters.position ?? "");
    void go({ filters, variant, list: "", ...(isOther && { fen: "", play: [], game: "" }) }, { push: true });
  });
}

/** @param {string} [field] The filter that gets the focus, or an empty string for the first one. */
export function openFilters(field = "") {
  // The dialog does not exist while the index is being made.
  const { view, answer } = session;
  const isStart = !view.play.length && !view.fen;
  filtersDialog?.open(view, field, session.prepared !== undefined, isStart ? "" : (answer?.polybook.fen ?? ""));
}

/** Opens the filters with a slash after the player's names, so that a further name can be typed. */
export function addName() {
  openFilters("player");
  const input = document.activeElement;
  if (input instanceof HTMLInputElement) input.setRangeText(" / ", input.value.length, input.value.length, "end");
}

/** @param {"book" | "repertoire"} kind */
export async function openBook(kind) {
  const { view, answer } = session;
  const counts = view.play.length || view.fen ? await ask("lichess", put(filterQuestion(view), { moves: 5 })).catch(() => undefined) : answer;
  bookDialog.open(kind, session.view, /** @type {Answer | undefined} */ (counts));
}

/** Makes a press outside of an open dialog close the dialog. */
export function closeOnPressOutside() {
  for (const dialog of document.querySelectorAll("dialog")) {
    on(dialog, "pointerdown", (event) => {
      if (event.target !== dialog) return;
      const { left, right, top, bottom } = dialog.getBoundingClientRect();
      const { clientX: x, clientY: y } = event;
      if (x < left || x > right || y < top || y > bottom) dialog.close();
    });
  }
}
