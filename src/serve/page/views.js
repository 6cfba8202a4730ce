// @ts-check
// The views of a position, as a row of tabs. The chosen one takes the place below the row.

import { fill, segments } from "./dom.js";

/** The names of the views in the address. The moves have an empty name. */
const VIEWS = /** @type {[string, string][]} */ ([["", "Moves"], ["trends", "Trends"]]);

/**
 * Returns the view of the address, or the moves if it is not one of the offered views.
 * @param {string} named
 * @param {boolean} hasTrends Whether the trends are a view of their own, instead of below the moves.
 */
export function chosenView(named, hasTrends) {
  return offered(hasTrends).some(([name]) => name === named) ? named : "";
}

/**
 * Shows the tabs, unless there is only one view.
 * @param {HTMLElement} place
 * @param {string} chosen
 * @param {boolean} hasTrends
 * @param {(name: string) => void} choose
 */
export function showViews(place, chosen, hasTrends, choose) {
  const views = offered(hasTrends);
  document.body.dataset.view = chosen || "moves";
  fill(place, ...(views.length > 1 ? [segments({ "aria-label": "View" }, views, chosen, choose)] : []));
}

/** @param {boolean} hasTrends */
function offered(hasTrends) {
  return VIEWS.filter(([name]) => hasTrends || name !== "trends");
}
