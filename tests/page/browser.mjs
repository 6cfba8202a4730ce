// Debian's Chromium, driven by Playwright, and what all its pages have in common.

import { chromium } from "playwright-core";

/** Where Chromium is, unless CHROMIUM says another place. */
const PROGRAM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export async function launch() {
  return chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });
}

/**
 * Opens a path of the server in a window of its own, and notes what a page must not do: write errors to the console, or
 * ask another origin.
 */
export async function open(browser, url, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
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
  await page.waitForSelector("#moves tbody tr");
  await page.waitForFunction(() => !document.body.hasAttribute("aria-busy"));
}
