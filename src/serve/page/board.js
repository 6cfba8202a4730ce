// @ts-check
// The element <chess-board>: a board with pieces, arrows and marks. The page passes the legal moves to it.

import { arrows } from "./arrows.js";
import { button, div, fill, on } from "./dom.js";
import { drawing, path, svg } from "./pieces.js";

/** @typedef {import("./api.js").WrittenMove} WrittenMove */
/** @typedef {{ uci: string, share: number, full: boolean, isGap: boolean, isDrawn?: boolean }} Arrow */
/**
 * @typedef {object} Position
 * @property {string} fen
 * @property {boolean} check
 * @property {WrittenMove[]} legal
 * @property {string} [last] The last move.
 */
/** @typedef {{ letter: string, square: string, element: HTMLElement }} Piece */

/** The letters of the files, from White's left to right. */
const FILES = "abcdefgh";
/** The distance in pixels that the pointer must move after a press before the press is a drag instead of a click. */
const DRAG = 4;
/** The distance in pixels by which the wheel must turn to go one move forward or back. Touchpads send many small distances. */
const NOTCH = 60;

/**
 * Draws the squares, the letters of the files at the bottom and the numbers of the ranks on the left. A square has ten units.
 * @param {(square: string) => [number, number]} at Returns the column and row of a square.
 */
function ground(at) {
  const dark = [...Array(64).keys()].filter((square) => (square + (square >> 3)) % 2 === 1);
  const d = dark.map((square) => `M${10 * (square % 8)} ${10 * (square >> 3)}h10v10h-10z`).join("");
  const names = [...FILES].flatMap((file, index) => {
    const [column] = at(`${file}1`);
    const [, row] = at(`a${index + 1}`);
    return [
      name(10 * column + 8.8, 79.4, file, column % 2 === 0),
      name(0.5, 10 * row + 1.7, String(index + 1), row % 2 === 1),
    ];
  });
  return [path("squares", d), ...names];
}

/**
 * Draws the name of a file or rank.
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {boolean} onDark
 */
function name(x, y, text, onDark) {
  const element = svg("text", { x: String(x), y: String(y), class: onDark ? "on-dark" : "on-light" });
  element.textContent = text;
  return element;
}

/** The names of the pieces, by their letters in a FEN. */
const NAMES = /** @type {Record<string, string>} */ ({
  k: "king",
  q: "queen",
  r: "rook",
  b: "bishop",
  n: "knight",
  p: "pawn",
});

/** The order in which pieces are listed. */
const ORDER = "kqrbnp";

/**
 * Describes the side to move and the squares of the pieces.
 * @param {{ letter: string, square: string }[]} pieces
 * @param {string} turn
 */
function positionWords(pieces, turn) {
  const side = (/** @type {boolean} */ white) => {
    const men = pieces.filter(({ letter }) => (letter === letter.toUpperCase()) === white);
    men.sort((a, b) => ORDER.indexOf(a.letter.toLowerCase()) - ORDER.indexOf(b.letter.toLowerCase()));
    return men.map(({ letter, square }) => `${NAMES[letter.toLowerCase()]} ${square}`).join(", ");
  };
  return `${turn === "white" ? "White" : "Black"} to move. White: ${side(true)}. Black: ${side(false)}.`;
}

class ChessBoard extends HTMLElement {
  /** @type {Position} */
  #position = { fen: "8/8/8/8/8/8/8/8 w - -", check: false, legal: [] };
  /** @type {Piece[]} */
  #pieces = [];
  #turn = "white";
  #flipped = false;
  #selected = "";
  /** @type {Arrow[]} */
  #arrows = [];
  /** @type {{ square: string, kind: "right" | "wrong" } | "" | undefined} */
  #verdict;
  /** @type {{ piece: Piece, x: number, y: number, moved: boolean, again: boolean } | undefined} */
  #drag;

  /**
   * The arrows that the user drew with the right mouse button, as pairs of squares such as "e2e4". A circle is a pair of equal squares.
   * @type {Set<string>}
   */
  #sketches = new Set();
  /** The square on which the user pressed the right mouse button. */
  #sketchFrom = "";
  #turned = 0;

  #field = div({ class: "squares-field", role: "img" });
  #marks = div("marks");
  #men = div("men");
  #ground = svg("svg", { class: "ground", viewBox: "0 0 80 80", "aria-hidden": "true" });
  #lines = svg("svg", { class: "arrows", viewBox: "0 0 8 8", "aria-hidden": "true" });
  #hands = div("hands");
  #others = div("hands");
  #choice = div("choice");

  connectedCallback() {
    // A page may move the board to another place.
    if (this.contains(this.#field)) return;
    this.#choice.hidden = true;
    this.#field.append(this.#ground, this.#marks, this.#men, this.#lines);
    this.append(this.#field, this.#choice, this.#hands, this.#others);
    on(this.#field, "pointerdown", (event) => this.#down(event));
    on(this.#field, "pointermove", (event) => this.#moved(event));
    on(this.#field, "pointerup", (event) => this.#up(event));
    on(this.#field, "pointercancel", () => this.#putBack());
    on(this.#field, "contextmenu", (event) => event.preventDefault());
    this.#field.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#drawGround();
    this.#draw();
  }

  /** @param {Position} position */
  set position(position) {
    if (position.fen !== this.#position.fen) this.#sketches.clear();
    this.#position = position;
    this.#verdict = undefined;
    this.#selected = "";
    this.#choice.hidden = true;
    this.#putBack();
    const { pieces, pocket, turn } = readFen(position.fen);
    this.#turn = turn;
    this.#place(pieces);
    this.#drawHands(pocket);
    this.#draw();
  }

  /** @param {boolean} flipped */
  set flipped(flipped) {
    if (flipped === this.#flipped) return;
    this.#flipped = flipped;
    this.#drawGround();
    this.#draw();
  }

  /**
   * Marks the target of a move as right or wrong, until the board gets a position.
   * @param {{ square: string, kind: "right" | "wrong" } | "" | undefined} verdict
   */
  set verdict(verdict) {
    this.#verdict = verdict;
    this.#drawMarks();
  }

  /** @param {Arrow[]} arrows */
  set arrows(arrows) {
    this.#arrows = arrows;
    this.#drawArrows();
  }

  /**
   * Updates the pieces on the board. Moves existing pieces of the right kind, so that they glide, and adds or removes the others.
   * @param {Map<string, string>} wanted
   */
  #place(wanted) {
    const missing = new Map(wanted);
    /** @type {Piece[]} */
    const free = [];
    const kept = this.#pieces.filter((piece) => {
      const stays = missing.get(piece.square) === piece.letter;
      if (stays) missing.delete(piece.square);
      else free.push(piece);
      return stays;
    });
    for (const [square, letter] of missing) {
      const nearest = free
        .filter((piece) => piece.letter === letter)
        .sort((a, b) => distance(a.square, square) - distance(b.square, square))[0];
      if (nearest) {
        free.splice(free.indexOf(nearest), 1);
        nearest.square = square;
        kept.push(nearest);
      } else {
        const element = div("man", drawing(letter));
        this.#men.append(element);
        kept.push({ letter, square, element });
      }
    }
    for (const piece of free) piece.element.remove();
    this.#pieces = kept;
  }

  #draw() {
    for (const piece of this.#pieces) this.#show(piece);
    this.#drawMarks();
    this.#drawArrows();
    this.#field.setAttribute("aria-label", positionWords(this.#pieces, this.#turn));
    const isAbove = (this.#turn === "white") === this.#flipped;
    this.#hands.classList.toggle("above", isAbove);
    this.#others.classList.toggle("above", !isAbove);
  }

  #drawGround() {
    fill(this.#ground, ...ground((square) => this.#at(square)));
  }

  /** @param {Piece} piece */
  #show({ square, element }) {
    this.#move(element, square);
    element.dataset.square = square;
  }

  /**
   * @param {HTMLElement} element
   * @param {string} square
   */
  #move(element, square) {
    const [x, y] = this.#at(square);
    element.style.transform = `translate(${100 * x}%, ${100 * y}%)`;
  }

  /**
   * Returns the column and the row of a square on the screen, which depend on how the board is turned.
   * @param {string} square
   * @returns {[number, number]}
   */
  #at(square) {
    const file = FILES.indexOf(square[0] ?? "a");
    const rank = Number(square[1]) - 1;
    return this.#flipped ? [7 - file, rank] : [file, 7 - rank];
  }

  #drawMarks() {
    /** @type {[string, string][]} */
    const marks = [];
    const last = this.#position.last;
    if (last) {
      if (last[1] !== "@") marks.push(["last", last.slice(0, 2)]);
      marks.push(["last", last.slice(2, 4)]);
    }
    if (this.#position.check) {
      const king = this.#turn === "white" ? "K" : "k";
      const square = this.#pieces.find((piece) => piece.letter === king)?.square;
      if (square) marks.push(["check", square]);
    }
    if (this.#verdict) marks.push([this.#verdict.kind, this.#verdict.square]);
    if (this.#selected) {
      if (this.#selected[1] !== "@") marks.push(["selected", this.#selected]);
      for (const move of this.#movesFrom(this.#selected)) {
        const taken = this.#pieces.some((piece) => piece.square === move.to);
        marks.push([taken ? "take" : "go", move.to]);
      }
    }
    fill(
      this.#marks,
      ...marks.map(([kind, square]) => {
        const mark = div(`mark ${kind}`);
        this.#move(mark, square);
        return mark;
      }),
    );
  }

  #drawArrows() {
    const isCircle = (/** @type {string} */ sketch) => sketch.slice(0, 2) === sketch.slice(2);
    const sketches = [...this.#sketches];
    const drawn = sketches.filter((sketch) => !isCircle(sketch)).map((uci) => ({ uci, share: 1, full: true, isGap: false, isDrawn: true }));
    const shafts = [...drawn, ...this.#arrows.filter(({ uci }) => uci[1] !== "@")];
    const circles = sketches.filter(isCircle).map((sketch) => {
      const [x, y] = this.#at(sketch);
      return svg("circle", { class: "sketch", cx: String(x + 0.5), cy: String(y + 0.5), r: "0.45" });
    });
    fill(
      this.#lines,
      ...arrows(
        shafts.map(({ uci, isDrawn, ...arrow }) => {
          const move = isDrawn ? undefined : this.#position.legal.find((legal) => legal.uci === uci);
          const { from, to } = squares(move ?? { uci, san: "" });
          return { ...arrow, isDrawn, from: this.#at(from), to: this.#at(to) };
        }),
      ),
      ...circles,
    );
  }

  /**
   * Draws an arrow or a circle, or removes an equal one.
   * @param {string} to
   */
  #sketch(to) {
    const sketch = `${this.#sketchFrom}${to}`;
    this.#sketchFrom = "";
    if (sketch.length === 4 && !this.#sketches.delete(sketch)) this.#sketches.add(sketch);
    this.#drawArrows();
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    // The wheel with Ctrl, or pinching on a touchpad, zooms the page.
    if (event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : NOTCH;
    this.#turned = Math.sign(this.#turned) === -Math.sign(event.deltaY) ? 0 : this.#turned;
    this.#turned += event.deltaY * lines;
    if (Math.abs(this.#turned) < NOTCH) return;
    this.dispatchEvent(new CustomEvent("step", { detail: Math.sign(this.#turned) }));
    this.#turned = 0;
  }

  /** @param {string} pocket */
  #drawHands(pocket) {
    const isWhites = this.#turn === "white";
    for (const [place, ofWhite] of /** @type {[HTMLElement, boolean][]} */ ([[this.#hands, isWhites], [this.#others, !isWhites]])) {
      const own = [...pocket].filter((letter) => (letter === letter.toUpperCase()) === ofWhite);
      const kinds = [...new Set(own)].map((letter) => {
        const count = own.filter((other) => other === letter).length;
        const label = `${count} ${NAMES[letter.toLowerCase()]} to drop`;
        const drop = button({ "aria-label": label }, [drawing(letter), count], () => this.#select(`${letter.toUpperCase()}@`));
        drop.disabled = place !== this.#hands;
        return drop;
      });
      fill(place, ...kinds);
    }
  }

  /** @param {string} from */
  #movesFrom(from) {
    return this.#position.legal
      .map((move) => ({ ...squares(move), uci: move.uci }))
      .filter((move) => move.from === from);
  }

  /** @param {string} square */
  #select(square) {
    this.#selected = square;
    this.#choice.hidden = true;
    this.#drawMarks();
  }

  /** @param {PointerEvent} event */
  #squareAt(event) {
    const box = this.#field.getBoundingClientRect();
    const column = Math.floor((8 * (event.clientX - box.left)) / box.width);
    const row = Math.floor((8 * (event.clientY - box.top)) / box.height);
    if (column < 0 || column > 7 || row < 0 || row > 7) return "";
    return this.#flipped ? `${FILES[7 - column]}${row + 1}` : `${FILES[column]}${8 - row}`;
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button === 2) {
      this.#sketchFrom = this.#squareAt(event);
      this.#field.setPointerCapture(event.pointerId);
    }
    if (event.button !== 0) return;
    event.preventDefault();
    if (this.#sketches.size) {
      this.#sketches.clear();
      this.#drawArrows();
    }
    const square = this.#squareAt(event);
    const piece = this.#pieces.find((other) => other.square === square);
    const movable = this.#movesFrom(square).length > 0;
    if (this.#selected && this.#selected !== square && this.#go(this.#selected, square)) return;
    if (!piece || !movable) {
      this.#select("");
      return;
    }
    const again = this.#selected === square;
    this.#select(square);
    this.#field.setPointerCapture(event.pointerId);
    this.#drag = { piece, x: event.clientX, y: event.clientY, moved: false, again };
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    const drag = this.#drag;
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < DRAG) return;
    drag.moved = true;
    const box = this.#field.getBoundingClientRect();
    const size = box.width / 8;
    const element = drag.piece.element;
    element.classList.add("dragged");
    const [x, y] = [event.clientX - box.left - size / 2, event.clientY - box.top - size / 2];
    element.style.transform = `translate(${x}px, ${y}px)`;
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (this.#sketchFrom) return this.#sketch(this.#squareAt(event));
    const drag = this.#drag;
    if (!drag) return;
    const to = this.#squareAt(event);
    const from = drag.piece.square;
    this.#putBack();
    if (drag.moved) {
      // The move is illegal, or the piece was put back.
      if (to === from || !this.#go(from, to, true)) this.#select("");
    } else if (drag.again) {
      this.#select("");
    }
  }

  #putBack() {
    if (!this.#drag) return;
    const { piece } = this.#drag;
    piece.element.classList.remove("dragged");
    this.#show(piece);
    this.#drag = undefined;
  }

  /**
   * Plays the move from one square to another, if it is legal.
   * @param {string} from
   * @param {string} to
   * @param {boolean} [dropped] Whether the user dragged the piece, so that it is already on its square.
   */
  #go(from, to, dropped = false) {
    const moves = this.#movesFrom(from);
    const direct = moves.filter((move) => move.to === to);
    const found = direct.length ? direct : moves.filter((move) => move.also === to);
    const first = found[0];
    if (!first) return false;
    if (found.length > 1) {
      this.#choose(found.map((move) => move.uci));
      return true;
    }
    const piece = this.#pieces.find((other) => other.square === from);
    if (piece && dropped) {
      // A dragged piece must not glide.
      piece.element.classList.add("dropped");
      requestAnimationFrame(() => requestAnimationFrame(() => piece.element.classList.remove("dropped")));
    }
    if (piece && first.also === "") {
      for (const other of this.#pieces.filter((taken) => taken.square === to)) other.element.remove();
      this.#pieces = this.#pieces.filter((other) => other.square !== to);
      piece.square = to;
      this.#show(piece);
    }
    this.#play(first.uci);
    return true;
  }

  /** @param {string} uci */
  #play(uci) {
    this.#select("");
    this.dispatchEvent(new CustomEvent("play", { detail: uci }));
  }

  /**
   * Shows the pieces to which a pawn can be promoted.
   * @param {string[]} moves
   */
  #choose(moves) {
    const order = "qrnbk";
    const sorted = [...moves].sort((a, b) => order.indexOf(a[4] ?? "") - order.indexOf(b[4] ?? ""));
    fill(
      this.#choice,
      ...sorted.map((uci) => {
        const role = uci[4] ?? "";
        const picture = role ? drawing(this.#turn === "white" ? role.toUpperCase() : role) : "–";
        return button({ "aria-label": NAMES[role] ?? "no promotion" }, [picture], () => this.#play(uci));
      }),
    );
    this.#choice.hidden = false;
    this.#choice.querySelector("button")?.focus();
  }
}

customElements.define("chess-board", ChessBoard);

export { ChessBoard };

/**
 * Parses the board of a FEN. Returns the pieces by square, the pieces in hand, and the side to move.
 * @param {string} fen
 */
function readFen(fen) {
  const [board = "", turn = "w"] = fen.split(" ");
  const [rows, rest = ""] = board.split("[");
  /** @type {Map<string, string>} */
  const pieces = new Map();
  const ranks = (rows ?? "").split("/");
  ranks.slice(0, 8).forEach((row, down) => {
    let file = 0;
    for (const letter of row) {
      if (/[1-8]/.test(letter)) file += Number(letter);
      // A tilde marks a piece that was promoted.
      else if (letter !== "~") pieces.set(`${FILES[file++]}${8 - down}`, letter);
    }
  });
  const pocket = (rest || ranks[8] || "").replace("]", "");
  return { pieces, pocket, turn: turn === "b" ? "black" : "white" };
}

/**
 * Returns the squares between which a piece moves. For castling, these are the squares of the king.
 * @param {WrittenMove} move
 */
export function squares({ uci, san }) {
  if (uci[1] === "@") return { from: uci.slice(0, 2), to: uci.slice(2, 4), also: "" };
  const from = uci.slice(0, 2);
  const rook = uci.slice(2, 4);
  if (!san.startsWith("O-O")) return { from, to: rook, also: "" };
  return { from, to: `${san.startsWith("O-O-O") ? "c" : "g"}${from[1]}`, also: rook };
}

/**
 * Returns the distance between two squares.
 * @param {string} one
 * @param {string} other
 */
function distance(one, other) {
  const file = one.charCodeAt(0) - other.charCodeAt(0);
  const rank = one.charCodeAt(1) - other.charCodeAt(1);
  return Math.hypot(file, rank);
}
