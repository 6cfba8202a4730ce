// @ts-check
// The views of a position, as a row of tabs. The chosen one takes the place below the row.

import { fill, segments } from "./dom.js";

/** The names of the views in the address. The moves have an empty name. */
const VIEWS = /** @type {[string, string][]} */ ([["", "Moves"], ["openings", "Openings"], ["trends", "Trends"]]);

/** @typedef {{ openings: boolean, trends: boolean }} Offered The trends are a view of their own unless they are below the moves. */

/**
 * Returns the view of the address, or the moves if it is not one of the offered views.
 * @param {string} named
 * @param {Offered} has
 */
export function chosenView(named, has) {
  return offered(has).some(([name]) => name === named) ? named : "";
}

/**
 * Shows the tabs, unless there is only one view.
 * @param {HTMLElement} place
 * @param {string} chosen
 * @param {Offered} has
 * @param {(name: string) => void} choose
 */
export function showViews(place, chosen, has, choose) {
  const views = offered(has);
  document.body.dataset.view = chosen || "moves";
  fill(place, ...(views.length > 1 ? [segments({ "aria-label": "View" }, views, chosen, choose)] : []));
}

/** @param {Offered} has */
function offered({ openings, trends }) {
  return VIEWS.filter(([name]) => (trends || name !== "trends") && (openings || name !== "openings"));
}
