// @ts-check
// Shows the requested view: requests its data, writes its address, and draws it.

import { Asking, Refused, ask, words } from "./api.js";
import { requestOpenings, showDetails } from "./details.js";
import { byId } from "./dom.js";
import { focusView, notice } from "./elements.js";
import { pushNext, writeView } from "./history.js";
import { chosenRepertoire, isMe, preparingNames } from "./me.js";
import { walkAhead } from "./navigation.js";
import { draw } from "./panelview.js";
import { stopPractice } from "./practise.js";
import { fail } from "./recovery.js";
import { repertoireQuestion } from "./repertoireview.js";
import { chooseColor, count, countColors, openGame, prepare, sharedLine } from "./requests.js";
import { fenProblem } from "./search.js";
import { session } from "./session.js";
import { put, question, ucis } from "./state.js";

/** @typedef {import("./api.js").Book} Book */
/** @typedef {import("./api.js").Repertoire} Repertoire */

/** The time in milliseconds after which the previous numbers are marked as out of date, if the new ones have not arrived. */
const STALE = 150;

const asking = new Asking();

/**
 * Shows the requested view. Stops if another view is requested before the data of this one arrive.
 * @param {import("./navigation.js").How} [how]
 */
export async function show({ push = false, opens = false, keeps = false, choose } = {}) {
  stopPractice();
  if (push) pushNext();
  const signal = asking.next();
  document.body.setAttribute("aria-busy", "true");
  byId("panel").setAttribute("aria-busy", "true");
  /** @type {Promise<void> | undefined} */
  let details;
  const stale = setTimeout(() => byId("panel").classList.add("stale"), STALE);
  try {
    const change = await choose?.(signal);
    if (signal.aborted) return;
    session.view = { ...session.view, ...change };
    const { fen, filters, game: id } = session.view;
    const wrong = fen && fenProblem(fen);
    if (wrong) throw new Refused(wrong, 400);
    const isPlayer = Boolean(filters.player) && !id;
    const game = await openGame(opens, signal);
    if (isPlayer) await chooseColor(signal);
    if (signal.aborted) return;
    const me = preparingNames();
    const { about, view, opened, lastShared } = session;
    const play = sharedLine(game);
    const offered = chosenRepertoire(me.length > 0);
    // A repertoire for one color says nothing about the user's games with the other color.
    const chosen = isPlayer && isMe(view.filters.player) && offered?.color !== view.filters.color ? undefined : offered;
    const isOurs = chosen && chosen.color !== view.filters.color;
    const isAlone = play.length < view.play.length;
    const isKnown = lastShared && game === opened && ucis(lastShared.polybook.line).join() === play.join();
    const openings = requestOpenings(view, signal);
    const [counts, shared, books, known, prepared] = await Promise.all([
      count(view, isPlayer, signal),
      !isAlone ? undefined : isKnown ? lastShared : count({ ...view, play }, isPlayer, signal),
      about.books.length ? ask("book", question({ ...view, filters: {} }), signal) : { books: [] },
      chosen ? ask("repertoire", put(question(view), repertoireQuestion(chosen)), signal) : { repertoires: [] },
      me.length ? prepare(view, me, isOurs ? repertoireQuestion(chosen) : {}, signal).catch(refusal) : undefined,
      isPlayer ? countColors(signal) : undefined,
    ]);
    if (signal.aborted) return;
    session.opened = game;
    session.lastShared = shared;
    // Use the server's spelling of castling, because moves are compared as texts.
    session.view = { ...session.view, play: ucis(counts.polybook.line) };
    writeView();
    session.answer = counts;
    session.unprepared = typeof prepared === "string" ? prepared : "";
    session.prepared = typeof prepared === "string" ? undefined : prepared;
    // In a preparation, the repertoire is for the user's color. If the preparation is refused, another color is at the bottom of the board.
    session.report = session.unprepared ? undefined : /** @type {{ repertoires: Repertoire[] }} */ (known).repertoires[0];
    if (!keeps) notice.clear();
    const hadFocus = document.activeElement !== document.body;
    draw(counts, /** @type {{ books: Book[] }} */ (books).books, signal);
    const { activeElement } = document;
    // The new view may lack the element that had the focus, or hide it.
    if ((hadFocus || push) && (activeElement === document.body || !activeElement?.getClientRects().length)) focusView();
    walkAhead();
    if (!signal.aborted) details = showDetails(counts, openings, signal);
  } catch (error) {
    if (!signal.aborted) await fail(error);
  } finally {
    clearTimeout(stale);
    if (asking.signal === signal) {
      byId("panel").classList.remove("stale");
      document.body.removeAttribute("aria-busy");
    }
    void Promise.resolve(details).finally(() => asking.signal === signal && byId("panel").removeAttribute("aria-busy"));
  }
}

/**
 * Returns the reason why the server refuses a preparation. The page shows everything else.
 * @param {unknown} error
 */
function refusal(error) {
  // Status 503 means that the server is not ready.
  if (error instanceof Refused && error.status !== 503) return words(error);
  throw error;
}
