// @ts-check
// Repertoires that the user sends to the server: one that was built on the page, or a file that was dropped on it. The browser stores
// the secrets by which the server knows them.

import { ask, send, words } from "./api.js";
import { byId, make, on, toast } from "./dom.js";
import { go } from "./navigation.js";
import { session } from "./session.js";
import { put } from "./state.js";

/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */

const KEY = "polybook.repertoires";

/** The secrets, if the browser could not store them. */
let unstored = "";

/** Returns the repertoires that the user sent and that the server still keeps, the newest first. */
export async function sentRepertoires() {
  const ids = stored();
  if (!ids) return [];
  const kept = /** @type {ServedRepertoire[]} */ (await ask("repertoires", put(new URLSearchParams(), { id: ids })).catch(() => []));
  store(kept);
  return kept;
}

function stored() {
  try {
    return unstored || (localStorage.getItem(KEY) ?? "");
  } catch {
    return unstored;
  }
}

/** @param {ServedRepertoire[]} repertoires */
function store(repertoires) {
  const ids = repertoires.flatMap(({ id }) => id ?? []).join();
  try {
    localStorage.setItem(KEY, ids);
    unstored = "";
  } catch {
    unstored = ids;
  }
}

/**
 * Sends a repertoire to the server, and shows it.
 * @param {Blob} file A PGN file or a book.
 * @param {string} name The name of the file.
 * @param {string} side
 */
export async function useRepertoire(file, name, side) {
  const sent = /** @type {ServedRepertoire & { warnings: string[] }} */ (await send("repertoires", put(new URLSearchParams(), { name, side }), new Blob([file], { type: "application/octet-stream" })));
  const others = (session.about.repertoires ?? []).filter((one) => one.name !== sent.name || one.color !== sent.color || !one.id);
  session.about.repertoires = [sent, ...others];
  store(session.about.repertoires);
  toast(sent.warnings[0] ?? `${sent.name} is open. The server keeps it until it ends.`);
  const { filters, tab } = session.view;
  await go({ fen: "", play: [], game: "", tab: tab === "prepare" ? "" : tab, filters: filters.color ? { ...filters, color: side } : filters, repertoire: sent.name, flip: side === "black" ? "1" : "0" }, { push: true });
}

/** Lets the user drop a file on one of two halves of the window, one for each side. */
export function connectDrop() {
  const place = byId("drop");
  for (const side of ["White", "Black"]) {
    const half = make("div", "", `Use as repertoire for ${side}`);
    place.append(half);
    on(half, "drop", (event) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (file) void useRepertoire(file, file.name, side.toLowerCase()).catch((error) => toast(words(error)));
    });
  }
  const hide = () => place.classList.remove("shown");
  on(document, "dragenter", (event) => place.classList.toggle("shown", event.dataTransfer?.types.includes("Files")));
  on(document, "dragover", (event) => event.preventDefault());
  on(place, "dragleave", (event) => !place.contains(/** @type {Node | null} */ (event.relatedTarget)) && hide());
  on(document, "drop", (event) => {
    event.preventDefault();
    hide();
  });
}
