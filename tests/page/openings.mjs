// Uses the view of the openings: node openings.mjs URL
// The server has data/famous.pgn, data/selfplay.pgn and annotated.pgn.

import assert from "node:assert/strict";

import { accessible, addressed, followed, launch, open, reaches, run } from "./browser.mjs";

const [url] = process.argv.slice(2);
const browser = await launch();

const api = async (path) => (await fetch(new URL(path, url), { headers: { accept: "application/json" } })).json();
const games = ({ white, draws, black, unfinished = 0 }) => white + draws + black + unfinished;
const names = (page) => page.locator("#openings .row:not(.variation) .name b").allTextContents();

/** A player's openings: one weaker and one stronger than the average, and one that may be chance. */
const family = (name, wins, losses, score, scoreRange, points) => ({
  name, eco: ["A10", "A39"], white: wins, draws: 2, black: losses, wins, losses, score, scoreRange, points, opponentRating: 2500, performance: 2510, lastPlayed: "2020-05-01", line: ["c2c4"], lineGames: 13, variations: [],
});
const own = {
  games: 36, unnamed: 1, averageScore: 50,
  families: [family("Weak", 1, 9, 17, [8, 30], -4), family("Chance", 5, 6, 46, [15, 58], -0.5), family("Strong", 9, 1, 83, [70, 92], 4), { ...family("Rare", 1, 0, 83, [70, 92], 4), draws: 0 }],
};

const tests = {
  async "the openings of all games, with their variations, and the way to a position"() {
    const { page, context, faults } = await open(browser, url, "/");
    await page.click("#views >> text=Openings");
    await addressed(page, "view=openings");
    await followed(page);
    const { families } = await api("/openings?fold=variation");
    const shown = families.filter((one) => games(one) >= 5);
    assert.ok(shown.length > 3);
    assert.deepEqual(await names(page), shown.map(({ name }) => name));
    assert.deepEqual(await page.locator("#openings .row:not(.rest) .games").allTextContents(), ["Games\u00a0↓", ...shown.map((one) => games(one).toLocaleString("en"))]);
    // Space unfolds the variations, the arrow keys choose a row, and Enter opens its position.
    await page.locator("#openings .name button[tabindex='0']").focus();
    await page.keyboard.press(" ");
    assert.equal(await page.locator("#openings .fold[aria-expanded=true]").count(), 1);
    const variations = shown[0].variations.filter((one) => games(one) >= 3).length;
    assert.equal(await page.locator("#openings .variation").count(), variations);
    await page.keyboard.press(" ");
    assert.equal(await page.locator("#openings .variation").count(), 0);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await reaches(page, shown[1].line.join(","));
    assert.ok(await page.locator("#moves").isVisible());
    await page.goBack();
    await addressed(page, "view=openings");
    await followed(page);
    // An opening filters its games if far fewer or far more games reach its usual position.
    const turned = shown.find((one) => Math.abs(one.lineGames - games(one)) > 0.25 * games(one));
    assert.ok(turned);
    await page.locator("#openings .name button", { hasText: turned.name }).first().click();
    await addressed(page, `opening=${turned.name}`);
    await followed(page);
    assert.match(await page.locator("#tally").textContent(), new RegExp(`^${games(turned)} of `));
    await page.goBack();
    await addressed(page, "view=openings");
    await followed(page);
    // An opening also filters its games if most games in this position belong to other openings.
    await page.route("**/lichess?*legal=0*", (route) => route.fulfill({ json: { white: 1, draws: 0, black: 0 } }));
    await page.locator("#openings .name button", { hasText: shown[1].name }).first().click();
    await addressed(page, `opening=${shown[1].name}`);
    await page.goBack();
    await addressed(page, "view=openings");
    await followed(page);
    // The games have no place below the openings. A key lists those of an opening.
    assert.equal(await page.locator("#side:visible").count(), 0);
    await page.locator("#openings .name button[tabindex='0']").focus();
    await page.keyboard.press("g");
    await addressed(page, `opening=${shown[0].name}`);
    await followed(page);
    assert.ok(await page.evaluate(() => document.activeElement.matches("#games .game")));
    await page.goBack();
    await addressed(page, "view=openings");
    await followed(page);
    // A part of a bar lists the games of an opening with a result.
    const row = page.locator("#openings .row", { hasText: shown[0].name }).first();
    await row.locator(".target").first().click();
    await page.waitForFunction(() => location.search.includes("opening=") && location.search.includes("list="));
    await followed(page);
    const address = new URL(page.url()).searchParams;
    assert.equal(address.get("opening"), shown[0].name);
    const listed = await api(`/games?${new URLSearchParams({ opening: shown[0].name, result: address.get("list"), duplicates: "once" })}`);
    assert.match(await page.locator("#games .foot").textContent(), new RegExp(`of ${listed.total}`));
    assert.deepEqual(faults, []);
    await context.close();
    // On a phone, the games are visible between the board and the buttons.
    const phone = await open(browser, url, "/?view=openings", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    await phone.page.locator("#openings .target").first().tap();
    await phone.page.waitForFunction(() => location.search.includes("list="));
    await followed(phone.page);
    const [top, bottom, least, most] = await phone.page.evaluate(() => {
      const box = (selector) => document.querySelector(selector).getBoundingClientRect();
      return [box("#games-head").top, box("#games li").bottom, box("#play").bottom, box("#dock").top];
    });
    assert.ok(top >= least && bottom <= most, `${top} to ${bottom} in ${least} to ${most}`);
    await phone.context.close();
  },

  async "the last click on an opening counts, however late the answers arrive"() {
    const held = [];
    const routes = { "**/lichess?*legal=0*": (route) => held.push(route) };
    const { page, context, faults } = await open(browser, url, "/?view=openings", { routes });
    await followed(page);
    const { families } = await api("/openings?fold=variation");
    const ways = families.filter((one) => games(one) >= 5 && Math.abs(one.lineGames - games(one)) <= 0.25 * games(one));
    const press = ({ name }) => Promise.all([page.waitForRequest(/legal=0/), page.locator("#openings .name button", { hasText: name }).first().click()]);
    const answer = () => Promise.all(held.splice(0).map((route) => route.continue().catch(() => undefined)));
    await press(ways[0]);
    assert.equal(await page.getAttribute("body", "aria-busy"), "true");
    await press(ways[1]);
    // Sorting the table does not end the request.
    await page.locator("#openings .head button", { hasText: "Score" }).click();
    await answer();
    await reaches(page, ways[1].line.join(","));
    await page.goBack();
    await addressed(page, "view=openings");
    await followed(page);
    // Going elsewhere ends it.
    await press(ways[0]);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => location.search.includes("play="));
    await answer();
    await followed(page);
    assert.doesNotMatch(page.url(), /opening=/);
    assert.ok(!page.url().includes(`play=${ways[0].line.join(",")}&`));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a player's weaker openings come first, and chance is not marked"() {
    const routes = { "**/openings?*": (route) => route.fulfill({ json: own }), "**/lichess?*legal=0*": (route) => route.fulfill({ json: { white: 1, draws: 2, black: 9 } }) };
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul&view=openings", { routes });
    await page.waitForSelector("#openings .openings");
    assert.deepEqual(await names(page), ["Weak", "Chance", "Strong"]);
    const marks = await page.locator("#openings .body .field-of .sign").evaluateAll((all) => all.map((one) => one.className.trim()));
    assert.deepEqual(marks, ["sign weaker", "sign", "sign stronger"]);
    // The dot of a score that is more than 30 percentage points from the average is at the edge.
    const [field, dot] = await Promise.all([".field-of", ".field-of .sign"].map((of) => page.locator(`#openings .body ${of}`).first().boundingBox()));
    assert.ok(dot.x >= field.x - 0.5 && dot.x < field.x + 2, `${dot.x} in ${field.x}`);
    // An end of a range that is more than 30 percentage points from the average is an arrowhead, too.
    assert.deepEqual(await page.locator("#openings .between").evaluateAll((all) => all.map((one) => one.className.trim())), ["between weaker", "between  cut-below", "between stronger"]);
    assert.equal(await page.locator("#openings .most-lost").textContent(), "Most lost: Weak, 4.0 points in 12 games");
    assert.equal(await page.locator("#openings .key").textContent(), "Points: compared with what ratings predictlikely weakerlikely strongercould be chance");
    assert.match(await page.locator("#openings .key [title]").first().getAttribute("title"), /Marked: 2 of 3 openings; chance alone would mark about 0\.6\.$/);
    assert.equal(await page.locator("#openings .points.weaker").textContent(), "−4.0");
    assert.equal(await page.locator("#openings .name button[aria-label]").first().getAttribute("aria-label"), "Weak, 12 games, score 17%, 4 points below the expectation");
    // The range of an opening says why the opening is not marked.
    assert.deepEqual(await page.locator("#openings .body .field-of").evaluateAll((all) => all.map((one) => one.title)), [
      "17%, likely between 8% and 30%", "46%, likely between 15% and 58%", "83%, likely between 70% and 92%",
    ]);
    assert.equal(await page.locator("#openings .name button[title]").first().getAttribute("title"), "Goes to the usual position of this opening, which 13 games of any opening reached");
    // The openings with few games are folded into a row with their sums.
    const rest = page.locator("#openings .rest");
    assert.deepEqual(await rest.allTextContents(), ["1 opening with fewer than 5 games each: 1 game, +4.0 points", "1 game without a named opening"]);
    await rest.locator("button").click();
    assert.deepEqual(await names(page), ["Weak", "Chance", "Strong", "Rare"]);
    assert.equal(await page.locator("#openings .field-of").last().getAttribute("title"), "83%, likely between 70% and 92%; fewer than 10 games");
    assert.equal(await page.locator("#openings .points").last().getAttribute("class"), "points ");
    await accessible(page, "all openings");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-expanded")), "true");
    await rest.locator("button").click();
    await page.locator("#openings .head button", { hasText: "Score" }).click();
    assert.deepEqual(await names(page), ["Strong", "Chance", "Weak"]);
    // The address contains the order.
    assert.equal(new URL(page.url()).searchParams.get("order"), "-score");
    await page.reload();
    await followed(page);
    assert.deepEqual(await names(page), ["Strong", "Chance", "Weak"]);
    await accessible(page, "openings");
    // The opening with the most points lost is a link to its position.
    const opened = page.waitForRequest(/legal=0/);
    await page.locator("#openings .most-lost button").click();
    await opened;
    await reaches(page, "c2c4");
    await page.goBack();
    await followed(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    // The scores of won games say nothing.
    await page.goto(new URL("/?player=Morphy,+Paul&result=win&view=openings", url).href);
    await page.waitForSelector("#openings .head [aria-sort=descending].games");
    assert.match(await rest.first().textContent(), /^\d+ openings with fewer than 5 games each: \d+ games$/);
    await rest.first().locator("button").click();
    for (const column of ["score", "points", "performance"]) assert.deepEqual(new Set(await page.locator(`#openings .body .${column}`).allTextContents()), new Set(["–"]), column);
    assert.equal(await page.locator("#openings .key, #openings .field-of").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "on a phone, an opening has two lines with all that matters, and a menu sorts"() {
    const routes = { "**/openings?*": (route) => route.fulfill({ json: own }) };
    // In a low window of medium width, the column of the openings is little wider than a phone.
    for (const [width, height] of [[390, 844], [320, 844], [1024, 700]]) {
      const viewport = { width, height };
      const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul&view=openings", { routes, viewport, hasTouch: true, isMobile: true });
      await page.waitForSelector("#openings .openings");
      assert.equal(await page.locator("#openings .head:visible").count(), 0);
      // The key to the marks is short.
      const key = await page.locator("#openings .key").boundingBox();
      assert.ok(key.height < 90, `${width}: the key is ${key.height} high`);
      const first = page.locator("#openings .body .row").first();
      for (const part of [".bar", ".score", ".sign.weaker", ".points"]) assert.ok(await first.locator(part).first().isVisible(), part);
      assert.equal(await first.locator("small").innerText(), "A10–A39 · 12 games");
      const order = page.locator("#openings select");
      assert.equal(await order.inputValue(), "points");
      await order.selectOption("score");
      assert.deepEqual(await names(page), ["Strong", "Chance", "Weak"]);
      assert.equal(await order.inputValue(), "score");
      await accessible(page, `openings, ${width}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
