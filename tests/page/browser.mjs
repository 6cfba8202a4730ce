// The system's Chromium, driven by Playwright, and what all its pages have in common.

import { existsSync } from "node:fs";

import { chromium } from "playwright-core";

/** Where the browser may be, unless CHROMIUM says another place. */
const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/google-chrome", "/usr/bin/chromium-browser"];

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? PROGRAMS.find(existsSync);
  // A container often runs as root, where the sandbox cannot start.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
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
