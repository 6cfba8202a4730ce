// Uses the names of the user and the view of a preparation: node prepare.mjs URL
// The server has 500 games of Ann, Anna B., Carl, Carlo and Dora. It was started with --me Ann and a repertoire for Black.

import assert from "node:assert/strict";

import { accessible, addressed, followed, launch, open, reaches, run, settled } from "./browser.mjs";

const [url] = process.argv.slice(2);
const browser = await launch();

const api = async (path) => (await fetch(new URL(path, url), { headers: { accept: "application/json" } })).json();
const search = (page) => new URL(page.url()).searchParams;
const texts = (page, selector) => page.locator(selector).allTextContents();

const tests = {
  async "a player without a color is shown with the color of more games"() {
    const { colors } = await api("/facets?player=Carl&since=2012&until=2015");
    const more = colors.black > colors.white ? "black" : "white";
    const { page, context, faults } = await open(browser, url, "/?player=Carl&since=2012&until=2015");
    assert.equal(search(page).get("color"), more);
    assert.deepEqual(await texts(page, "#heading [role=radio]"), [`White ${colors.white}`, `Black ${colors.black}`]);
    assert.equal(await page.locator("#moves .head .san").first().textContent(), more === "white" ? "MoveMove" : "ReplyReply");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "an opponent's moves next to the results and the answers of the user"() {
    const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white");
    await page.click("#heading >> text=Prepare");
    await addressed(page, "view=prepare");
    assert.deepEqual(search(page).getAll("me"), ["Ann"]);
    const expected = await api("/prepare?player=Carl&color=white&me=Ann&repertoire=mine&lines=7");
    const shown = await texts(page, "#moves .body [data-uci] .san button");
    assert.ok(shown.length >= 4);
    assert.deepEqual(shown, expected.moves.slice(0, shown.length).map(({ san }) => san));
    const answers = expected.moves.map(({ answer }) => (answer ? `…${answer.san}` : "Gap"));
    assert.deepEqual(await texts(page, "#moves .body .act"), answers.slice(0, shown.length));
    assert.equal(expected.moves.find(({ san }) => san === "e4").answer.source, "repertoire");
    const [first] = expected.moves;
    assert.match(await page.locator("#moves .his").nth(1).innerText(), new RegExp(`^${first.theirs.games}\\s+\\d+%\\s+${first.theirs.recent} since ${expected.recentSince}$`));
    assert.match(await page.locator("#moves .mine").nth(1).innerText(), new RegExp(`\\s${first.yours.games} games?$`));
    assert.equal(await page.locator("#tally").textContent(), `${expected.here.theirs} games of Carl, ${expected.here.yours} of yours`);
    // The board shows the side of the user below, and the list of games makes room for the lines.
    assert.equal(await page.locator("#strip-bottom b").textContent(), "You");
    assert.equal(await page.locator("#side").isVisible(), false);
    const lines = page.locator("#moves .look li");
    assert.equal(await lines.count(), expected.lines.length);
    assert.ok(expected.lines.length > 2);
    assert.equal(await lines.filter({ hasText: "No answer yet" }).count(), expected.lines.filter(({ gap }) => gap).length);
    await accessible(page, "a preparation");
    await lines.nth(0).locator("button").click();
    await reaches(page, expected.lines[0].play.join(","));
    assert.equal(await page.locator("#moves .head .san").textContent(), "You play");
    await page.goBack();
    await reaches(page, "");
    // A move leads to the games of the position, the opponent's and the user's.
    await page.locator("#moves .body .san button").first().click();
    await reaches(page, first.uci);
    await followed(page);
    assert.deepEqual(await texts(page, "#games-head [aria-label='Whose games'] button"), [`Theirs ${first.theirs.games}`, `Yours ${first.yours.games}`]);
    await page.click("#games-head >> text=Yours");
    await followed(page);
    const names = await texts(page, "#games .names");
    assert.ok(names.length && names.every((both) => both.includes("Ann")), String(names));
    // The other color, and the end of the preparation.
    await page.click("text=as White");
    await addressed(page, "color=black");
    await page.click("[aria-label='End the preparation']");
    await settled(page);
    assert.equal(search(page).get("view"), null);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the names of the user are added, kept in the browser, and forgotten"() {
    const { page, context, faults } = await open(browser, url, "/");
    await page.keyboard.press("m");
    assert.deepEqual(await texts(page, "#me .names li > span"), ["Ann"]);
    const input = page.locator("#me input");
    // Two names that played against each other are two players.
    const together = (other) => api(`/games?player=Ann&opponent=${other}&limit=0`);
    assert.ok((await together("Dora")).total > 0);
    await input.fill("Dora");
    await page.locator("#me [role=option]").first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator("#me .wrong:has-text('against each other')").waitFor();
    const friend = (await together("Carl")).total ? "Carlo" : "Carl";
    if (!(await together(friend)).total) {
      await input.fill(friend);
      await page.locator("#me [role=option]").first().waitFor();
      await page.keyboard.press("Enter");
      await page.locator(`#me .names li:has-text("${friend}")`).waitFor();
    }
    await accessible(page, "the names of the user");
    const mine = await page.evaluate(() => JSON.parse(localStorage.getItem("polybook.me") ?? '["Ann"]'));
    await page.locator("#me .bottom .main").click();
    await addressed(page, "player=");
    assert.deepEqual(search(page).getAll("player"), mine);
    assert.equal(await page.locator("#chips .chip.me").textContent(), "Me");
    assert.match(await page.locator("#moves .head .san").textContent(), /^(You|They) play/);
    await page.reload();
    await settled(page);
    assert.equal(await page.locator("#chips .chip.me").textContent(), "Me");
    await page.keyboard.press("m");
    await page.click("text=Forget me");
    assert.equal(await page.evaluate(() => localStorage.getItem("polybook.me")), "[]");
    await page.keyboard.press("Escape");
    await page.reload();
    await settled(page);
    assert.equal(await page.locator("#chips .chip.me").count(), 0);
    assert.ok(await page.locator("text=This is me").isVisible());
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a preparation fits a phone"() {
    for (const width of [320, 390]) {
      const { page, context, faults } = await open(browser, url, "/?player=Carl&color=black&view=prepare&me=Ann", { viewport: { width, height: 844 }, hasTouch: true, isMobile: true });
      await accessible(page, `${width}`);
      assert.ok(await page.locator("#moves .body .act .tag").first().isVisible());
      assert.deepEqual(faults, []);
      await context.close();
    }
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
