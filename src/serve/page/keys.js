// @ts-check
// Keyboard shortcuts, and the dialog that lists them. They can be switched off, because they interfere with speech input.

import { byId, dialogTop, div, make, on, p, toggle } from "./dom.js";

/** @typedef {{ keys: string[], does: string, act?: (key: string) => void }} Key */

const SWITCH = "polybook.keys";

/** The state of the switch for keyboard shortcuts, if the browser could not store it. */
let unstored = /** @type {string | null} */ (null);

/**
 * Starts listening for the keys, and fills the dialog.
 * @param {Key[]} keys
 */
export function listen(keys) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("keys"));
  const isOn = () => stored() !== "off";
  const names = /** @type {Record<string, string>} */ ({ ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" });
  const rows = keys.map(({ keys: own, does }) => div("", make("dt", "", ...own.map((key) => make("kbd", "", names[key] ?? key))), make("dd", "", does)));
  dialog.append(
    dialogTop(dialog, "Keys"),
    div("body",
      make("dl", "", ...rows),
      p("quiet", "The number next to a move counts the games that played it in this position. “+3” means that three more games reached the resulting position by another move order."),
      toggle("keys", "Single-letter shortcuts", "", isOn(), (isOn) => store(isOn ? "on" : "off")),
    ),
  );
  on(document, "keydown", (event) => {
    const { target, key } = event;
    const types = target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || types) return;
    if (document.querySelector("dialog[open]")) return;
    if (key.length === 1 && !isOn() && key !== "?") return;
    const found = keys.find(({ keys: own, act }) => act && own.includes(key));
    if (!found?.act) return;
    event.preventDefault();
    found.act(key);
  });
  return () => dialog.showModal();
}

function stored() {
  try {
    return unstored ?? localStorage.getItem(SWITCH);
  } catch {
    return unstored;
  }
}

/** @param {string} value */
function store(value) {
  try {
    localStorage.setItem(SWITCH, value);
    unstored = null;
  } catch {
    unstored = value;
  }
}
