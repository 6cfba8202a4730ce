// @ts-check
// The start of the page. It connects the controls, and shows the view that the address describes as soon as the server can answer.

import { ask } from "./api.js";
import { drawStrips } from "./boardview.js";
import { connectControls } from "./controls.js";
import { buildFilters } from "./dialogs.js";
import { byId, fill, make, on, span } from "./dom.js";
import { board, widest } from "./elements.js";
import { notePop } from "./history.js";
import { connect, goToAddress, refresh } from "./navigation.js";
import { fail } from "./recovery.js";
import { close } from "./returning.js";
import { connectDrop, sentRepertoires, withSent } from "./sent.js";
import { session } from "./session.js";
import { show } from "./show.js";
import { readView } from "./state.js";
import { reading } from "./states.js";

/** The interval in milliseconds at which the progress of an index is requested. */
const READING = 1000;
const START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/** Requests the served games and books, and then shows the view of the address. */
async function start() {
  try {
    session.about = await ask("about");
    if (session.about.indexing) await waitForIndex();
    session.about.repertoires = withSent(await sentRepertoires(), session.about.repertoires ?? []);
  } catch (error) {
    await fail(error);
    document.body.removeAttribute("aria-busy");
    return;
  }
  buildFilters();
  await goToAddress();
}

/** Shows the progress of the index until it is complete. */
async function waitForIndex() {
  const names = session.about.sources.map(({ name }) => name).join(", ");
  const pause = () => new Promise((resolve) => setTimeout(resolve, READING));
  while (session.about.indexing) {
    board.position = { fen: START, check: false, legal: [] };
    board.arrows = [];
    drawStrips();
    fill(byId("heading"), make("h2", "", span("family", "Starting position")));
    fill(byId("results"));
    fill(byId("moves"), reading(session.about.indexing, names));
    fill(byId("tally"), "indexing the games");
    await pause();
    // The request may fail at the moment when the index becomes ready.
    session.about = await ask("about").catch(() => pause().then(() => ask("about")));
  }
}

connect(show, start);
connectControls();
connectDrop();
addEventListener("popstate", () => {
  notePop();
  const { shown } = session;
  if (shown?.game && !readView(location.search).game) close(shown.game);
  void goToAddress();
});
on(widest, "change", () => session.answer && void refresh());
void start();
