// @ts-check
// The switch between sources, in the header and in the menu of small screens.

import { byId, fill, make, on, segments, span } from "./dom.js";
import { menu } from "./elements.js";
import { changeFilters } from "./navigation.js";
import { session } from "./session.js";

export function drawSources() {
  const { source = "" } = session.view.filters;
  const choose = (/** @type {string} */ name) => {
    menu.close();
    changeFilters({ ...session.view.filters, source: name });
  };
  const names = session.about.sources.map(({ name }) => name);
  const options = /** @type {[string, string][]} */ ([["", "All"], ...names.map((name) => [name, name])]);
  const labeled = { "aria-label": "Source", "data-focus": "source" };
  for (const place of [byId("sources"), byId("more-sources")]) {
    if (names.length < 2) fill(place, span({ class: "quiet", title: "The source" }, names[0] ?? ""));
    else if (names.length < 4) fill(place, segments(labeled, options, source, choose));
    else {
      const select = make("select", labeled, ...options.map(([value, label]) => make("option", { value }, label)));
      select.value = source;
      on(select, "change", () => choose(select.value));
      fill(place, select);
    }
  }
}
