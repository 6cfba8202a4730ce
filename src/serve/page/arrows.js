// @ts-check
// Arrows on the board that show moves. Around an arrow, a rim is cut out of weaker arrows, so that their colors do not mix.
// Arrows that start on the same square in the same direction share their shaft: the strongest one is drawn completely, of a
// shorter one only the head is drawn, and of a longer one only the part beyond the strongest one.

import { sum } from "./format.js";
import { path, svg } from "./pieces.js";

/**
 * A move to draw.
 * @typedef {object} Shaft
 * @property {[number, number]} from The column and row of a square.
 * @property {[number, number]} to
 * @property {number} share From 0 to 1.
 * @property {boolean} full Whether the user points at the move.
 * @property {boolean} isGap Whether a repertoire lacks an answer to the move.
 * @property {boolean} [isDrawn] Whether the user drew the arrow.
 */

/** The maximum number of moves with an arrow. */
export const MOST_ARROWS = 4;
/** The minimum share of games, from 0 to 1, of a move with an arrow. */
export const LEAST_SHARE = 0.02;
/** The distance of an arrow's start from the middle of its square, in squares. */
const START = 0.34;
/** The width of the rim, in squares. */
const RIM = 0.05;

/**
 * Returns the most played moves of a position, with their shares of its games. The board shows them as arrows.
 * @param {import("./api.js").Answer} answer
 */
export function arrowMoves(answer) {
  const total = sum(answer) || 1;
  const shares = answer.moves.map((move) => ({ uci: move.uci, share: sum(move) / total }));
  return shares.filter(({ share }) => share >= LEAST_SHARE).slice(0, MOST_ARROWS);
}

/**
 * Returns the SVG elements of arrows. The arrows must be sorted by descending share.
 * @param {Shaft[]} shafts
 */
export function arrows(shafts) {
  const shapes = shafts.map((shaft, index) => shape(shaft, shafts.slice(0, index).filter((other) => sharesRay(other, shaft))));
  const masks = svg("defs", {});
  const groups = shapes.map(({ line, head, width, opacity, kind }, index) => {
    const mask = svg("mask", { id: `cut${index}`, maskUnits: "userSpaceOnUse", x: "0", y: "0", width: "8", height: "8" });
    mask.append(path("", "M0 0h8v8H0z", { fill: "#fff" }));
    // A head on the shaft of a stronger arrow is cut out of that shaft.
    const isAbove = (/** @type {number} */ other) => {
      const [mine, its] = [shafts[index], shafts[other]];
      if (mine && shapes[other]?.onto.includes(mine)) return true;
      return other < index && !(its && shapes[index]?.onto.includes(its));
    };
    for (const [other, cut] of shapes.entries()) if (isAbove(other)) mask.append(...drawn(cut, "cut", cut.width + 2 * RIM, 2 * RIM));
    masks.append(mask);
    const group = svg("g", { class: kind, opacity: opacity.toFixed(2), mask: `url(#cut${index})` });
    group.append(
      ...drawn({ line, head }, "rim", width + RIM, RIM),
      path("shaft", line, { "stroke-width": width.toFixed(3) }),
      path("head", head),
    );
    return group;
  });
  // Draw the strongest arrow on top.
  return [masks, ...groups.reverse()];
}

/**
 * Returns true if two arrows start on the same square in the same direction. Returns false for the arrow of a knight, which
 * bends and therefore cannot share its shaft.
 * @param {Shaft} one
 * @param {Shaft} other
 */
function sharesRay(one, other) {
  const [a, b] = [one, other].map(({ from, to }) => [to[0] - from[0], to[1] - from[1]]);
  const [[ax = 0, ay = 0], [bx = 0, by = 0]] = [a ?? [], b ?? []];
  return one.from.join() === other.from.join() && ax * by === ay * bx && ax * bx + ay * by > 0;
}

/**
 * Returns the length of an arrow, in squares.
 * @param {{ from: [number, number], to: [number, number] }} shaft
 */
function reach({ from, to }) {
  return Math.hypot(to[0] - from[0], to[1] - from[1]);
}

/**
 * @param {{ line: string, head: string }} shape
 * @param {string} kind
 * @param {number} width
 * @param {number} edge
 */
function drawn({ line, head }, kind, width, edge) {
  return [
    path(`${kind} shaft`, line, { "stroke-width": width.toFixed(3) }),
    path(kind, head, { "stroke-width": edge.toFixed(3) }),
  ];
}

/**
 * @param {Shaft} shaft
 * @param {Shaft[]} stronger The stronger arrows that share the shaft.
 */
function shape({ from, to, share, full, isGap, isDrawn }, stronger) {
  const [fx, fy] = [from[0] + 0.5, from[1] + 0.5];
  const [tx, ty] = [to[0] + 0.5, to[1] + 0.5];
  const [dx, dy] = [tx - fx, ty - fy];
  const isKnight = Math.abs(dx * dy) === 2;
  // The arrow of a knight bends towards the corner of its move.
  const corner = Math.abs(dx) > Math.abs(dy) ? [tx, fy] : [fx, ty];
  const lean = isKnight ? 0.62 : 0;
  const bend = [fx + tx, fy + ty].map((twice, axis) => twice / 2 + ((corner[axis] ?? 0) - twice / 2) * lean);
  const [bx = 0, by = 0] = bend;
  const [ux, uy] = unit(tx - bx, ty - by);
  const [sx, sy] = unit(bx - fx, by - fy);
  const width = full ? 0.17 : 0.105 + 0.075 * Math.sqrt(share);
  const length = 0.26 + 1.15 * width;
  const side = 0.12 + 0.55 * width;
  const [nx, ny] = [tx - ux * length, ty - uy * length];
  const [ex, ey] = [nx + ux * RIM, ny + uy * RIM];
  const way = isKnight ? `Q${at(bx, by)} ${at(ex, ey)}` : `L${at(ex, ey)}`;
  const shared = Math.max(0, ...stronger.map(reach));
  const isHead = shared >= reach({ from, to });
  const start = shared ? shared + 0.06 + 2 * RIM : START;
  return {
    line: isHead ? "" : `M${at(fx + sx * start, fy + sy * start)}${way}`,
    head: `M${at(tx + ux * 0.06, ty + uy * 0.06)}L${at(nx - uy * side, ny + ux * side)}L${at(nx + uy * side, ny - ux * side)}Z`,
    width,
    kind: isDrawn ? "arrow drawn" : isGap ? "arrow gap" : "arrow",
    onto: isHead ? stronger : [],
    opacity: full ? 1 : 0.38 + 0.5 * Math.min(1, 1.6 * share),
  };
}

/**
 * @param {number} x
 * @param {number} y
 * @returns {[number, number]}
 */
function unit(x, y) {
  const length = Math.hypot(x, y) || 1;
  return [x / length, y / length];
}

/**
 * @param {number} x
 * @param {number} y
 */
function at(x, y) {
  return `${x.toFixed(3)} ${y.toFixed(3)}`;
}
