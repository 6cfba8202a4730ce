// @ts-check
// The views of a position, as a row of tabs. The chosen view is shown below the row.

import { fill, segments, span } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/** The names of the views in the address. The moves have an empty name. */
const VIEWS = /** @type {[string, string][]} */ ([["", "Moves"], ["gaps", "Gaps"], ["openings", "Openings"], ["trends", "Trends"]]);

/** @typedef {{ openings: boolean, trends: boolean, gaps: number | string | undefined }} Offered The views that have tabs. The trends have no tab if they are shown below the moves. `gaps` is the number of gaps of the repertoire, an empty text if it is not known yet, or undefined without a repertoire. */

/**
 * Returns the view that the address names. If it is not offered, returns the view of the moves, whose name is empty.
 * @param {string} named
 * @param {Offered} has
 */
export function chosenView(named, has) {
  return offered(has).some(([name]) => name === named) ? named : "";
}

/** The shown tabs and the text of the tag for gaps, as JSON. */
let shown = "";

/**
 * Shows the tabs, unless there is only one view. Keeps them if they are already shown: if the pressed tab were replaced, the browser would
 * lay out the page twice.
 * @param {HTMLElement} place
 * @param {string} chosen
 * @param {Offered} has
 * @param {(name: string) => void} choose
 */
export function showViews(place, chosen, has, choose) {
  const views = offered(has).map(([name, label]) => /** @type {[string, ...Child[]]} */ ([name, label, ...(name === "gaps" && has.gaps ? [span("tag gap", has.gaps)] : [])]));
  document.body.dataset.view = chosen || "moves";
  const tabs = JSON.stringify([offered(has), has.gaps]);
  const radio = place.querySelector("[aria-checked=true]");
  if (tabs === shown && radio instanceof HTMLElement && radio.dataset.value === chosen) return;
  shown = tabs;
  fill(place, ...(views.length > 1 ? [segments({ "aria-label": "View" }, views, chosen, choose)] : []));
}

/** @param {Offered} has */
function offered({ openings, trends, gaps }) {
  return VIEWS.filter(([name]) => (trends || name !== "trends") && (openings || name !== "openings") && (gaps !== undefined || name !== "gaps"));
}
