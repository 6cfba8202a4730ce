// @ts-check
// Practising a repertoire: the page shows the position that the server asks, and sends the user's answer.

import { Asking, Refused, send, words } from "./api.js";
import { b, button, byId, div, fill, icon, make, on, p, toast, unbroken } from "./dom.js";
import { board, say } from "./elements.js";
import { counted, plyNumber } from "./format.js";
import { firstPly } from "./line.js";
import { go, refresh } from "./navigation.js";
import { session } from "./session.js";
import { filterQuestion, put, ucis } from "./state.js";

/** @typedef {import("./api.js").Practice} Practice */
/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */
/** @typedef {import("./api.js").WrittenMove} WrittenMove */

/** The number of positions that a session asks for the first time. */
const NEW = 10;

/**
 * The session.
 * @typedef {object} Session
 * @property {ServedRepertoire} repertoire
 * @property {Record<string, string>} question The parameters that select the repertoire.
 * @property {Practice} answer The last answer of the server.
 * @property {number} fresh The number of positions that may still be asked for the first time.
 * @property {number} right The number of right answers.
 * @property {{ text: string, start: string, play: string[] }[]} wrong The lines to the positions that were answered wrongly.
 * @property {Practice | undefined} shown After a wrong answer: the answer of the server, until the user plays the right move.
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
    current = { repertoire, question, answer, fresh: NEW, right: 0, wrong: [], shown: undefined };
    document.body.classList.add("practises");
    board.flipped = repertoire.color === "black";
    draw();
    place.querySelector("input")?.focus();
    place.scrollIntoView({ block: "nearest" });
  } catch (error) {
    toast(words(error));
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

/** Ends the session, and shows the position from which the user started it. */
export function endPractice() {
  stopPractice();
  void refresh();
}

/**
 * @param {Record<string, string>} question
 * @param {Record<string, string | number>} more
 * @returns {Promise<Practice>}
 */
function ask(question, more) {
  return send("practise", put(filterQuestion(session.view), { ...question, ...more }), undefined, asking.next());
}

/**
 * Answers with a move, or with an empty text if the user does not know it.
 * @param {string} move In UCI notation or in SAN.
 */
export async function answerMove(move) {
  if (!current) return;
  const { answer, question, shown, wrong } = current;
  const asked = answer.question;
  if (!asked) return;
  if (shown) {
    // Only a move of the repertoire goes on.
    if (shown.graded?.moves.some(({ uci, san }) => move === uci || move.replace(/[+#]$/, "") === san.replace(/[+#]$/, ""))) {
      current.shown = undefined;
      current.answer = shown;
    }
    return draw();
  }
  const play = ucis(asked.line).join();
  const fresh = current.fresh - Number(asked.isNew);
  try {
    const next = await ask(question, { play, ...(asked.start && { fen: asked.start }), answer: move, new: fresh });
    if (!next.graded) return;
    current.fresh = fresh;
    if (next.graded.right) {
      current.right += 1;
      current.answer = next;
    } else {
      current.shown = next;
      wrong.push({ text: lineText(asked.line, asked.start), start: asked.start ?? "", play: ucis(asked.line) });
    }
    draw();
  } catch (error) {
    if (error instanceof DOMException) return;
    draw(error instanceof Refused ? `${words(error)}.` : words(error));
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
  const { answer, repertoire, right, shown, wrong } = current;
  const { graded, question } = answer;
  const { due, again, new: fresh } = shown ?? answer;
  const place = byId("practice");
  const end = button("", [question ? "End" : "Close"], endPractice);
  const top = div("top", make("h2", "", `Practise ${repertoire.name}`), end);
  if (!question) {
    const left = fresh ? ` ${counted(fresh, "new position")} left for another session.` : "";
    const list = wrong.map(({ text, start, play }) => make("li", "", button("", unbroken(text || "Start"), () => void go({ fen: start, play, game: "" }, { push: true }))));
    const text = right + wrong.length ? `${counted(right, "right answer")}, ${wrong.length} wrong.` : "Nothing is due today.";
    fill(place, div("card", top, p("", b(text), left), ...(list.length ? [p("quiet", "Look at these"), make("ul", "", ...list)] : [])));
    end.focus();
    return say(text);
  }
  const { fen, check, legal, line, isNew } = question;
  const last = line.at(-1);
  const main = shown?.graded?.moves ?? [];
  board.position = { fen, check, legal, last: last?.uci };
  board.arrows = main.map(({ uci }) => ({ uci, share: 1, full: true, isGap: true }));
  const input = make("input", { "aria-label": "Your move", placeholder: "Your move, such as Nf3", autocomplete: "off", spellcheck: "false" });
  on(input, "keydown", (event) => {
    if (event.key === "Enter" && input.value.trim()) void answerMove(input.value.trim());
    if (event.key === "Escape") endPractice();
  });
  const said = shown
    ? `The repertoire has ${main.map(({ san }) => san).join(" or ")}. Play it to go on.`
    : problem || (graded?.right ? `${graded.played.san} is right. It comes again in ${counted(graded.days, "day")}.` : isNew ? "A new position." : "Your move.");
  const hadFocus = place.contains(document.activeElement);
  const done = right + wrong.length;
  fill(
    place,
    div("card", top,
      p("so-far", ...unbroken(lineText(line, question.start) || "Start")),
      p({ class: shown || problem ? "problem" : graded?.right ? "praise" : "quiet" }, ...(graded?.right && !shown && !problem ? [icon("check")] : []), said),
      div("answer", input, button("", ["Show"], () => void answerMove(""))),
      make("progress", { max: done + due + again + Math.min(fresh, current.fresh), value: done, "aria-label": "Progress" }),
      p("quiet", `${counted(done, "answer")}, ${due + again} due, ${Math.min(fresh, current.fresh)} new`),
    ),
  );
  if (hadFocus) place.querySelector("input")?.focus();
  say(said);
}
