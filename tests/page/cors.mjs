// Reads answers from a page of another origin, in a real browser: node cors.mjs CLOSED ALLOWED PORT
// CLOSED and ALLOWED are the addresses of servers. ALLOWED allows the origin http://127.0.0.1:PORT.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import { launch } from "./browser.mjs";

const [closed, allowed, port] = process.argv.slice(2);
const other = createServer((_, response) => response.setHeader("content-type", "text/html").end("<p>Another site")).listen(Number(port));
await once(other, "listening");
const browser = await launch();
const page = await (await browser.newContext()).newPage();

/** Returns what the page reads from an address: the text, or "blocked". */
const read = (address, headers = {}) =>
  page.evaluate(
    ([url, sent]) => fetch(url, { headers: sent }).then((answer) => answer.text()).catch(() => "blocked"),
    [address, headers],
  );

const token = { authorization: "Bearer none" };
const paths = ["lichess?play=e2e4", "games", "game/00000001", "about"];
try {
  for (const host of ["127.0.0.1", "localhost"]) {
    await page.goto(`http://${host}:${port}/`);
    for (const path of paths) {
      for (const headers of [{}, token]) {
        assert.equal(await read(closed + path, headers), "blocked", `${host}: ${path}`);
        const text = await read(allowed + path, headers);
        // This name is another origin, which is not allowed.
        if (host === "localhost") assert.equal(text, "blocked", path);
        else assert.match(text, /Event|white|games/, path);
      }
    }
  }
  // The page of each server can read everything that it needs.
  for (const url of [closed, allowed]) {
    await page.goto(url);
    assert.match(await read(`${url}about`), /games/);
  }
} finally {
  await browser.close();
  other.close();
}
