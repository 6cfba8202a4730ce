// Uses the names of the user and the view of a preparation: node prepare.mjs URL
// The server has 500 games of Ann, Anna B., Carl, Carlo and Dora. It was started with --me Ann and a repertoire for Black.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { accessible, addressed, followed, launch, open, reaches, run, settled } from "./browser.mjs";

const [url] = process.argv.slice(2);
const browser = await launch();

const api = async (path) => (await fetch(new URL(path, url), { headers: { accept: "application/json" } })).json();
const search = (page) => new URL(page.url()).searchParams;
const texts = (page, selector) => page.locator(selector).allTextContents();
const stored = (page) => page.evaluate(() => localStorage.getItem("polybook.me"));
/** Opens a path in a browser that stores a text as the names of the user. */
async function openWith(text, path) {
  const all = await open(browser, url, "/");
  await all.page.evaluate((text) => localStorage.setItem("polybook.me", text), text);
  await all.page.goto(new URL(path, url).href);
  await settled(all.page);
  return all;
}
/** Fills the storage of the browser. */
const fillStorage = (page) =>
  page.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
    };
  });

const tests = {
  async "a player's further spelling is added after a slash"() {
    const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white");
    await page.keyboard.press("Shift+F");
    const input = page.locator("#filters input[name=player]");
    await input.click();
    await page.keyboard.press("End");
    await page.keyboard.type(" / carlo");
    await page.waitForSelector("#filters [role=option]");
    await page.keyboard.press("Enter");
    // If the suggestions for the whole name have not arrived, Enter waits for them.
    const completed = () => page.waitForFunction(() => document.querySelector("#filters input[name=player]").value === "Carl / Carlo");
    await completed();
    // A slash without a name sends no request.
    const asked = [];
    page.on("request", (request) => request.url().includes("/suggest") && asked.push(request.url()));
    await page.keyboard.press("End");
    await page.keyboard.type(" /");
    await page.keyboard.press("Tab");
    assert.equal(await input.inputValue(), "Carl / Carlo");
    assert.deepEqual(asked, []);
    await page.locator("#filters button.main").click();
    await addressed(page, "player=Carlo");
    assert.deepEqual(search(page).getAll("player"), ["Carl", "Carlo"]);
    // A button next to the name opens the field for a further name, also in a preparation.
    for (const path of ["", "&view=prepare&me=Ann"]) {
      await page.goto(new URL(`/?player=Carl&color=white${path}`, url).href);
      await settled(page);
      await page.getByRole("button", { name: "Add a name" }).click();
      await page.keyboard.type("carlo");
      await page.waitForSelector("#filters [role=option]");
      await page.keyboard.press("Enter");
      await completed();
      await page.locator("#filters button.main").click();
      await addressed(page, "player=Carlo");
      assert.equal(await page.locator("[data-focus=further-name]").getAttribute("aria-label"), "2 names");
    }
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the user's games begin at the start, and a player who is searched next is the opponent"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4");
    await page.keyboard.press("m");
    await page.locator("dialog[open] button", { hasText: /^Show my/ }).click();
    await addressed(page, "player=Ann");
    assert.equal(search(page).get("play"), null);
    const color = search(page).get("color");
    await page.keyboard.press("/");
    await page.keyboard.type("carl");
    await page.waitForSelector("#search [role=option]");
    await page.keyboard.press("Enter");
    await addressed(page, "player=Carl");
    assert.deepEqual([color, search(page).get("color")].sort(), ["black", "white"]);
    assert.deepEqual(faults, []);
    await context.close();
  },

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

  async "an opponent is shown with the color against which the repertoire is, if there are games"() {
    for (const [years, color] of [["since=2015", "white"], ["since=2011&until=2011", "black"]]) {
      const { colors } = await api(`/facets?player=Dora&${years}`);
      assert.ok(colors.black > colors.white);
      const { page, context, faults } = await open(browser, url, `/?player=Dora&${years}`);
      assert.equal(search(page).get("color"), color);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a preparation can be read in a narrow window"() {
    for (const viewport of [{ width: 320, height: 640 }, { width: 390, height: 844 }]) {
      const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white&view=prepare&me=Ann", { viewport, hasTouch: true, isMobile: true });
      await page.waitForSelector("#moves .body [data-uci]");
      const narrow = await page.locator("#moves .prep .body .name").evaluateAll((all) => all.filter((one) => one.textContent && one.clientWidth < 50).length);
      assert.equal(narrow, 0, `${viewport.width}: names of openings`);
      const [heads, cut] = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll("#moves .prep .head [role=columnheader]")].map((one) => one.getBoundingClientRect()).filter(({ width }) => width);
        const family = document.querySelector("#heading .family");
        return [boxes.map(({ left, right }) => [left, right]), family.scrollWidth - family.clientWidth];
      });
      for (const [index, [left]] of heads.entries()) assert.ok(!index || left >= heads[index - 1][1], `${viewport.width}: ${heads}`);
      assert.ok(heads[0][1] - heads[0][0] > 40 && cut <= 0, `${viewport.width}: ${heads[0]}, ${cut}`);
      await accessible(page, `a preparation in ${viewport.width}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
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
    const answers = expected.moves.map(({ answer, gap, yours }) => (answer ? `…${answer.san}${answer.source === "games" ? " usual" : ""}${gap ? "Gap" : ""}` : gap ? "Gap" : yours.games ? "no usual answer" : "no answer"));
    assert.deepEqual(await texts(page, "#moves .body .act"), answers.slice(0, shown.length));
    // The longest text of an answer fits into its column.
    const wide = page.viewportSize();
    for (const width of [1440, 1000, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await page.locator("#moves .body .act").first().evaluate((cell) => (cell.innerHTML = "<small>no usual answer</small>"));
      assert.ok(await page.getByText("Add a name").isVisible(), `${width}`);
      const [cut] = await page.locator("#moves .card").evaluateAll(([table]) => [table.scrollWidth - table.clientWidth]);
      assert.ok(cut <= 0, `${width}: ${cut} pixels are cut off`);
    }
    await page.setViewportSize(wide);
    assert.equal(expected.moves.find(({ san }) => san === "e4").answer.source, "repertoire");
    const [first] = expected.moves;
    assert.match(await page.locator("#moves .his").nth(1).innerText(), new RegExp(`^${first.theirs.games}\\s+\\d+%\\s+${first.theirs.recent} since ${expected.recentSince}$`));
    assert.match(await page.locator("#moves .mine").nth(1).innerText(), new RegExp(`\\s${first.yours.games} games?$`));
    assert.equal(await page.locator("#tally").textContent(), `${expected.here.theirs} games of Carl, ${expected.here.yours} of yours, without duplicates`);
    // The board shows the side of the user below, and the list of games makes room for the lines.
    assert.equal(await page.locator("#strip-bottom b").textContent(), "You");
    assert.equal(await page.locator("#side").isVisible(), false);
    const lines = page.locator("#moves .look ul").first().locator("li");
    assert.equal(await lines.count(), expected.lines.length);
    assert.ok(expected.lines.length > 2);
    assert.equal(await lines.locator(".gap").count(), expected.lines.filter(({ gap, answer }) => gap || !answer).length);
    // Each line shows the games of the opponent as evidence.
    const evidence = [...expected.lines, ...expected.lineEnds].map(({ opening, theirs }) => `${opening ? `${opening.name} · ` : ""}${theirs.games} game${theirs.games === 1 ? "" : "s"} of theirs, ${theirs.recent} since ${expected.recentSince}`);
    assert.deepEqual(await texts(page, "#moves .look li button > span:first-child small"), evidence);
    await accessible(page, "a preparation");
    // The lines are downloaded as PGN, with the answers of the repertoire.
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#moves .look >> text=Download PGN")]);
    assert.equal(download.suggestedFilename(), "prepare-carl.pgn");
    const file = await fetch(new URL("/prepare?player=Carl&color=white&me=Ann&repertoire=mine&lines=7", url), { headers: { accept: "application/x-chess-pgn" } });
    assert.equal(readFileSync(await download.path(), "utf8"), await file.text());
    await lines.nth(0).locator("button").click();
    await reaches(page, expected.lines[0].play.join(","));
    assert.equal(await page.locator("#moves .head .san").textContent(), "You play");
    assert.match(await page.locator("#moves .body .his").first().innerText(), /\sscore \d+%$/);
    // Only the starting position has lines, and a button leads there.
    await page.click("#moves >> text=Lines to look at first");
    await reaches(page, "");
    assert.equal(await lines.count(), expected.lines.length);
    // A move leads to the games of the position, the opponent's and the user's.
    await page.locator("#moves .body .san button").first().click();
    await reaches(page, first.uci);
    await followed(page);
    assert.deepEqual(await texts(page, "#games-head [aria-label='Whose games'] button"), [`Theirs ${first.theirs.games}`, `Yours ${first.yours.games}`]);
    // The results of the opponent's games are in the colors of White and Black, because green means that the user won.
    const colors = () => page.locator("#games li").evaluateAll((items) => [...new Set(items.map((item) => item.className))]);
    assert.ok((await colors()).every((color) => ["white", "draw", "black", "open"].includes(color)), `${await colors()}`);
    await page.click("#games-head >> text=Yours");
    await followed(page);
    assert.ok((await colors()).every((color) => ["win", "even", "loss", "open"].includes(color)), `${await colors()}`);
    const names = await texts(page, "#games .names");
    assert.ok(names.length && names.every((both) => both.includes("Ann")), String(names));
    // A preparation counts duplicates once, and the dialog of the filters says so.
    await page.keyboard.press("Shift+F");
    const once = page.locator("#filters [aria-labelledby=duplicates-label]");
    assert.equal(await once.getAttribute("aria-checked"), "true");
    assert.ok(await once.isDisabled());
    const { games } = await api("/facets?player=Carl&color=white&duplicates=once");
    await page.waitForFunction((wanted) => document.querySelector("#filters .bottom .main").textContent.startsWith(`Show ${wanted} games`), games);
    await accessible(page, "the filters of a preparation");
    await page.keyboard.press("Escape");
    // The other color, and the end of the preparation.
    await page.click("text=as White");
    await addressed(page, "color=black");
    await page.click("[aria-label='End the preparation']");
    await settled(page);
    assert.equal(search(page).get("view"), null);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "with the keyboard alone, the focus stays in the preparation"() {
    const { page, context, faults } = await open(browser, url, "/");
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.focus);
    await page.keyboard.press("/");
    await page.keyboard.type("carl");
    await page.locator("#search [role=option]").first().waitFor();
    await page.keyboard.press("Enter");
    await addressed(page, "player=");
    assert.equal(await focused(), "moves");
    assert.notEqual(await page.locator("#moves").evaluate((moves) => getComputedStyle(moves).outlineStyle), "none");
    await page.locator("#heading [data-focus=mine]").focus();
    for (const [key, text] of [["Enter", "view=prepare"], ["ArrowDown", ""], ["Enter", "play="]]) {
      await page.keyboard.press(key);
      await addressed(page, text);
      assert.equal(await focused(), text ? "moves" : await page.locator("#moves .san button").first().getAttribute("data-focus"), key);
    }
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the names of the user are added, kept in the browser, and forgotten"() {
    const { page, context, faults } = await open(browser, url, "/");
    await page.keyboard.press("m");
    assert.deepEqual(await texts(page, "#me .names li > span"), ["Ann"]);
    const input = page.locator("#me input");
    // Enter takes no similar name in place of a name that is in the list.
    await input.fill("ann");
    await page.locator("#me .message:has-text('Already in the list: Ann. Similar names:')").waitFor();
    assert.equal(await page.locator("#me [aria-selected=true]").count(), 0);
    await page.keyboard.press("Enter");
    await page.locator("#me .wrong:has-text('Already in the list: Ann.')").waitFor();
    assert.deepEqual(await texts(page, "#me .names li > span"), ["Ann"]);
    // Two names that played against each other are two players.
    const together = (other) => api(`/games?player=Ann&opponent=${other}&limit=0`);
    assert.ok((await together("Dora")).total > 0);
    await input.fill("Dora");
    await page.locator("#me [role=option]").first().waitFor();
    assert.match(await page.locator("#me [role=option]").first().textContent(), new RegExp(` · ${(await together("Dora")).total} games against you$`));
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
    await input.fill("");
    await page.locator("#me .bottom .main").click();
    await addressed(page, "player=");
    assert.deepEqual(search(page).getAll("player"), mine);
    assert.equal(await page.locator("#chips .chip.me").textContent(), "Me");
    assert.match(await page.locator("#moves .head .san").textContent(), /^(You|They) play/);
    await page.reload();
    await settled(page);
    assert.equal(await page.locator("#chips .chip.me").textContent(), "Me");
    // A name that was typed is added or refused by the button, too.
    await page.keyboard.press("m");
    await input.fill("Nobody");
    await page.locator("#me .bottom .main").click();
    await page.locator("#me .wrong:has-text('No player has the whole name “Nobody”')").waitFor();
    assert.equal(await input.inputValue(), "Nobody");
    // As if the two names had never met.
    await page.route("**/suggest?*with=*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: (await response.json()).map((one) => ({ ...one, met: 0 })) });
    });
    await input.fill("carlo");
    await page.locator("#me .bottom .main").click();
    await page.waitForFunction((wanted) => new URLSearchParams(location.search).getAll("player").join() === wanted, [...mine, "Carlo"].join());
    await page.keyboard.press("m");
    await page.click("text=Forget me");
    assert.equal(await page.evaluate(() => localStorage.getItem("polybook.me")), "[]");
    // The button is enabled as soon as a first name is typed.
    const show = page.locator("#me .bottom .main");
    assert.ok(await show.isDisabled());
    await page.keyboard.type("N");
    assert.ok(await show.isEnabled());
    await page.keyboard.press("Backspace");
    assert.ok(await show.isDisabled());
    await page.keyboard.press("Escape");
    await page.reload();
    await settled(page);
    assert.equal(await page.locator("#chips .chip.me").count(), 0);
    assert.ok(await page.locator("text=This is me").isVisible());
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "all suggested names are visible in the dialog"() {
    const names = ["Anna", "Annabel", "Anne", "Annette", "Annika", "Anni"].map((name) => ({ name, games: 5, distance: 0 }));
    for (const viewport of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const { page, context, faults } = await open(browser, url, "/", { viewport, routes: { "**/suggest?*": (route) => route.fulfill({ json: names }) } });
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press("m");
      await page.locator("#me input").fill("ann");
      await page.locator("#me [role=option]").last().waitFor();
      const seen = await page.locator("#me [role=option]").evaluateAll((all) => all.map((one) => {
        const { left, top, bottom } = one.getBoundingClientRect();
        return document.elementFromPoint(left + 20, (top + bottom) / 2)?.closest("[role=option]") === one;
      }));
      assert.deepEqual(seen, names.map(() => true));
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "no games of a player with several names are explained"() {
    for (const [names, title] of [["player=Ann&player=Nobody", "None of the "], ["player=Nobody&player=Noone", "No player is called “Nobody / Noone”"]]) {
      const { page, context, faults } = await open(browser, url, `/?${names}&color=white&play=a2a3,a7a6,h2h3,h7h6`);
      await page.locator("#moves .blank h3").waitFor();
      assert.ok((await page.locator("#moves .blank h3").textContent()).startsWith(title));
      await accessible(page, title);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "stored texts that are not lists of names are ignored"() {
    for (const text of ['"Tal"', "{}", "[1]", "5", "true", "[null]", '["Carl", " "]', "[", "null"]) {
      const { page, context, faults } = await openWith(text, "/?player=Ann&color=white");
      assert.equal(await page.locator("#heading [data-focus=mine]").textContent(), "me", text);
      assert.deepEqual(faults, [], text);
      await context.close();
    }
  },

  async "a player with several names becomes the user"() {
    const { page, context, faults } = await openWith("[]", "/?player=Ann&player=Dora&color=white");
    await page.click("text=This is me");
    await page.locator("#me .wrong:has-text('Dora and Ann played')").waitFor();
    assert.equal(await stored(page), '["Ann"]');
    await page.click("text=Forget me");
    await page.keyboard.press("Escape");
    const suggestions = "**/suggest?*";
    await page.route(suggestions, (route) => route.fulfill({ status: 200, body: "no list" }));
    await page.reload();
    await settled(page);
    await page.click("text=This is me");
    await page.locator("#me .wrong:has-text('does not answer')").waitFor();
    await page.unroute(suggestions);
    // Pretend that the names did not play against each other.
    await page.route("**/lichess?*opponent=*", (route) => route.fulfill({ json: { white: 0, draws: 0, black: 0 } }));
    await page.keyboard.press("Escape");
    await page.click("text=This is me");
    await page.locator("#chips .chip.me").waitFor();
    assert.equal(await stored(page), '["Ann","Dora"]');
    assert.equal(await page.locator("#me[open]").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a repertoire is completed in the games of an opponent"() {
    const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white");
    const { gaps } = (await api("/repertoire?player=Carl&color=white&repertoire=mine&side=black")).repertoires[0];
    const [gap] = gaps;
    const row = (uci) => page.locator(`#moves [data-uci="${uci}"]`);
    assert.equal(await page.locator("#moves .answers").count(), Math.min(gaps.length, await page.locator("#moves .row.gap").count()));
    await row(gap.uci).locator(".answers").click();
    await reaches(page, gap.uci);
    // The moves are those of the user, and the numbers are those of the opponent.
    assert.deepEqual(await texts(page, "#moves .head .results .long"), ["Carl’s results, %"]);
    assert.equal(await page.locator("#moves .head .score .no-sort").textContent(), "Carl’s score");
    const uci = await page.locator("#moves [data-uci]").first().getAttribute("data-uci");
    await accessible(page, "a repertoire and a player");
    await row(uci).locator(".san button").focus();
    await page.keyboard.press("a");
    await row(uci).locator(".added").click();
    await row(uci).locator(".adds").click();
    await row(uci).locator(".added").waitFor();
    assert.deepEqual(await page.evaluate(() => JSON.parse(localStorage.getItem("polybook.edits"))["mine black"].lines), [`${gap.uci},${uci}`]);
    await page.evaluate(() => localStorage.setItem("polybook.me", '["Carl"]'));
    // The repertoire for Black says nothing about the user's games as White.
    await page.reload();
    await settled(page);
    assert.equal(await page.locator("#repertoires .repertoire, #views >> text=Gaps").count(), 0);
    await page.goto(new URL(`/?player=Carl&color=black&play=${gap.uci}`, url).href);
    await settled(page);
    assert.deepEqual(await texts(page, "#moves .head .results .long"), ["Your results, %"]);
    await page.setViewportSize({ width: 320, height: 700 });
    await accessible(page, "a repertoire and a player on a phone");
    assert.ok(await row(uci).locator(".added").isVisible());
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "names are removed and forgotten although the storage is full"() {
    const { page, context, faults } = await openWith('["Ann","Carl"]', "/");
    await fillStorage(page);
    await page.keyboard.press("m");
    await page.click("[aria-label='Remove Carl']");
    await page.locator("#me .wrong:has-text('could not store')").waitFor();
    assert.deepEqual(await texts(page, "#me .names li > span"), ["Ann"]);
    await page.click("text=Forget me");
    await page.locator("#me .names").waitFor({ state: "detached" });
    // The server was started with a name, which the browser cannot hide after the next start of the page.
    assert.match(await page.locator("#me .wrong").textContent(), /could not store/);
    assert.equal(await stored(page), null);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a shared link names the person who prepares"() {
    const { page, context, faults } = await openWith("[]", "/?player=Carl&color=white&view=prepare&me=Ann");
    const { here } = await api("/prepare?player=Carl&color=white&me=Ann&repertoire=mine&lines=7");
    assert.equal(await page.locator("#tally").textContent(), `${here.theirs} games of Carl, ${here.yours} of Ann, without duplicates`);
    assert.ok((await texts(page, "#moves .look .yours")).some((text) => /^Ann scores \d+%/.test(text)));
    assert.equal(await page.locator("#chips .me").textContent(), "Ann");
    const unnamed = async () => assert.doesNotMatch(await page.locator("main").innerText(), /\b(you|yours?|me)\b/i);
    await unnamed();
    await page.click("#moves [data-uci=e2e4] .san button");
    await reaches(page, "e2e4");
    await followed(page);
    await unnamed();
    assert.match((await texts(page, "#games-head [aria-label='Whose games'] button"))[1], /^Ann’s \d/);
    // There is no preparation if no opponent is given.
    await page.click("text=Clear all");
    await settled(page);
    assert.equal(new URL(page.url()).search, "?play=e2e4");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the user's games are shown with the color of the repertoires"() {
    const { page, context, faults } = await open(browser, url, "/?player=Ann");
    assert.equal(search(page).get("color"), "black");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a position without games of the user leads to the opponent's games"() {
    const prepared = await api("/prepare?player=Carl&color=white&me=Ann");
    const routes = { "**/prepare?*": (route) => route.fulfill({ json: { ...prepared, moves: [], lines: undefined, here: { theirs: 1, yours: 0 } } }) };
    const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white&play=e2e4&view=prepare&me=Ann", { routes });
    assert.equal(await page.locator("#tally").textContent(), "1 game of Carl, 0 of yours, without duplicates");
    await page.click("text=Explore their 1 game here");
    await settled(page);
    assert.deepEqual([search(page).get("view"), search(page).get("play"), search(page).get("player")], [null, "e2e4", "Carl"]);
    assert.ok(await page.locator("#moves .adds").count());
    await page.unrouteAll({ behavior: "ignoreErrors" });
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a preparation that the server refuses keeps the rest of the view"() {
    const { page, context, faults } = await openWith(JSON.stringify(["A".repeat(9000)]), "/?player=Carl&color=white&play=e2e4");
    await page.click("#heading >> text=Prepare");
    await page.locator("#results .problem:has-text('The preparation cannot be shown: ')").waitFor();
    assert.equal(search(page).get("play"), "e2e4");
    assert.equal(await page.locator("#strip-bottom b").textContent(), "Carl");
    assert.ok((await page.locator("#moves .body [data-uci]").count()) > 1);
    assert.ok(faults.length && faults.every((fault) => fault.includes("431")), String(faults));
    await context.close();
  },

  async "blank names are no names, and the board is turned only for a preparation"() {
    for (const [text, path, below] of [
      ["[]", "me=%20&me=Ann%20", "Ann"],
      ['["Ann"]', "me=%20&me=Ann%20", "You"],
      ["[]", "me=%20", "Carl"],
      ["[]", "", "Carl"],
    ]) {
      const { page, context, faults } = await openWith(text, `/?player=Carl&player=+&color=white&view=prepare&${path}`);
      assert.deepEqual(search(page).getAll("player"), ["Carl"]);
      assert.equal(await page.locator("#strip-bottom b").textContent(), below, path);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a preparation uses the width of the window"() {
    for (const width of [1000, 1100, 1440, 1920]) {
      const { page, context, faults } = await open(browser, url, "/?player=Carl&color=black&view=prepare&me=Ann", { viewport: { width, height: 900 } });
      await followed(page);
      const box = (selector) => page.locator(selector).first().boundingBox();
      const [card, name, act] = await Promise.all([".prep", ".prep .body .name", ".prep .body .act"].map(box));
      assert.ok(name.width > 80, `${width}: a name has ${name.width}`);
      assert.ok(card.x + card.width - act.x < 110, `${width}: the answers are at ${act.x} of ${card.x + card.width}`);
      assert.ok(width - card.x - card.width < 40, `${width}: the table ends at ${card.x + card.width}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "the chips of a preparation are whole in a narrow window"() {
    const { page, context, faults } = await open(browser, url, "/?player=Carl&color=white&view=prepare&me=Ann", { viewport: { width: 900, height: 700 } });
    assert.equal(await page.locator("#tally").innerText(), (await page.locator("#tally").textContent()).replace(", without duplicates", ""));
    assert.ok(await page.locator("#chips").evaluate((chips) => chips.scrollWidth <= chips.clientWidth));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a preparation fits a phone"() {
    for (const width of [320, 390]) {
      const { page, context, faults } = await open(browser, url, "/?player=Carl&color=black&view=prepare&me=Ann", { viewport: { width, height: 844 }, hasTouch: true, isMobile: true });
      await accessible(page, `${width}`);
      assert.ok(await page.locator("#moves .body .act :is(.tag, small)").first().isVisible());
      assert.ok(await page.locator("#moves .body .act").evaluateAll((all) => all.every((one) => one.scrollWidth <= one.clientWidth)));
      assert.deepEqual(faults, []);
      await context.close();
    }
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
