// @ts-check
// Lines that the server reads from a text, such as a FEN, moves or a game.

import { ask } from "./api.js";
import { notice } from "./elements.js";
import { go } from "./navigation.js";
import { fail } from "./recovery.js";
import { session } from "./session.js";
import { put, ucis } from "./state.js";

/** @typedef {import("./api.js").Moves} Moves */
/** @typedef {import("./state.js").View} View */

/**
 * Goes to a line that the server read.
 * @param {Moves} read
 * @param {Partial<View>} [change] Further changes of the view.
 */
export async function goToRead(read, change) {
  const variant = read.variant === "normal" ? session.view.variant : read.variant;
  session.known = [];
  await go({ variant, fen: read.start ?? "", play: ucis(read.moves), game: "", ...change }, { push: true });
  if (read.problem) notice.show("Only a part of the text could be read.", `The line ends before ${read.problem}.`, undefined, "warn");
}

/**
 * Lets the server read a text, and goes to its line.
 * @param {string} text
 * @param {Partial<View>} [change] Further changes of the view.
 */
export async function goToText(text, change) {
  const { variant } = session.view;
  const parameters = put(new URLSearchParams(), { text, ...(variant && { variant }) });
  await ask("read", parameters).then((read) => goToRead(/** @type {Moves} */ (read), change), fail);
}
