// @ts-check
// Practising a repertoire: the page shows the position that the server asks, and sends the user's answer.

import { Asking, Refused, ask as get, send, words } from "./api.js";
import { squares } from "./board.js";
import { b, button, byId, warn, div, fill, icon, make, on, p, unbroken } from "./dom.js";
import { board, say } from "./elements.js";
import { counted, plyNumber } from "./format.js";
import { firstPly } from "./line.js";
import { go, refresh } from "./navigation.js";
import { session } from "./session.js";
import { filterQuestion, put, ucis } from "./state.js";

/** @typedef {import("./api.js").Moves} Moves */
/** @typedef {import("./api.js").Practice} Practice */
/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/** The number of positions that a session asks for the first time. */
const NEW = 10;
/** The time in milliseconds for which the square of a right move is green. */
const PRAISE = 300;
/** The number of wrong moves after which an arrow shows the move of the repertoire. */
const TRIES = 2;

/**
 * The session.
 * @typedef {object} Session
 * @property {ServedRepertoire} repertoire
 * @property {Record<string, string>} question The parameters that select the repertoire.
 * @property {Practice} answer The last answer of the server.
 * @property {number} fresh The number of positions that may still be asked for the first time.
 * @property {number} done The number of positions that were answered rightly. A position that was answered wrongly before is one of them.
 * @property {number} right The number of positions whose first answer was right.
 * @property {Map<number, { text: string, start: string, play: string[] }>} wrong The lines to the positions that were answered wrongly, by the numbers of the positions.
 * @property {Practice | undefined} missed After a wrong answer: the answer of the server, until the user plays the right move.
 * @property {number} tries The number of wrong moves in the position. It is `TRIES` if the user asked for the move.
 * @property {number[]} skipped The numbers of the positions that the session does not ask again.
 * @property {boolean} isWaiting Whether the page shows that a move is right.
 */
/** @type {Session | undefined} */
let current;
const asking = new Asking();

/**
 * Starts to practise a repertoire.
 * @param {ServedRepertoire} repertoire
 * @param {Record<string, string>} question The parameters that select it, with the edits of the user.
 */
export async function practise(repertoire, question) {
  const place = byId("practice");
  try {
    const answer = await ask(question, {});
    current = { repertoire, question, answer, fresh: NEW, done: 0, right: 0, wrong: new Map(), missed: undefined, tries: 0, skipped: [], isWaiting: false };
    document.body.classList.add("practises");
    board.flipped = repertoire.color === "black";
    draw();
    // On a phone, the focus would open the keyboard over the board.
    if (!matchMedia("(pointer: coarse)").matches) place.querySelector("input")?.focus();
    place.scrollIntoView({ block: "nearest" });
  } catch (error) {
    warn(error);
  }
}

export function isPractising() {
  return current !== undefined;
}

/** Ends the session, and hides it. */
export function stopPractice() {
  asking.end();
  if (!current) return;
  current = undefined;
  document.body.classList.remove("practises");
  fill(byId("practice"));
}

/** Ends the session, and shows its results. If it has none, or shows them already, shows the position from which the user started it. */
export function endPractice() {
  if (current?.answer.question && current.right + current.wrong.size) {
    asking.end();
    current.answer = { ...(current.missed ?? current.answer), question: null };
    current.missed = undefined;
    return draw();
  }
  stopPractice();
  void refresh();
}

/**
 * @param {Record<string, string>} question
 * @param {Record<string, string | number>} more
 * @returns {Promise<Practice>}
 */
function ask(question, more) {
  const skipped = current?.skipped.join() ?? "";
  return send("practise", put(filterQuestion(session.view), { ...question, ...(skipped && { skip: skipped }), ...more }), undefined, asking.next());
}

/**
 * Answers with a move, or with an empty text if the user does not know it.
 * @param {string} move In UCI notation or in SAN.
 */
export async function answerMove(move) {
  const asked = current?.answer.question;
  if (!current || !asked || current.isWaiting) return;
  const { missed, question, wrong } = current;
  let played = asked.legal.find(({ uci, san }) => move === uci || move.replace(/[+#]$/, "") === san.replace(/[+#]$/, ""));
  const target = () => played && squares(played).to;
  const fresh = current.fresh - Number(asked.isNew);
  try {
    if (missed?.graded) {
      const signal = asking.next();
      // The server also reads other notations, such as `0-0` and `nf3`.
      if (move && !played) [played] = /** @type {Moves} */ (await get("read", new URLSearchParams({ text: `[Variant "${session.view.variant}"]\n[FEN "${asked.fen}"]\n\n${move}` }), signal)).moves;
      // Only a move of the repertoire goes on.
      if (missed.graded.moves.some(({ uci }) => uci === played?.uci)) await goOn(missed, target());
      else if (move && !played) draw(`“${move}” is not a legal move.`);
      else fail(move, target());
      return;
    }
    const next = await ask(question, { ...where(asked), answer: move, new: fresh });
    if (!next.graded) return;
    current.fresh = fresh;
    if (next.graded.right) {
      current.done += 1;
      current.right += Number(!wrong.has(asked.number));
      await goOn(next, squares(next.graded.played).to);
    } else {
      current.missed = next;
      wrong.set(asked.number, { text: lineText(asked.line, asked.start), start: asked.start ?? "", play: ucis(asked.line) });
      fail(move, target());
    }
  } catch (error) {
    if (error instanceof DOMException) return;
    draw(error instanceof Refused ? `${words(error)}.` : words(error));
  }
}

/** @param {NonNullable<Practice["question"]>} asked */
function where({ line, start }) {
  return { play: ucis(line).join(), ...(start && { fen: start }) };
}

/**
 * Shows that a move is wrong. After the second one, also shows the move of the repertoire.
 * @param {string} move An empty text shows the move of the repertoire at once.
 * @param {string | undefined} target The square to which the wrong move leads.
 */
function fail(move, target) {
  if (!current) return;
  current.tries = move ? current.tries + 1 : TRIES;
  draw();
  board.verdict = target && { square: target, kind: "wrong" };
}

/**
 * Shows for a moment that the move to a square is right, and then the next position.
 * @param {Practice} next
 * @param {string | undefined} target
 */
async function goOn(next, target) {
  const practising = current;
  if (!practising) return;
  practising.isWaiting = true;
  board.verdict = target && { square: target, kind: "right" };
  await new Promise((resolve) => setTimeout(resolve, PRAISE));
  if (practising !== current || !practising.answer.question) return;
  Object.assign(practising, { isWaiting: false, missed: undefined, tries: 0, answer: next });
  draw();
}

/** Leaves the position for another session. */
async function skip() {
  const asked = current?.answer.question;
  if (!current || !asked || current.isWaiting) return;
  current.skipped.push(asked.number);
  try {
    const answer = await ask(current.question, { ...where(asked), new: current.fresh });
    Object.assign(current, { missed: undefined, tries: 0, answer });
    draw();
  } catch (error) {
    if (!(error instanceof DOMException)) draw(words(error));
  }
}

/**
 * Formats a line with move numbers.
 * @param {WrittenMove[]} line
 * @param {string | null} start
 */
function lineText(line, start) {
  const first = firstPly(start ?? "");
  return line.map(({ san }, index) => ((first + index) % 2 && index ? san : `${plyNumber(first + index)} ${san}`)).join(" ");
}

/**
 * Shows the position that is asked, or the results.
 * @param {string} [problem] Why the last answer could not be read.
 */
function draw(problem = "") {
  if (!current) return;
  const { answer, done, missed, repertoire, right, tries, wrong } = current;
  const { graded, question } = answer;
  const place = byId("practice");
  const title = make("h2", "", `Practise ${repertoire.name}`);
  const end = button({ "data-focus": "end-practice" }, [question ? "End" : "Close"], endPractice);
  if (!question) {
    const list = [...wrong.values()].map(({ text, start, play }) => make("li", "", button("", unbroken(text || "Start"), () => void go({ fen: start, play, game: "" }, { push: true }))));
    const text = right + wrong.size ? `${right} right, ${wrong.size} wrong.` : "Nothing is due today.";
    fill(place, div("card", div("top", title, end), p("", b(text), ` ${later(answer)}`), ...(list.length ? [p("quiet", "Look at these"), make("ul", "", ...list)] : [])));
    end.focus();
    return say(`${text} ${later(answer)}`);
  }
  const { fen, check, legal, line, isNew } = question;
  const { due, again, new: fresh } = missed ?? answer;
  const shown = (tries >= TRIES && missed?.graded?.moves) || [];
  board.position = { fen, check, legal, last: line.at(-1)?.uci };
  board.arrows = shown.map(({ uci }) => ({ uci, share: 1, full: true, isGap: true }));
  const input = make("input", { "aria-label": "Your move", placeholder: "e.g. Nf3", autocomplete: "off", spellcheck: "false", "data-focus": "answer" });
  on(input, "keydown", (event) => {
    if (event.key === "Enter" && input.value.trim()) void answerMove(input.value.trim());
    if (event.key === "Escape") endPractice();
  });
  const said = missed
    ? `${problem} ${shown.length ? `The repertoire has ${shown.map(({ san }) => san).join(" or ")}. Play it to go on.` : problem ? "Try again." : "Not a move of the repertoire. Try again."}`.trim()
    : problem || (graded?.right ? `${graded.played.san} is right. It comes again in ${counted(graded.days, "day")}.` : isNew ? "A new position." : "Your move.");
  const isPraised = graded?.right && !missed && !problem;
  const all = done + due + again + Math.min(fresh, current.fresh);
  const hadFocus = place.contains(document.activeElement);
  fill(
    place,
    div("card", title,
      p("so-far", ...unbroken(lineText(line, question.start) || "Start")),
      p({ class: missed || problem ? "problem" : isPraised ? "praise" : "quiet" }, ...(isPraised ? [icon("check")] : []), said),
      div("answer", input, button({ "data-focus": "show" }, ["Show"], () => void answerMove("")), button({ "data-focus": "skip" }, ["Skip"], () => void skip()), end),
      div("done", make("progress", { max: all, value: done, "aria-label": "Progress" }), p("quiet", `${done} of ${all} today`)),
    ),
  );
  if (hadFocus && !place.contains(document.activeElement)) input.focus();
  say(said);
}

/**
 * Says what is left for later.
 * @param {Practice} answer
 */
function later({ due, again, new: fresh, next }) {
  const left = due + again;
  return [
    ...(left ? [`${counted(left, "position")} ${left === 1 ? "is" : "are"} still due today.`] : []),
    ...(next ? [`${counted(next.positions, "position")} ${next.positions === 1 ? "returns" : "return"} in ${counted(next.days, "day")}.`] : []),
    ...(fresh ? [`${counted(fresh, "new position")} ${fresh === 1 ? "is" : "are"} left for another session.`] : []),
  ].join(" ");
}
