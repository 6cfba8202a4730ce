// Uses the table of the moves, the list of the games and the chips: node lists.mjs URL VARIANTS
// The server at URL has data/famous.pgn, data/selfplay.pgn and annotated.pgn, the one at VARIANTS has data/variants.pgn.

import assert from "node:assert/strict";

import { addressed, followed, launch, open, reaches, run, settled } from "./browser.mjs";

const [url, variants] = process.argv.slice(2);
const browser = await launch();

const api = async (path, base = url) => (await fetch(new URL(path, base), { headers: { accept: "application/json" } })).json();
const head = (page) => page.locator("#games-head");
const total = async (page) => Number((await page.locator("#games .foot span").first().textContent()).match(/of ([\d,]+)/)[1].replace(",", ""));

const tests = {
  async "the name of a book fits into the heading of its column"() {
    const moves = [{ uci: "e2e4", san: "e4", weight: 3, learn: 0, probability: 100 }];
    const routes = {
      "**/about": async (route) => route.fulfill({ json: { ...(await (await route.fetch()).json()), books: ["performance"] } }),
      "**/book*": (route) => route.fulfill({ json: { books: [{ name: "performance", moves }] } }),
    };
    const { page, context, faults } = await open(browser, url, "/", { routes });
    const heading = page.locator("#moves .head .extra");
    assert.equal(await heading.locator("button").textContent(), "performance");
    const [shown, needed] = await heading.evaluate((cell) => [cell.clientWidth, cell.scrollWidth]);
    assert.ok(needed <= shown, `the name needs ${needed} of ${shown}`);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the address in the name of an event is short, and a link in the game"() {
    const address = "https://lichess.org/tournament/winter-marathon-2024";
    const answer = (change) => async (route) => route.fulfill({ json: change(await (await route.fetch()).json()) });
    const routes = {
      "**/games?*": answer(({ games, ...rest }) => ({ ...rest, games: games.map((game) => ({ ...game, event: address })) })),
      "**/game/*": answer((game) => ({ ...game, event: `Rated blitz ${address}` })),
    };
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul", { routes });
    await followed(page);
    assert.equal(await page.locator("#games .event span").first().textContent(), "lichess.org/…hon-2024");
    await page.locator("#games .game").first().click();
    const link = page.locator("#heading p a");
    await link.waitFor();
    assert.equal(await link.getAttribute("href"), address);
    assert.match(await link.textContent(), /^Rated blitz lichess\.org\/…hon-2024$/);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a part of a bar lists the games with its result, and the numbers stay"() {
    const player = "/?player=Morphy,+Paul&color=white";
    const { page, context, faults } = await open(browser, url, player);
    await followed(page);
    const bar = page.locator('#moves [data-uci="e2e4"] .bar .loss');
    const numbers = await page.locator("#moves .count").allTextContents();
    await page.locator("#heading .bar button.win").click();
    await addressed(page, "list=win");
    await followed(page);
    assert.deepEqual(await page.locator("#moves .count").allTextContents(), numbers);
    const { wins } = await api("/player?player=Morphy,+Paul&color=white");
    // A bar leaves out a section that would be narrower than its edges.
    const sections = (unfinished) => page.evaluate(async (open) => (await import("/bars.js")).bar({ white: 600, draws: 200 + open, black: 200, unfinished: open }, false).children.length, unfinished);
    assert.deepEqual([await sections(100), await sections(1)], [4, 3]);
    assert.equal(await total(page), wins);
    assert.equal(await page.locator("#games li:not(.win)").count(), 0);
    assert.match(await head(page).textContent(), new RegExp(`^GamesWon · ${wins}`));
    // The chip ends it, and keeps the focus in the heading of the list.
    await page.focus("#games-head .one-result");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !location.search.includes("list="));
    await followed(page);
    assert.equal(await head(page).locator("[aria-checked=true]").first().textContent(), "All");
    // The small bars play the move first. Keys choose the result in the heading of the list.
    const draws = page.locator('#moves [data-uci="e2e4"] .bar .target').first();
    await draws.click();
    await addressed(page, "play=e2e4");
    assert.match(page.url(), /list=(win|draw|loss)/);
    assert.equal(await bar.count(), 0);
    await page.goto(new URL("/", url).href);
    await followed(page);
    await head(page).locator("[role=radio]").first().focus();
    await page.keyboard.press("ArrowRight");
    await addressed(page, "list=1-0");
    await followed(page);
    assert.equal(await page.locator("#games li:not(.white)").count(), 0);
    assert.equal(await total(page), (await api("/games?result=1-0&duplicates=once")).total);
    // A filter by result leaves nothing to choose.
    await page.goto(new URL("/?result=1-0", url).href);
    await followed(page);
    assert.equal(await head(page).locator("[role=radiogroup]").count(), 1);
    assert.equal(await page.locator("#results button").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the columns of the moves sort"() {
    const { page, context, faults } = await open(browser, url, "/");
    const { moves } = await api("/lichess");
    const order = () => page.locator("#moves [data-uci]").evaluateAll((rows) => rows.map((row) => row.dataset.uci));
    const before = await order();
    const heading = (name) => page.locator("#moves [role=columnheader]", { hasText: name });
    const score = ({ white, draws, black }) => (white + draws / 2) / (white + draws + black);
    const shown = moves.filter(({ uci }) => before.includes(uci));
    await heading("White / draw").getByRole("button").click();
    assert.equal(await heading("White / draw").getAttribute("aria-sort"), "descending");
    assert.deepEqual((await order()).map((uci) => score(shown.find((one) => one.uci === uci))), shown.map(score).sort((a, b) => b - a));
    // The headings are one tab stop; the arrow keys move between them.
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    assert.deepEqual(await order(), before);
    assert.equal(await heading("Games").getAttribute("aria-sort"), "descending");
    assert.equal(await page.locator("#moves .head button[tabindex='0']").count(), 1);
    await heading("Move").getByRole("button").click();
    const sans = await page.locator("#moves .body .san").allTextContents();
    assert.deepEqual(sans, [...sans].sort());
    await page.keyboard.press("Enter");
    assert.deepEqual(await page.locator("#moves .body .san").allTextContents(), sans.reverse());
    assert.equal(new URL(page.url()).search, "");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "on a phone, an opened game is shown, and closing it returns to its place in the list"() {
    for (const closes of ["#close-game", "back"]) {
      const { page, context, faults } = await open(browser, url, "/", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
      await followed(page);
      const game = page.locator("#games .game").nth(9);
      const id = await game.getAttribute("data-game");
      await game.scrollIntoViewIfNeeded();
      const before = await page.evaluate(() => scrollY);
      assert.ok(before > 500, `${before}`);
      await game.click();
      await page.waitForSelector("#game-moves:not([hidden])");
      await followed(page);
      assert.equal(await page.evaluate(() => scrollY), 0);
      const { y } = await page.locator("#heading").boundingBox();
      assert.ok(y > 0 && y < 844, `the heading of the game is at ${y}`);
      // The labelled way back stays in sight.
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      const close = await page.locator("#close-game").boundingBox();
      assert.ok(close.y > 0 && close.y + close.height <= 844 - 65, `the way back is at ${close.y}`);
      assert.equal(await page.locator("#close-game").innerText(), "Back to the games");
      // It covers no line in part, and nothing at the end of the page.
      assert.deepEqual([close.x, close.width], [0, 390]);
      const end = await page.locator("#side").boundingBox();
      assert.ok(end.y + end.height <= close.y, `the page ends at ${end.y + end.height}, below ${close.y}`);
      assert.deepEqual([close.x, close.width], [0, 390], "it covers no line in part");
      await page.evaluate(() => scrollTo(0, 0));
      // The list is that of the position in which the game was opened, although the board went on.
      await page.click("#dock [data-act=forward]");
      await page.waitForFunction(() => new URLSearchParams(location.search).get("play"));
      await followed(page);
      if (closes === "back") await page.goBack();
      else await page.click(closes);
      await page.waitForSelector("#game-moves", { state: "hidden" });
      await followed(page);
      await reaches(page, "");
      assert.equal(await page.evaluate(() => scrollY), before, closes);
      assert.equal(await page.evaluate(() => document.activeElement.dataset.game), id, closes);
      assert.equal(await page.locator("#games .closed").getAttribute("data-game"), id, closes);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "in a low window, the button that closes a game is small and covers nothing"() {
    const { page, context, faults } = await open(browser, url, "/?game=8qnGOgRl", { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });
    await followed(page);
    const boxes = await page.locator("#heading .actions > *").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ bottom, width }) => [bottom, width]));
    const { y } = await page.locator("#dock").boundingBox();
    assert.equal(boxes.at(-1)[1], 44);
    assert.ok(boxes.every(([bottom]) => bottom <= y), `${boxes} above ${y}`);
    await page.getByRole("button", { name: "Close the game" }).tap();
    await page.waitForSelector("#game-moves", { state: "hidden" });
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a game past the last shared position keeps that position's table, and a button leads there"() {
    const play = "d2d4,g8f6,g1f3,g7g6";
    for (const viewport of [{ width: 1440, height: 900 }, { width: 900, height: 700 }]) {
      const { page, context, faults } = await open(browser, url, `/?game=8qnGOgRl&play=${play},c1f4,f8g7`, { viewport });
      await followed(page);
      const shared = await api(`/lichess?play=${play}`);
      const games = shared.white + shared.draws + shared.black;
      const table = () => page.locator("#moves [data-uci]").evaluateAll((rows) => rows.map((row) => row.dataset.uci));
      assert.match(await page.locator("#others").textContent(), new RegExp(`^Last shared with ${games - 1} games`));
      assert.deepEqual(await table(), shared.moves.map(({ uci }) => uci));
      assert.equal(await page.locator("#games .game").count() > 1, true);
      const { height } = await page.locator("#others").boundingBox();
      // There is one scroller in the column, and nothing scrolls within it.
      const scrollers = await page.locator("#panel, #panel *").evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(one).overflowY)).map(({ id }) => id));
      if (viewport.width < 1180) assert.deepEqual(scrollers, ["panel"]);
      await page.keyboard.press("ArrowRight");
      await reaches(page, `${play},c1f4,f8g7,e2e3`);
      assert.deepEqual(await table(), shared.moves.map(({ uci }) => uci));
      // A row plays its move in its own position.
      await page.locator("#others button").click();
      await reaches(page, play);
      assert.match(await page.locator("#others").textContent(), /other games? reached this position/);
      assert.equal((await page.locator("#others").boundingBox()).height, height);
      await page.keyboard.press("ArrowRight");
      await reaches(page, `${play},c1f4`);
      await page.locator('#moves [data-uci="h2h3"] button').click();
      await reaches(page, `${play},h2h3`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a link opens the position in Lichess's analysis"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4&flip=1");
    const link = page.locator(".controls .analysis");
    assert.equal(await link.getAttribute("href"), "https://lichess.org/analysis/standard/rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR_b_KQkq_-_0_1?color=black");
    assert.equal(await link.getAttribute("rel"), "noreferrer");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "g goes to the games, also from the trends"() {
    const { page, context, faults } = await open(browser, url, "/?view=trends", { viewport: { width: 1280, height: 700 } });
    await followed(page);
    assert.equal(await page.locator("#games:visible").count(), 0);
    await page.keyboard.press("g");
    await page.waitForFunction(() => document.activeElement.matches("#games .game"));
    const { y } = await head(page).boundingBox();
    assert.ok(y < 350, `the list is at ${y}`);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "further filters are offered as long as there is room"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul", { viewport: { width: 1440, height: 900 } });
    const offers = () => page.locator("#chips .offer").allTextContents();
    assert.deepEqual(await offers(), ["Years", "Rating", "Event", "Opening", "Result"]);
    await page.setViewportSize({ width: 900, height: 700 });
    await page.goto(new URL("/?player=Morphy,+Paul&color=white&since=1850&until=1900&ratings=unknown", url).href);
    await settled(page);
    assert.deepEqual(await offers(), ["Filter"]);
    // Games without a rating are not a range of ratings.
    for (const [ratings, words] of [["unknown", "rating not known"], ["0", "rated under 1000"], ["0,unknown", "rated under 1000, or rating not known"]]) {
      await page.goto(new URL(`/?ratings=${ratings}`, url).href);
      await settled(page);
      assert.equal(await page.locator("#chips .chip").first().textContent(), words);
    }
    // Several variants are offered.
    await page.goto(new URL("/?variant=atomic", url).href);
    await settled(page);
    assert.ok(!(await offers()).includes("Variant"));
    const other = await open(browser, variants, "/");
    await other.page.locator("#chips .offer", { hasText: "Variant" }).click();
    await other.page.waitForFunction(() => document.activeElement.matches("#filters select"));
    assert.deepEqual([...faults, ...other.faults], []);
    await context.close();
    await other.context.close();
  },

  async "a position offers the games with its pawns and with its material"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3,b8c6", { viewport: { width: 1440, height: 900 } });
    const games = ({ white, draws, black }) => white + draws + black;
    const here = games(await api("/lichess?play=e2e4,e7e5,g1f3,b8c6"));
    for (const [offer, query, words] of [
      ["These pawns", "board[8/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/8] and P = 8 and p = 8", "these pawns"],
      ["This material", "material[KQRRBBNNPPPPPPPPvKQRRBBNNPPPPPPPP]", "material KQRRBBNNPPPPPPPP v KQRRBBNNPPPPPPPP"],
    ]) {
      await page.locator("#chips .offer", { hasText: offer }).click();
      await page.waitForFunction(() => new URL(location.href).searchParams.has("position"));
      await settled(page);
      const { searchParams } = new URL(page.url());
      assert.deepEqual([searchParams.get("position"), searchParams.get("play")], [query, null]);
      assert.equal(await page.locator("#chips .chip").first().textContent(), words);
      // Other moves lead to the same pawns, too.
      const found = games(await api(`/lichess?position=${encodeURIComponent(query)}`));
      assert.ok(found > here, `${found} of ${here}`);
      await page.click(`#chips [aria-label='Remove the filter ${words}']`);
      await page.waitForFunction(() => !new URL(location.href).searchParams.has("position"));
      assert.equal(await page.locator("#chips .offer", { hasText: offer }).count(), 0);
      await page.goBack();
      await page.goBack();
      await settled(page);
    }
    // The dialog contains them, too, and keeps a query that was chosen before.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(new URL("/?play=e2e4&position=mate", url).href);
    await settled(page);
    await page.locator("[data-act=filters]:visible").first().click();
    const field = page.locator("#filters [data-field=position]");
    const query = field.locator("input");
    assert.equal(await query.inputValue(), "mate");
    assert.deepEqual(await field.locator("button").allTextContents(), ["These pawns", "This material"]);
    // The server says in which column a query is wrong. Until it is mended, it cannot be applied.
    await query.fill("mate and )");
    await query.press("Tab");
    await field.locator(".note", { hasText: /^Column 10: expected / }).waitFor();
    assert.equal(await query.getAttribute("aria-invalid"), "true");
    assert.ok(await page.locator("#filters .main").isDisabled());
    assert.match(faults.splice(0).join(), /^Failed to load resource: [^,]*400/);
    await field.getByText("These pawns").click();
    assert.match(await query.inputValue(), /^board\[/);
    assert.equal(await query.getAttribute("aria-invalid"), "false");
    await page.locator("#filters .main").click();
    await page.waitForFunction(() => new URL(location.href).searchParams.get("position")?.startsWith("board"));
    await settled(page);
    assert.equal(new URL(page.url()).searchParams.get("play"), null);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "numbers that differ by a few say why"() {
    const { page, context, faults } = await open(browser, url, "/");
    await followed(page);
    const listed = (await api("/games?duplicates=once")).total;
    const { white, draws, black } = await api("/lichess");
    assert.notEqual(listed, white + draws + black);
    assert.match(await page.locator("#games .foot").textContent(), new RegExp(`The table of moves has ${white + draws + black} games. It counts duplicates, and leaves out games that end here`));
    await reaches(page, "");
    // The list of games with one result behaves in the same way.
    const won = (await api("/games?result=1-0&duplicates=once")).total;
    assert.notEqual(won, white);
    await page.goto(new URL("/?list=1-0", url).href);
    await followed(page);
    assert.match(await page.locator("#games .foot").textContent(), new RegExp(`of ${won} .*The bar has ${white} games\\. It counts duplicates`));
    assert.equal(await page.locator("#games-head > small").textContent(), `of ${white} with duplicates`);
    // If a game is open, the counts do not say how many games the player won. In this case, too, the heading of the list names its result.
    await page.goto(new URL("/?player=Morphy,+Paul&color=white&list=win", url).href);
    await followed(page);
    await page.locator("#games .game").first().click();
    await page.waitForSelector("#game-moves:not([hidden])");
    await followed(page);
    assert.doesNotMatch(await page.locator("#games .foot").textContent(), /The bar has/);
    assert.match(await page.locator("#games-head .one-result").textContent(), /^Won · \d+$/);
    // The first page of the list does not know all duplicates.
    await page.route("**/games?*", async (route) => {
      const response = await route.fetch();
      const list = await response.json();
      list.games[0].copies = 3;
      await route.fulfill({ response, json: list });
    });
    await page.goto(new URL("/", url).href);
    await followed(page);
    assert.match(await page.locator("#games .foot").textContent(), new RegExp(`^20 of ${listed} · 3 duplicates of these hidden`));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "undone moves that no game has after a filter are forgotten"() {
    const { page, context, faults } = await open(browser, url, "/?play=c2c4,e7e5");
    const known = () => page.locator("#line button:not([aria-current])").count();
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "c2c4");
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "");
    const before = await known();
    for (const [filter, kept] of [["since=1800", before], ["player=Morphy,+Paul&color=white", 0]]) {
      await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), `/?${filter}`);
      await followed(page);
      assert.equal(await known(), kept, filter);
    }
    assert.ok(before >= 2);
    assert.deepEqual(faults, []);
    await context.close();
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
