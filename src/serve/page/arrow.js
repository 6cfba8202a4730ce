// @ts-check
// An arrow of a move on the board.

import { svg } from "./pieces.js";

/**
 * An arrow between the middles of two squares, as thick as its share.
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {number} share From 0 to 1.
 * @param {boolean} strong
 */
export function arrow([fx, fy], [tx, ty], share, strong) {
  const length = Math.hypot(tx - fx, ty - fy) || 1;
  const [ux, uy] = [(tx - fx) / length, (ty - fy) / length];
  const half = 0.035 + 0.085 * Math.sqrt(share);
  const head = 0.15 + 1.6 * half;
  const [sx, sy] = [fx + 0.5 + 0.3 * ux, fy + 0.5 + 0.3 * uy];
  const [ex, ey] = [tx + 0.5 - 0.08 * ux, ty + 0.5 - 0.08 * uy];
  const [nx, ny] = [ex - head * ux, ey - head * uy];
  const point = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ side) =>
    `${(x - uy * side).toFixed(3)},${(y + ux * side).toFixed(3)}`;
  const corners = [
    point(sx, sy, half),
    point(nx, ny, half),
    point(nx, ny, 1.1 * half + 0.12),
    point(ex, ey, 0),
    point(nx, ny, -1.1 * half - 0.12),
    point(nx, ny, -half),
    point(sx, sy, -half),
  ];
  return svg("polygon", { points: corners.join(" "), class: strong ? "arrow strong" : "arrow" });
}
