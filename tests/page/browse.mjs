// Uses the page as people do, in a real browser: node browse.mjs URL DIRECTORY
// The screenshots go to the directory. The server has data/famous.pgn and data/selfplay.pgn.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { launch, open, settled } from "./browser.mjs";

const [url, directory] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core"), "utf8");
const browser = await launch();

const api = async (path) => (await fetch(new URL(path, url))).json();
const line = (page) => new URL(page.url()).searchParams.get("play") ?? "";
const total = (page) => page.textContent("#moves tfoot td");
const games = ({ white, draws, black }) => (white + draws + black).toLocaleString("en");

/** Waits until the address has a line, and the page shows it. */
async function reaches(page, play) {
  await page.waitForFunction(
    (wanted) => (new URL(location.href).searchParams.get("play") ?? "") === wanted && !document.body.hasAttribute("aria-busy"),
    play,
  );
  await settled(page);
}

/** Where the middle of a square is, White below. */
async function middle(page, square) {
  const box = await page.locator(".field").boundingBox();
  const size = box.width / 8;
  return [box.x + ("abcdefgh".indexOf(square[0]) + 0.5) * size, box.y + (8 - Number(square[1]) + 0.5) * size];
}

async function drag(page, from, to) {
  await page.mouse.move(...(await middle(page, from)));
  await page.mouse.down();
  await page.mouse.move(...(await middle(page, to)), { steps: 5 });
  await page.mouse.up();
}

async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("\n")}`);
  assert.deepEqual(found, [], what);
}

const tests = {
  async "moves by drag, click, table and keys"() {
    const { page, faults } = await open(browser, url, "/");
    const start = await api("/lichess");
    assert.equal(await total(page), games(start));

    await drag(page, "e2", "e4");
    await reaches(page, "e2e4");
    assert.equal(await total(page), games(await api("/lichess?play=e2e4")));

    await page.mouse.click(...(await middle(page, "e7")));
    await page.waitForSelector(".mark.go");
    await page.mouse.click(...(await middle(page, "e5")));
    await reaches(page, "e2e4,e7e5");

    await page.click('#moves [data-uci="g1f3"]');
    await reaches(page, "e2e4,e7e5,g1f3");
    assert.match(await page.textContent("#opening"), /King's Knight/);

    await page.keyboard.press("ArrowLeft");
    await reaches(page, "e2e4,e7e5");
    await page.keyboard.press("ArrowRight");
    await reaches(page, "e2e4,e7e5,g1f3");
    await page.keyboard.press("Home");
    await reaches(page, "");
    await page.keyboard.press("End");
    await reaches(page, "e2e4,e7e5,g1f3");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.search.split(",").length === 4);
    await settled(page);

    await page.goBack();
    await reaches(page, "e2e4,e7e5,g1f3");
    await page.goBack();
    await reaches(page, "");
    await page.goForward();
    await reaches(page, "e2e4,e7e5,g1f3");
    // A piece that may not move there goes back.
    await drag(page, "e8", "e4");
    assert.equal(line(page), "e2e4,e7e5,g1f3");
    assert.deepEqual(faults, []);
  },

  async "castling by the king's two steps, and a promotion"() {
    const castle = "/?fen=r3k2r/8/8/8/8/8/8/R3K2R_w_KQkq_-_0_1";
    const { page, faults } = await open(browser, url, castle);
    await drag(page, "e1", "g1");
    await reaches(page, "e1h1");
    assert.equal(await page.locator('.man[data-square="f1"]').count(), 1);
    await page.goto(new URL("/?fen=4k3/1P6/8/8/8/8/8/4K3_w_-_-_0_1", url).href);
    await settled(page);
    await drag(page, "b7", "b8");
    await page.click('.choice [aria-label="knight"]');
    await reaches(page, "b7b8n");
    assert.deepEqual(faults, []);
  },

  async "filters change the numbers to what the API says"() {
    const { page, faults } = await open(browser, url, "/?play=e2e4");
    await page.keyboard.press("/");
    await page.keyboard.type("Morphy, Paul");
    await page.selectOption("[name=color]", "white");
    await page.waitForFunction(() => location.search.includes("color=white") && !document.body.hasAttribute("aria-busy"));
    const filtered = await api("/lichess?play=e2e4&player=Morphy,+Paul&color=white");
    assert.equal(await total(page), games(filtered));
    assert.match(await page.textContent("#command"), /--min-game 1 --white 'Morphy, Paul' .*famous\.pgn selfplay\.pgn /);
    // The address is all that is needed.
    const other = await open(browser, url, page.url());
    assert.equal(await total(other.page), games(filtered));
    assert.equal(await other.page.inputValue("[name=player]"), "Morphy, Paul");

    await page.click("text=Clear the filters");
    await page.waitForFunction(() => !location.search.includes("player") && !document.body.hasAttribute("aria-busy"));
    await page.selectOption("[name=source]", "selfplay");
    await page.waitForFunction(() => location.search.includes("source") && !document.body.hasAttribute("aria-busy"));
    assert.equal(await total(page), games(await api("/lichess?play=e2e4&source=selfplay")));
    await page.click("text=2500 and above");
    await page.waitForFunction(() => location.search.includes("ratings") && !document.body.hasAttribute("aria-busy"));
    const ratings = "0,1000,1200,1400,1600,1800,2000,2200";
    const rated = await api(`/lichess?play=e2e4&source=selfplay&ratings=${ratings}`);
    assert.equal(rated.moves.length ? await total(page) : "0", games(rated));
    assert.deepEqual([...faults, ...other.faults], []);
  },

  async "a date of the wrong form stays and is explained"() {
    const { page, faults } = await open(browser, url, "/");
    await page.fill("[name=since]", "1850/5");
    await page.press("[name=since]", "Enter");
    assert.equal(await page.textContent("#problem"), "Since: write 2019 or 2019-05");
    await page.click('#moves [data-uci="e2e4"]');
    await reaches(page, "e2e4");
    assert.equal(await page.inputValue("[name=since]"), "1850/5");
    await page.fill("[name=since]", "1850.05");
    await page.press("[name=since]", "Enter");
    await page.waitForFunction(() => location.search.includes("since=1850-05") && !document.body.hasAttribute("aria-busy"));
    assert.equal(await total(page), games(await api("/lichess?play=e2e4&since=1850-05")));
    assert.ok(await page.locator("#problem").isHidden());
    await page.fill("[name=since]", "soon");
    await page.click("text=Clear the filters");
    await page.waitForFunction(() => !location.search.includes("since") && !document.body.hasAttribute("aria-busy"));
    assert.equal(await page.inputValue("[name=since]"), "");
    assert.deepEqual(faults, []);
  },

  async "a game is opened and played through"() {
    const { page, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3,d7d6");
    await page.click("#games [data-game]");
    await page.waitForSelector("#open-game:not([hidden])");
    assert.match(await page.textContent("#open-game"), /Morphy/);
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector("#line [aria-current]")?.textContent === "Rd8#");
    await settled(page);
    assert.match(await page.textContent("#moves tbody"), /The game is over/);
    assert.equal(await page.locator(".mark.check").count(), 1);
    await page.keyboard.press("Home");
    await reaches(page, "");
    for (const play of ["e2e4", "e2e4,e7e5"]) {
      await page.click('[data-go="forward"]');
      await reaches(page, play);
    }
    const download = page.waitForEvent("download");
    await page.click("text=Download PGN");
    assert.match(readFileSync(await (await download).path(), "utf8"), /Rd8# 1-0/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#open-game", { state: "hidden" });
    await page.click('[data-games="all"]');
    await page.waitForSelector("#games .pages");
    assert.deepEqual(faults, []);
  },

  async "the variant of all sources is asked for after going back"() {
    const { page, context } = await open(browser, url, "/");
    const about = { ...(await api("/about")), sources: [{ name: "drops", games: 1, variant: "crazyhouse", files: [] }] };
    await page.route("**/about", (route) => route.fulfill({ json: about }));
    const asked = () => page.waitForRequest((request) => new URL(request.url()).pathname === "/lichess");
    const variant = async (/** @type {Promise<import("playwright-core").Request>} */ request) =>
      new URL((await request).url()).searchParams.get("variant");
    let request = asked();
    await page.reload();
    assert.equal(await variant(request), "crazyhouse");
    await settled(page);
    await drag(page, "e2", "e4");
    await reaches(page, "e2e4");
    request = asked();
    await page.goBack();
    assert.equal(await variant(request), "crazyhouse");
    await context.close();
  },

  async "a late answer is not shown under another heading"() {
    const { page, context, faults } = await open(browser, url, "/");
    const shown = (selector) => page.locator(`#games ${selector}`);
    /** Holds back the answers for which this is so until the page has shown the others. */
    const hold = async (isHeld) => {
      const held = [];
      await page.route("**/games?*", async (route) => {
        if (!isHeld(new URL(route.request().url()).searchParams)) return route.continue();
        const answer = await route.fetch();
        // The page may have given up the request.
        held.push(() => route.fulfill({ response: answer }).catch(() => undefined));
      });
      return async () => {
        await page.waitForFunction(() => !document.body.hasAttribute("aria-busy"));
        await page.waitForTimeout(300);
        assert.ok(held.length > 0);
        for (const release of held) await release();
        await page.waitForTimeout(300);
        await page.unroute("**/games?*");
      };
    };
    const ids = () => shown("[data-game]").evaluateAll((games) => games.map((game) => game.getAttribute("data-game")));
    const wanted = async (query) => (await api(`/games?limit=20&${query}`)).games.map(({ id }) => id);
    await page.click('[data-games="all"]');
    await shown(".pages select").waitFor();
    let release = await hold((asked) => asked.get("sort") === "rating");
    await page.selectOption("#games .pages select", "rating");
    await page.selectOption("#games .pages select", "id");
    await release();
    assert.equal(await shown(".pages select").inputValue(), "id");
    assert.deepEqual(await ids(), await wanted("sort=id"));

    release = await hold((asked) => asked.get("skip") === "20");
    await page.click('[data-games="next"]');
    await page.click('[data-games="all"]');
    await release();
    assert.match((await shown(".pages span").textContent()) ?? "", /^1–20 of/);
    assert.deepEqual(await ids(), await wanted("sort=id"));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "what is pasted is read"() {
    const { page, faults } = await open(browser, url, "/");
    await page.fill("#paste input", "1. e4 c5 2. Nf3");
    await page.keyboard.press("Enter");
    await reaches(page, "e2e4,c7c5,g1f3");
    await page.fill("#paste input", "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.search.includes("fen=4k3"));
    await settled(page);
    // The moves of the line before are none of this position.
    assert.deepEqual(await page.locator("#line button").allTextContents(), ["Start"]);
    await page.fill("#paste input", "1. e4 e5 2. Nf3 Qxf2");
    await page.keyboard.press("Enter");
    await reaches(page, "e2e4,e7e5,g1f3");
    assert.equal(await page.textContent("#problem"), "Stopped before 2... Qxf2: illegal move");
    await page.fill("#paste input", '[White "A"] [Black "B"]  1. d4 d5 *');
    await page.keyboard.press("Enter");
    await reaches(page, "d2d4,d7d5");
    assert.ok(await page.locator("#problem").isHidden());
    await page.fill("#paste input", "good morning");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#problem:not([hidden])");
    assert.deepEqual(faults, []);
  },

  async "light, dark and narrow, for everybody"() {
    for (const [name, options] of [
      ["light", {}],
      ["dark", { colorScheme: "dark" }],
      ["phone", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 }],
    ]) {
      const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5&game=00000003", options);
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!isWide, `${name}: the page is wider than its window`);
      await page.click("#book summary");
      await accessible(page, name);
      await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
      await page.click("#help-button");
      await accessible(page, `${name}, with help`);
      await page.keyboard.press("Escape");
      if (options.hasTouch) {
        await page.goto(new URL("/", url).href);
        await settled(page);
        await page.locator(".field").scrollIntoViewIfNeeded();
        await page.touchscreen.tap(...(await middle(page, "d2")));
        await page.waitForSelector(".mark.go");
        await page.touchscreen.tap(...(await middle(page, "d4")));
        await reaches(page, "d2d4");
      }
      assert.deepEqual(faults, [], name);
      await context.close();
    }
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed: ${name}\n${error instanceof Error ? error.stack : error}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
