// Starts the system's Chromium with Playwright, and contains helpers for all pages.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

/** The possible paths of the browser. The variable CHROMIUM overrides them. */
const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/google-chrome", "/usr/bin/chromium-browser"];
// Each page loads it again, and the minified file loads in half of the time.
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The pages of the running test. */
let opened = [];

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? PROGRAMS.find(existsSync);
  // Containers often run as root, and the sandbox cannot start as root.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/**
 * Opens a path of the server in a window of its own, and notes what a page must not do: write errors to the console, or
 * ask another origin. The routes answer in the server's place. A page that is open already may miss the first of them.
 */
export async function open(browser, url, path, { routes = {}, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  opened.push(page);
  for (const [glob, answer] of Object.entries(routes)) await page.route(glob, answer);
  const close = context.close.bind(context);
  // A route whose answer comes after the page has closed would throw an error that no test catches.
  context.close = async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.unrouteAll({ behavior: "ignoreErrors" });
    await close();
  };
  const faults = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("blob:")) faults.push(request.url());
  });
  await page.goto(new URL(path, url).href);
  await settled(page);
  return { page, context, faults };
}

/** Waits until the page shows what its address says. */
export async function settled(page) {
  await page.waitForFunction(() => !document.body.hasAttribute("aria-busy"));
}

/** Waits until the lists and charts have loaded, too, and the pieces stand still. */
export async function followed(page) {
  await page.waitForFunction(() => !document.querySelector("[aria-busy]") && document.getAnimations().every(({ playState }) => playState === "finished"));
  // Elements that depend on the sizes of others follow in the next frame.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Waits until the address has a line, and the page shows it. */
export async function reaches(page, play) {
  await page.waitForFunction(
    (wanted) => (new URL(location.href).searchParams.get("play") ?? "") === wanted && !document.body.hasAttribute("aria-busy"),
    play,
  );
}

/** Waits until the address contains a text, and the page shows it. */
export async function addressed(page, text) {
  await page.waitForFunction(
    (wanted) => decodeURIComponent(location.search).replaceAll("+", " ").includes(wanted) && !document.body.hasAttribute("aria-busy"),
    text,
  );
}

/** Returns the middle of a square, with White at the bottom. */
export async function middle(page, square) {
  const box = await page.locator(".squares-field").boundingBox();
  const size = box.width / 8;
  return [box.x + ("abcdefgh".indexOf(square[0]) + 0.5) * size, box.y + (8 - Number(square[1]) + 0.5) * size];
}

export async function drag(page, from, to) {
  await page.mouse.move(...(await middle(page, from)));
  await page.mouse.down();
  await page.mouse.move(...(await middle(page, to)), { steps: 5 });
  await page.mouse.up();
}

/** Returns an error if the page is wider than its window. */
export async function isNotTooWide(page, what) {
  const [wide, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= inner, `${what}: the page is ${wide} wide in a window of ${inner}`);
}

/** Checks a page with axe in each of the color schemes, and that it is not wider than its window. */
export async function accessible(page, what, schemes = ["light", "dark"]) {
  // Numbers that are out of date are pale.
  await page.waitForFunction(() => ![...document.querySelectorAll("#panel[aria-busy], #games[aria-busy], .stale")].some((one) => one.checkVisibility()));
  await isNotTooWide(page, what);
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  const opened = isDark ? "dark" : "light";
  for (const colorScheme of schemes) {
    // The other rules give the same result in both schemes.
    const runOnly = colorScheme === opened ? undefined : ["color-contrast", "link-in-text-block"];
    // The new colors appear at once, because there are no transitions.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // The other results of axe have megabytes, which take longer to send than to find.
    const found = await page.evaluate(async (options) => {
      const { violations } = await globalThis.axe.run(options);
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("\n")}`);
    }, { resultTypes: ["violations"], ...(runOnly && { runOnly }) });
    assert.deepEqual(found, [], `${what}, ${colorScheme}`);
  }
  await page.emulateMedia({ reducedMotion: null });
}

/** Returns true if the whole board is visible. */
export async function boardIsVisible(page) {
  const { x, y, width, height } = await page.locator(".squares-field").boundingBox();
  const window = page.viewportSize();
  return x >= 0 && y >= 0 && x + width <= window.width + 0.5 && y + height <= window.height + 0.5;
}

/** Returns the state of a page in a few words. */
async function stateOf(page) {
  const state = page.evaluate(() => {
    const name = (element) => element && element.cloneNode().outerHTML + element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    const all = (selector) => [...document.querySelectorAll(selector)].map(name).join(", ");
    return `${location.href}\n  title: ${document.title}\n  focus: ${name(document.activeElement)}\n  busy: ${all("[aria-busy]")}\n  dialog: ${all("dialog[open]")}\n  message: ${all("#notice, #toast")}`;
  });
  // A page that hangs does not answer.
  return Promise.race([state, new Promise((resolve) => setTimeout(resolve, 5000, `${page.url()} does not answer`))]).catch(String);
}

/**
 * Runs all tests, or those whose name contains a word from the environment, and prints their results. Prints the failures again at the
 * end, with the states of the pages, because CI keeps only the end of the output. Returns the number of failures.
 */
export async function run(tests) {
  const failures = [];
  for (const [name, test] of Object.entries(tests)) {
    if (!name.includes(process.env.ONLY ?? "")) continue;
    opened = [];
    try {
      await test();
      console.log(`ok: ${name}`);
    } catch (error) {
      const states = await Promise.all(opened.filter((page) => !page.isClosed()).map(stateOf));
      failures.push(`failed: ${name}\n${[error instanceof Error ? error.stack : error, ...states].join("\n")}`);
      console.log(failures.at(-1));
      for (const page of opened) await page.context().close();
    }
  }
  if (failures.length) console.error(failures.join("\n"));
  return failures.length;
}
