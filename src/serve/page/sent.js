// @ts-check
// Repertoires that the user sends to the server: one that was built on the page, or a file that was dropped on it. The browser stores
// the secrets by which the server knows them.

import { ask, send } from "./api.js";
import { byId, warn, make, on, toast } from "./dom.js";
import { go } from "./navigation.js";
import { session } from "./session.js";
import { put } from "./state.js";

/** @typedef {import("./api.js").ServedRepertoire} ServedRepertoire */

const KEY = "polybook.repertoires";
/** The maximum size in bytes of a file that the server accepts. */
const LARGEST = 2 << 20;

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
  if (file.size > LARGEST) throw new Error(`${name} is too large: a repertoire has at most ${LARGEST >> 20} MiB.`);
  const sent = /** @type {ServedRepertoire & { warnings: string[], stored: boolean }} */ (await send("repertoires", put(new URLSearchParams(), { name, side }), new Blob([file], { type: "application/octet-stream" })));
  const others = (session.about.repertoires ?? []).filter((one) => one.name !== sent.name || one.color !== sent.color || !one.id);
  session.about.repertoires = withSent([sent], others);
  store(session.about.repertoires);
  if (sent.warnings[0]) warn(sent.warnings[0]);
  else toast(`${sent.name} is open. ${sent.stored ? "The server stores it for all visitors." : "The server keeps it until it ends."}`);
  const { filters, tab } = session.view;
  await go({ fen: "", play: [], game: "", tab: tab === "prepare" ? "" : tab, filters: filters.color ? { ...filters, color: side } : filters, repertoire: sent.name, flip: side === "black" ? "1" : "0" }, { push: true });
  // On a phone, the card is below the board.
  byId("repertoires").scrollIntoView({ block: "nearest" });
}

/**
 * Puts repertoires that the user sent before others, and removes them from the others: a server that stores repertoires also shows them to
 * all visitors.
 * @param {ServedRepertoire[]} sent
 * @param {ServedRepertoire[]} others
 */
export function withSent(sent, others) {
  const key = (/** @type {ServedRepertoire} */ { name, color, version }) => [name, color, version].join();
  const known = sent.map(key);
  return [...sent, ...others.filter((one) => !known.includes(key(one)))];
}

/** Lets the user drop a file on one of two halves of the window, one for each side. */
export function connectDrop() {
  const place = byId("drop");
  for (const side of ["White", "Black"]) {
    const half = make("div", "", `Use as repertoire for ${side}`);
    place.append(half);
    on(half, "drop", (event) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (file) void useRepertoire(file, file.name, side.toLowerCase()).catch(warn);
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
