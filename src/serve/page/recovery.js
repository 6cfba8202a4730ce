// @ts-check
// Reports errors: shows a message about an error, and determines which view the page shows instead of the requested one.

import { Refused, Unreachable, ask, words } from "./api.js";
import { drawBoard } from "./boardview.js";
import { notice, searchField } from "./elements.js";
import { replaceNext, restoreView } from "./history.js";
import { go, goToAddress, restart } from "./navigation.js";
import { session } from "./session.js";
import { address, withoutFilters } from "./state.js";

/** @typedef {import("./api.js").About} About */
/** @typedef {import("./state.js").View} View */

/**
 * Reports an error. The page continues to show what it showed before.
 * @param {unknown} error
 */
export async function fail(error) {
  replaceNext();
  session.ahead = 0;
  if (error instanceof Unreachable) {
    stay();
    notice.stopped(() => void restart());
    return;
  }
  if (error instanceof Refused && error.status === 503) {
    const now = await ask("about").catch(() => undefined);
    if (/** @type {About | undefined} */ (now)?.indexing) {
      await restart();
      return;
    }
    stay();
    notice.show("This cannot be shown:", `${error.message}.`, ["Retry", () => void goToAddress()]);
    return;
  }
  const { shown, view } = session;
  const { fen } = view;
  const problem = words(error).replace(/^FEN "[^"]*": | in \S+\/.*/, "");
  if (shown) {
    stay();
    notice.show(fen && fen !== shown.fen ? "Not a position:" : "This cannot be shown:", `${problem}. The board stays as it was.`, undefined);
    return;
  }
  // The address is wrong. Show the part of it that is valid.
  const [title, change] = view.game
    ? ["This game cannot be shown:", { game: "" }]
    : fen
      ? ["Not a position:", { fen: "", play: [] }]
      : view.play.length
        ? ["This line cannot be played:", { play: [] }]
        : ["A filter is not valid and was removed:", withoutInvalid(view, problem)];
  const readable = /** @type {View} */ ({ ...view, ...change });
  notice.show(/** @type {string} */ (title), `${problem}.${fen ? " This is the starting position." : ""}`, fen ? ["Edit", () => edit(fen)] : ["All games", () => location.assign(location.pathname)]);
  if (address(readable) !== address(view)) await go(readable, { keeps: true });
}

/**
 * Returns the filters and the variant of a view without those that a problem is about, or none if it names none of them.
 * @param {View} view
 * @param {string} problem
 */
function withoutInvalid({ filters, variant }, problem) {
  const all = /** @type {import("./state.js").Filters} */ (variant ? { ...filters, variant } : filters);
  const [, named] = /^the parameter (\w+) /.exec(problem) ?? [];
  const wrong = Object.keys(all).filter((name) => (named ? name === named : problem.includes(name) || problem.includes(all[name] ?? "")));
  if (!wrong.length) return { filters: {}, variant: "" };
  return { filters: withoutFilters(filters, wrong), variant: wrong.includes("variant") ? "" : variant };
}

/** Goes back to the view that is shown. */
function stay() {
  const { shown, answer } = session;
  if (!shown || !answer) return;
  restoreView(shown);
  drawBoard(answer);
}

/**
 * Puts a text into the search field, so that the user can correct it.
 * @param {string} text
 */
export function edit(text) {
  searchField.value = text.replaceAll("_", " ");
  searchField.focus();
}
