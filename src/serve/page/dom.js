// @ts-check
// Functions that create elements: icons, buttons, fields, and groups of buttons.

import { words } from "./api.js";
import { path, svg } from "./pieces.js";

/** The SVG paths of the icons, in a square of 16 units. */
const ICONS = /** @type {Record<string, string>} */ ({
  back: "M10 3.5 5.5 8l4.5 4.5",
  book: "M8 4.2C6.5 3 4.5 2.7 2 2.8v9.4c2.5-.1 4.5.2 6 1.4 1.5-1.2 3.5-1.5 6-1.4V2.8c-2.5-.1-4.5.2-6 1.4zv9.4",
  check: "m3 8.5 3.3 3.3L13 4.8",
  clock: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 4.5V8l2.5 1.5",
  close: "m4 4 8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  down: "m4 6 4 4 4-4",
  filter: "M2 4h12M4.5 8h7M6.5 12h3",
  first: "M4 3.5v9M12.5 3.5 7 8l5.5 4.5z",
  flip: "M5 13V3M2.5 5.5 5 3l2.5 2.5M11 3v10M8.5 10.5 11 13l2.5-2.5",
  forward: "M6 3.5 10.5 8 6 12.5",
  grid: "M3 3h10v10H3zM8 3v10M3 8h10",
  info: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 7.5V11M8 5v.1",
  keys: "M1.5 4h13v8.5h-13zM4 6.8h.1M6.7 6.8h.1M9.4 6.8h.1M12 6.8h.1M5 9.7h6",
  last: "M12 3.5v9M3.5 3.5 9 8l-5.5 4.5z",
  link: "M6.7 9.3a2.8 2.8 0 0 0 4 0L13 7a2.8 2.8 0 0 0-4-4l-.8.8M9.3 6.7a2.8 2.8 0 0 0-4 0L3 9a2.8 2.8 0 0 0 4 4l.8-.8",
  mark: "M4.5 2.5h7v11L8 10.8l-3.5 2.7z",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  open: "M6.5 3.5h-3v9h9v-3M9.5 2.5h4v4M13.5 2.5l-6 6",
  plug: "M5.5 2.5v3M10.5 2.5v3M3.5 5.5h9v2a4.5 4.5 0 0 1-9 0zM8 12v2",
  plus: "M8 3.5v9M3.5 8h9",
  retry: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3",
  save: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  search: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.5 10.5 14 14",
  swords: "M3 3l7.5 7.5M13 3l-7.5 7.5M3.5 9.5l3 3M12.5 9.5l-3 3",
  user: "M10.8 5.5a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0zM2.8 13.5c.6-2.8 2.6-4 5.2-4s4.6 1.2 5.2 4",
  warn: "M8 2.5 14.5 13.5h-13zM8 6.5V10M8 11.9v.1",
});

/** @typedef {Node | string | number} Child */
/** @typedef {Record<string, string | number | boolean | undefined>} Named Undefined values are left out. */
/** @typedef {Named | string} Attributes A string is the class. */

/**
 * Creates an element with attributes and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(name, attributes = "", ...children) {
  const element = document.createElement(name);
  if (typeof attributes === "string") element.className = attributes;
  else for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, String(value));
  element.append(.../** @type {string[]} */ (children));
  return element;
}

/**
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function div(attributes, ...children) {
  return make("div", attributes, ...children);
}

/**
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function span(attributes, ...children) {
  return make("span", attributes, ...children);
}

/**
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
export function p(attributes, ...children) {
  return make("p", attributes, ...children);
}

/**
 * Returns moves as elements in which no line breaks, so that a number stays next to its move and castling is not split.
 * @param {string} moves Moves with their numbers, such as "1. e4 c5 2. ".
 * @param {string} [last] A last move in bold.
 * @returns {Child[]}
 */
export function unbroken(moves, last) {
  const words = moves.split(/(?<!\.) /);
  return words.flatMap((word, index) => [index ? " " : "", span("unbroken", word, ...(last && index === words.length - 1 ? [b(last)] : []))]);
}

/** @param {Child[]} children */
export function b(...children) {
  return make("b", "", ...children);
}

/** @param {Child[]} children */
export function small(...children) {
  return make("small", "", ...children);
}

/**
 * @template {keyof HTMLElementEventMap} K
 * @param {EventTarget} target
 * @param {K} type
 * @param {(event: HTMLElementEventMap[K]) => void} act
 */
export function on(target, type, act) {
  target.addEventListener(type, /** @type {EventListener} */ (act));
}

/**
 * Returns the element of the page with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return /** @type {T} */ (found);
}

/** @param {string} name */
export function icon(name) {
  const picture = svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" });
  picture.append(path("", ICONS[name] ?? ""));
  return picture;
}

/**
 * Creates a button.
 * @param {Attributes} attributes
 * @param {Child[]} content
 * @param {(event: MouseEvent) => void} press
 */
export function button(attributes, content, press) {
  const element = make("button", attributes, ...content);
  element.type = "button";
  on(element, "click", press);
  return element;
}

/**
 * Creates a group of buttons, one of which is chosen. The arrow keys choose the next one.
 * @param {Named} attributes
 * @param {[string, ...Child[]][]} options The values, with the contents of their buttons.
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function segments(attributes, options, chosen, choose) {
  const group = make("div", { role: "radiogroup", ...attributes, class: `segments ${attributes.class ?? ""}` });
  const pick = (/** @type {string} */ value) => {
    for (const radio of group.querySelectorAll("button")) {
      const isChosen = radio.dataset.value === value;
      radio.setAttribute("aria-checked", String(isChosen));
      radio.tabIndex = isChosen ? 0 : -1;
    }
  };
  for (const [value, ...content] of options) {
    group.append(
      button({ role: "radio", "data-value": value, "data-focus": `${attributes["aria-label"]} ${value}` }, content, () => {
        pick(value);
        choose(value);
      }),
    );
  }
  on(group, "keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const radios = [...group.querySelectorAll("button")];
    const at = radios.findIndex((radio) => radio === document.activeElement);
    const next = radios.at((at + step) % radios.length);
    next?.focus();
    next?.click();
  });
  pick(chosen);
  return group;
}

/**
 * Creates a group of buttons, or a menu if there are many options.
 * @param {Named} attributes
 * @param {[string, string][]} options The values, with their labels.
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function segmentsOrMenu(attributes, options, chosen, choose) {
  if (options.length < 5) return segments(attributes, options, chosen, choose);
  const select = make("select", attributes, ...options.map(([value, label]) => make("option", { value }, label)));
  select.value = chosen;
  on(select, "change", () => choose(select.value));
  return select;
}

/**
 * Creates the top of a dialog, with a title, further buttons, and a button that closes the dialog.
 * @param {HTMLDialogElement} dialog
 * @param {string} title
 * @param {Child[]} more
 */
export function dialogTop(dialog, title, ...more) {
  dialog.setAttribute("aria-label", title);
  return div("top", make("h2", "", title), ...more, button({ class: "plain icon-only", "aria-label": "Close" }, [icon("close")], () => dialog.close()));
}

/**
 * Creates a field of a dialog with its label.
 * @param {string} name
 * @param {string} label
 * @param {string} more A text after the label, in a fainter color.
 * @param {Child[]} content
 */
export function field(name, label, more, ...content) {
  return div({ class: "field", "data-field": name }, p("label", `${label} `, span("", more)), ...content);
}

/**
 * Creates a switch with its label.
 * @param {string} name
 * @param {string} label
 * @param {string} more A description of the switch.
 * @param {boolean} isOn
 * @param {(isOn: boolean) => void} change
 */
export function toggle(name, label, more, isOn, change) {
  const ids = { role: "switch", "aria-labelledby": `${name}-label`, "aria-describedby": `${name}-more` };
  const element = button({ class: "switch", "aria-checked": isOn, ...ids }, [], () => {
    const on = element.getAttribute("aria-checked") !== "true";
    element.setAttribute("aria-checked", String(on));
    change(on);
  });
  const texts = div("", p({ id: `${name}-label` }, label), p({ id: `${name}-more`, class: "quiet" }, more));
  return div({ class: "with-switch", "data-field": name }, texts, element);
}

/**
 * Replaces the contents of an element. The focus stays on the child with the same `data-focus`.
 * @param {Element} place
 * @param {Child[]} content
 */
export function fill(place, ...content) {
  const root = place.getRootNode();
  const active = (root instanceof ShadowRoot ? root : document).activeElement;
  const name = active instanceof HTMLElement && place.contains(active) ? active.dataset.focus : undefined;
  place.replaceChildren(.../** @type {string[]} */ (content));
  if (name === undefined) return;
  const again = place.querySelector(`[data-focus="${CSS.escape(name)}"]`);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @type {number | undefined} */
let fading;

/**
 * Shows a short message for a moment.
 * @param {string} text
 * @param {string} [sign] The icon before the text.
 */
export function toast(text, sign = "check") {
  const place = byId("toast");
  fill(place, icon(sign), text);
  place.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove("shown"), sign === "check" ? 2500 : 8000);
}

/**
 * Shows an error for a moment.
 * @param {unknown} error
 */
export function warn(error) {
  toast(words(error), "warn");
}

/**
 * Copies a text to the clipboard, and shows a message.
 * @param {string | Promise<string>} text Safari allows copying only while it handles a press, so it must get the promise.
 * @param {string} what
 * @param {string} [more] The end of the message.
 */
export async function copy(text, what, more = "") {
  try {
    if (typeof text === "string") await navigator.clipboard.writeText(text);
    else await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
    toast(`${what} copied${more}`);
  } catch {
    const failed = await Promise.resolve(text).then(() => "", words);
    warn(failed || "The browser allows copying only from HTTPS or localhost.");
  }
}

/**
 * Saves a file.
 * @param {Blob} content
 * @param {string} name
 */
export function save(content, name) {
  const address = URL.createObjectURL(content);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
