// Embeds boards in a page of another origin, in a real browser: node embed.mjs CLOSED ALLOWED PORT PICTURES
// CLOSED and ALLOWED are the addresses of servers. ALLOWED allows the origin http://127.0.0.1:PORT. PICTURES is a directory for
// screenshots.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { accessible, launch, open, run } from "./browser.mjs";

const [closed, allowed, port, pictures] = process.argv.slice(2);

/** Returns a page with an embedded board, whose own styles must not change the board. */
const blog = (server) => `<!doctype html><html lang="en"><title>A blog</title>
<style>body { font: 20px serif; margin: 0 auto; max-width: 900px } button, div, section { display: none } * { color: red; text-align: right }</style>
<h1>The King's Gambit</h1>
<polybook-board src="${server}" play="e2e4"></polybook-board>
<iframe src="${server}?embed=1&play=e2e4,e7e5" width="800" height="560" title="Board"></iframe>
<script type="module" src="${server}embed.js"></script>`;

/** The example of the documents. */
const example = readFileSync(new URL("../../examples/embed.html", import.meta.url), "utf8").replaceAll("http://127.0.0.1:8040/", allowed);

const other = createServer((request, response) => {
  response.setHeader("content-type", "text/html");
  response.end(request.url === "/example" ? example : blog(request.url === "/closed" ? closed : allowed));
}).listen(Number(port));
await once(other, "listening");
const browser = await launch();

/** Opens the blog in a window of its own. */
async function visit(host, path, options) {
  const page = await (await browser.newContext(options)).newPage();
  await page.goto(`http://${host}:${port}${path}`);
  return page;
}

/** Waits until the element shows a line. */
const shows = (page, play) =>
  page.waitForFunction((wanted) => {
    const element = document.querySelector("polybook-board");
    return element.getAttribute("play") === wanted && element.shadowRoot?.querySelector("chess-board .last") && !element.hasAttribute("aria-busy");
  }, play);

const failures = await run({
  async "the element follows the page, and the page the element"() {
    const page = await visit("127.0.0.1", "/", { viewport: { width: 1000, height: 1300 } });
    await shows(page, "e2e4");
    const board = page.locator("polybook-board");
    assert.equal(await board.locator(".man").count(), 32);
    await page.evaluate(() => {
      globalThis.changes = [];
      document.addEventListener("change", ({ detail }) => globalThis.changes.push([detail.play.join(), detail.san.join(" "), detail.fen]));
    });
    // The user plays a move in the table, and the page another one.
    await board.locator('[data-uci="e7e5"]').click();
    await shows(page, "e2e4,e7e5");
    await board.evaluate((element) => element.setAttribute("play", "e2e4,e7e5,f2f4"));
    await shows(page, "e2e4,e7e5,f2f4");
    await board.getByLabel("One move back").click();
    await shows(page, "e2e4,e7e5");
    await page.keyboard.press("ArrowRight");
    await shows(page, "e2e4,e7e5,f2f4");
    // At the end of the line, the most played move follows.
    await board.getByLabel("One move forward").click();
    await shows(page, "e2e4,e7e5,f2f4,e5f4");
    const changes = await page.evaluate(() => globalThis.changes);
    assert.deepEqual(changes.map(([play]) => play), ["e2e4,e7e5", "e2e4,e7e5,f2f4", "e2e4,e7e5", "e2e4,e7e5,f2f4", "e2e4,e7e5,f2f4,e5f4"]);
    assert.deepEqual(changes[1].slice(1), ["e4 e5 f4", "rnbqkbnr/pppp1ppp/8/4p3/4PP2/8/PPPP2PP/RNBQKBNR b KQkq - 0 2"]);
    // A drag on the board.
    const box = await board.locator(".squares-field").boundingBox();
    const middle = (file, rank) => [box.x + ((file + 0.5) * box.width) / 8, box.y + ((7.5 - rank) * box.height) / 8];
    await page.mouse.move(...middle(6, 0));
    await page.mouse.down();
    await page.mouse.move(...middle(5, 2), { steps: 5 });
    await page.mouse.up();
    await shows(page, "e2e4,e7e5,f2f4,e5f4,g1f3");
    await page.mouse.move(5, 5);
    await page.waitForFunction(() => document.querySelector("polybook-board").shadowRoot.getAnimations({ subtree: true }).length === 0);
    await page.screenshot({ path: join(pictures, "embedded 1000x1300.png"), caret: "initial" });
    // Another position, without the line of the previous one.
    const fen = "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2";
    await board.evaluate((element, fen) => element.setAttribute("fen", fen), fen);
    await page.waitForFunction((fen) => globalThis.changes.at(-1)[2] === fen, fen);
    assert.equal(await board.getAttribute("play"), null);
    const link = await board.locator("a.button").getAttribute("href");
    assert.equal(new URL(link).searchParams.get("fen"), fen);
    // An element that the page moves still plays each move once.
    await board.evaluate((element) => document.body.append(element));
    await board.locator('[data-uci="g1f3"]').click();
    await shows(page, "g1f3");
    // A position that is none, or a line with an illegal move, has a message instead of the moves, and an event.
    for (const [name, value, problem] of [["fen", "8/8", /^FEN "8\/8": /], ["play", "e2e5", /e2e5/]]) {
      const message = await board.evaluate((element, [name, value]) => {
        const failed = new Promise((resolve) => element.addEventListener("error", ({ detail }) => resolve(detail.message), { once: true }));
        if (name === "play") element.removeAttribute("fen");
        element.setAttribute(name, value);
        return failed;
      }, [name, value]);
      assert.match(message, problem);
      assert.equal(await board.locator(".problem").textContent(), message);
      assert.equal(await board.locator("[data-uci]").count(), 0);
    }
    await page.context().close();
  },

  async "the board follows the moves in the text of the example"() {
    for (const width of [1440, 900, 390]) {
      const page = await visit("127.0.0.1", "/example", { viewport: { width, height: 900 } });
      await page.getByText("2. Nf3").click();
      await shows(page, "e2e4,c7c5,g1f3");
      assert.equal(await page.locator(".move[aria-current]").textContent(), "2. Nf3");
      const board = page.locator("polybook-board");
      // No word of the name of an opening is broken.
      const broken = await board.locator(".body .name").evaluateAll((names) =>
        names.flatMap((name) => {
          const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
          const found = [];
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            for (const { 0: word, index } of node.data.matchAll(/[^\s-]+-?/g)) {
              const range = document.createRange();
              range.setStart(node, index);
              range.setEnd(node, index + word.length);
              if (range.getClientRects().length > 1) found.push(word);
            }
          }
          return found;
        }),
      );
      assert.deepEqual(broken, [], `${width}`);
      await board.locator('[data-uci="d7d6"]').click();
      await shows(page, "e2e4,c7c5,g1f3,d7d6");
      assert.equal(await page.locator(".move[aria-current]").textContent(), "2... d6");
      await page.context().close();
    }
  },

  async "a frame shows the board and the moves alone"() {
    const page = await visit("127.0.0.1", "/");
    const frame = page.frameLocator("iframe");
    await frame.locator("chess-board .last").first().waitFor();
    assert.equal(await frame.locator(".man").count(), 32);
    assert.equal(await frame.locator("#search, #games, #filter-bar").count(), 0);
    await frame.locator('[data-uci="g1f3"]').click();
    await frame.locator('polybook-board[play="e2e4,e7e5,g1f3"]').waitFor();
    await page.context().close();
  },

  async "the board alone fits its window, and is accessible"() {
    for (const [width, height, colorScheme] of [[800, 560, "light"], [390, 700, "dark"], [320, 640, "light"]]) {
      const { page, context, faults } = await open(browser, allowed, "?embed=1&play=e2e4,e7e5", { viewport: { width, height }, colorScheme });
      await page.locator("chess-board .last").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
      // A caret that is hidden for a screenshot would be an inline style, which the policy of the page forbids.
      await page.screenshot({ path: join(pictures, `alone ${width}x${height}.png`), caret: "initial" });
      const board = await page.locator(".squares-field").boundingBox();
      assert.ok(board.y >= 0 && board.y + board.height <= height && board.width <= width && Math.abs(board.width - board.height) < 1, `${width}: ${JSON.stringify(board)}`);
      assert.deepEqual(faults, []);
      // axe copies the styles of a shadow root into a style element, which the policy of the page forbids.
      await accessible(page, `${width}x${height}`);
      await context.close();
    }
  },

  async "a page of an origin that is not allowed embeds nothing"() {
    for (const [host, path] of [["127.0.0.1", "/closed"], ["localhost", "/"]]) {
      const page = await visit(host, path);
      await page.waitForLoadState("networkidle");
      const isDefined = await page.evaluate(() => customElements.get("polybook-board") !== undefined);
      assert.equal(isDefined, false, host);
      for (const frame of page.frames().slice(1)) assert.equal(await frame.locator("polybook-board").count(), 0, host);
      await page.context().close();
    }
  },
});
await browser.close();
other.close();
process.exitCode = failures ? 1 : 0;
