// Uses the page like a user, in a real browser: node browse.mjs URL VARIANTS REPERTOIRES EVALUATED
// The server at URL has data/famous.pgn, data/selfplay.pgn and annotated.pgn, the one at VARIANTS has data/variants.pgn.
// The ones at REPERTOIRES and EVALUATED have data/famous.pgn or annotated.pgn, and what tests/page.rs writes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { accessible, addressed, boardIsVisible, drag, followed, launch, middle, open, reaches, run, settled } from "./browser.mjs";

const [url, variants, evaluated] = process.argv.slice(2);
const browser = await launch();
const GAME = "8qnGOgRl";

const api = async (path, base = url) => (await fetch(new URL(path, base), { headers: { accept: "application/json" } })).json();
const line = (page) => new URL(page.url()).searchParams.get("play") ?? "";
const all = ({ white, draws, black }) => white + draws + black;
const text = (page, selector) => page.locator(selector).first().textContent();
const tally = (page) => text(page, "#tally b");
const row = (page, uci) => page.locator(`#moves [data-uci="${uci}"]`);
const games = (count) => (count === 1 ? "1 game" : `${count.toLocaleString("en")} games`);
const historyLength = (page) => page.evaluate(() => history.length);

/** Types a text into the search, and accepts the first suggestion. */
async function search(page, words) {
  await page.keyboard.press("/");
  await page.keyboard.type(words);
  await page.waitForSelector("#search [role=option]");
  await page.keyboard.press("Enter");
}

/** Pastes a text into the search. */
async function paste(page, words) {
  await page.keyboard.press("/");
  await page.evaluate((pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, words);
  await settled(page);
}

/** Waits until the filters dialog shows the number of chosen games. */
async function counted(page, count) {
  await page.waitForFunction((wanted) => document.querySelector("#filters .bottom .main")?.textContent?.startsWith(`Show ${wanted}`), games(count));
}

const tests = {
  async "moves by drag, click, table and keys"() {
    const { page, context, faults } = await open(browser, url, "/");
    const start = await api("/lichess");
    assert.equal(await tally(page), (await api("/about")).games.toLocaleString("en"));
    assert.equal(await row(page, "e2e4").getByRole("button").getAttribute("aria-label"), `e4, ${games(all(start.moves[0]))}`);

    await drag(page, "e2", "e4");
    await reaches(page, "e2e4");
    assert.equal(await tally(page), all(await api("/lichess?play=e2e4")).toLocaleString("en"));

    await page.mouse.click(...(await middle(page, "e7")));
    await page.waitForSelector(".mark.go");
    await page.mouse.click(...(await middle(page, "e5")));
    await reaches(page, "e2e4,e7e5");

    await row(page, "g1f3").click();
    await reaches(page, "e2e4,e7e5,g1f3");
    assert.match(await text(page, "#heading h2"), /King's Knight/);

    for (const [key, play] of [["ArrowLeft", "e2e4,e7e5"], ["ArrowRight", "e2e4,e7e5,g1f3"], ["Home", ""], ["End", "e2e4,e7e5,g1f3"]]) {
      await page.keyboard.press(key);
      await reaches(page, play);
    }
    // After the end of the line, the most played move is played.
    const [most] = (await api("/lichess?play=e2e4,e7e5,g1f3")).moves;
    await page.keyboard.press("ArrowRight");
    await reaches(page, `e2e4,e7e5,g1f3,${most.uci}`);
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "e2e4,e7e5,g1f3");
    // Two quick presses are two steps.
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "e2e4");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const second = (await api("/lichess?play=e2e4")).moves[1];
    assert.equal(await page.evaluate(() => document.activeElement.textContent), second.san);
    await page.keyboard.press("Enter");
    await reaches(page, `e2e4,${second.uci}`);
    // If the move is illegal, the piece goes back.
    await drag(page, "e1", "e4");
    assert.equal(line(page), `e2e4,${second.uci}`);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "castling by the king's two steps, and a promotion"() {
    const castle = "/?fen=r3k2r/8/8/8/8/8/8/R3K2R_w_KQkq_-_0_1";
    const { page, context, faults } = await open(browser, url, castle);
    await drag(page, "e1", "g1");
    await reaches(page, "e1h1");
    assert.equal(await page.locator('.man[data-square="f1"]').count(), 1);
    await page.goto(new URL("/?fen=4k3/1P6/8/8/8/8/8/4K3_w_-_-_0_1", url).href);
    await settled(page);
    await drag(page, "b7", "b8");
    await page.click('.choice [aria-label="knight"]');
    await reaches(page, "b7b8n");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "twenty arrow keys add nothing to the history, games and filters do"() {
    const { page, context, faults } = await open(browser, url, `/?game=${GAME}`);
    const before = await historyLength(page);
    for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => location.search.split(",").length === 20);
    await settled(page);
    assert.equal(await historyLength(page), before);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !location.search.includes("game="));
    await settled(page);
    assert.equal(await historyLength(page), before + 1);
    await page.keyboard.press("Home");
    await reaches(page, "");
    await search(page, "morphy");
    await addressed(page, "player=Morphy, Paul");
    assert.equal(await historyLength(page), before + 2);
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes("player"));
    await page.goBack();
    await page.waitForSelector("#game-moves:not([hidden])");
    assert.equal(line(page).split(",").length, 20);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a player is found by any spelling, and shown from his side"() {
    const { page, context, faults } = await open(browser, url, "/");
    for (const typed of ["morphy", "Morphy, P", "Paul Morphy", "mrophy"]) {
      await search(page, typed);
      await addressed(page, "player=Morphy, Paul");
      await page.click("text=Clear all");
      await page.waitForFunction(() => !location.search);
      await settled(page);
    }
    await page.keyboard.press("/");
    await page.keyboard.type("mrophy");
    await page.waitForSelector("#search .message:has-text('Nothing is called “mrophy”. Did you mean')");
    await page.keyboard.press("Enter");
    await addressed(page, "player=Morphy, Paul");

    const both = await Promise.all(["white", "black"].map((color) => api(`/lichess?player=Morphy,+Paul&color=${color}`)));
    const [white, black] = both.map(all);
    const switches = page.locator("#heading [role=radio]");
    assert.deepEqual(await switches.allTextContents(), [`White ${white}`, `Black ${black}`]);
    assert.equal(await page.locator("#heading dd").first().textContent(), String(Math.max(white, black)));
    await switches.nth(1).click();
    await addressed(page, "color=black");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.value), "black", "the focus stays");
    // The board turns to the player's color, but stays as the user turned it.
    assert.equal(await text(page, "#strip-bottom b"), "Morphy, Paul");
    assert.ok(await page.locator("#strip-bottom .man-of.black").count());
    await page.keyboard.press("f");
    assert.ok(await page.locator("#strip-bottom .man-of.white").count());
    await switches.first().click();
    await addressed(page, "color=white");
    const won = both[0].white;
    assert.match(await page.locator("#heading .bar").getAttribute("title"), new RegExp(`^Win ${won}, `));
    assert.equal(await page.locator("#games .win").count() > 0, won > 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a name that nobody has says so, and offers those that are like it"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphi");
    await page.waitForSelector("#moves .blank h3");
    assert.match(await text(page, "#moves .blank h3"), /No player is called “Morphi”/);
    await page.waitForSelector("#games:not([aria-busy])");
    assert.equal(await text(page, "#games"), "There are no games to list.");
    await page.click("#moves .ways button");
    await addressed(page, "player=Morphy, Paul");
    assert.notEqual(await tally(page), "0");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "dates in many spellings are read, and never dropped in silence"() {
    const { page, context, faults } = await open(browser, url, "/");
    const field = page.locator("#filters [name=since]");
    for (const [typed, shown, since] of [["May 1985", "May 1985", "1985-05"], ["1985-05-03", "May 1985", "1985-05"], ["5/1985", "May 1985", "1985-05"], ["1985", "1985", "1985"]]) {
      await page.click("text=Years");
      await field.fill(typed);
      await page.keyboard.press("Tab");
      assert.equal(await field.inputValue(), shown);
      const count = all(await api(`/lichess?since=${since}`));
      await counted(page, count);
      await page.click("#filters .bottom .main");
      await addressed(page, `since=${since}`);
      assert.equal(await tally(page), count.toLocaleString("en"), typed);
      assert.equal(await text(page, "#chips .chip"), `since ${shown}`);
      await page.click("text=Clear all");
      await page.waitForFunction(() => !location.search);
      await settled(page);
    }
    await page.click("text=Years");
    await field.fill("1985-05-03");
    assert.match(await text(page, "#filters .years .note"), /Days are ignored: from May 1985/);
    await field.fill("2100");
    await page.fill("#filters [name=until]", "1985");
    assert.match(await text(page, "#filters .years .note"), /This is read as 1985 to 2100\. The last game was played in \d+, so games up to/);
    await page.fill("#filters [name=until]", "");
    assert.match(await text(page, "#filters .years .note"), /so only games without a date remain/);
    await field.fill("soon");
    assert.match(await text(page, "#filters .years .note"), /“soon” is not a date/);
    assert.ok(await page.locator("#filters .bottom .main").isDisabled());
    assert.equal(await field.inputValue(), "soon");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "what is chosen counts: a rating, a speed, an opening"() {
    const { page, context, faults } = await open(browser, url, "/");
    await page.keyboard.press("Shift+F");
    const best = page.locator("#filters .option[data-value='2500']");
    await page.waitForFunction(() => document.querySelector("#filters .option[data-value='2500'] small")?.textContent);
    await best.click();
    assert.equal(await best.getAttribute("aria-checked"), "true");
    const rated = all(await api("/lichess?ratings=2500"));
    assert.ok(rated > 0);
    await counted(page, rated);
    // A value without games cannot be chosen.
    assert.ok(await page.locator("#filters .option[data-value='1000']").isDisabled());
    await page.click("#filters .bottom .main");
    await addressed(page, "ratings=2500");
    assert.equal(await tally(page), String(rated));
    assert.equal(await text(page, "#chips .chip"), "rated 2500+");
    // After removing a chip, the focus moves to the next chip, or to the filters button.
    await page.click("#chips [aria-label^='Remove']");
    await page.waitForFunction(() => !location.search && document.activeElement.id === "filters-button");
    await page.keyboard.press("Shift+F");
    await page.fill("#filters [name=eco]", "c50");
    await page.keyboard.press("Tab");
    await counted(page, all(await api("/lichess?eco=C50")));
    await page.fill("#filters [name=player]", "morph");
    await page.click("#filters [role=option]:has-text('Morphy, Paul')");
    assert.equal(await page.inputValue("#filters [name=player]"), "Morphy, Paul");
    // Enter takes no similar name.
    await page.fill("#filters [name=player]", "mrophy");
    await page.waitForSelector("#filters [role=option]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#filters .wrong:has-text('Choose one of the names, such as Morphy, Paul.')");
    await page.fill("#filters [name=player]", "nobody at all");
    await page.keyboard.press("Tab");
    await page.waitForSelector("#filters [name=player][aria-invalid=true]");
    assert.ok(await page.locator("#filters .bottom .main").isDisabled());
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#filters[open]").count(), 0);
    // The lowest group does not contain the games without ratings.
    const low = await open(browser, url, "/?ratings=0,1000");
    assert.equal(await text(low.page, "#chips .chip"), "rated under 1200");
    assert.equal(await tally(low.page), all(await api("/lichess?ratings=0,1000")).toLocaleString("en"));
    await low.context.close();
    // The address alone restores the view.
    const other = await open(browser, url, "/?ratings=2200,2500&speeds=blitz&since=1851&until=2025");
    assert.deepEqual(await other.page.locator("#chips .chip:not(.offer)").allTextContents(), ["1851–2025", "rated 2200+", "Blitz"]);
    assert.deepEqual([...faults, ...other.faults], []);
    await context.close();
    await other.context.close();
  },

  async "a text in the filters is applied or refused, even if Show is pressed before it was checked"() {
    const late = async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.continue();
    };
    const { page, context, faults } = await open(browser, url, "/", { routes: { "**/suggest?*": late, "**/facets?*": late } });
    const show = page.locator("#filters .bottom .main");
    const refused = [
      ["player", "a", /^Choose one of the names, such as Anderssen, Adolf\.$/],
      ["player", "mrophy", /^Choose one of the names, such as Morphy, Paul\.$/],
      ["event", "Nobody's Cup", /^No event is called “Nobody's Cup”\.$/],
      ["eco", "Nothing like it", /^No opening is called “Nothing like it”\.$/],
      ["eco", "B99-B10", /^Cannot read "B99-B10": /],
      ["position", "Bxh7+", /^Column 2: expected /],
    ];
    for (const [name, typed, problem] of refused) {
      await page.keyboard.press("Shift+F");
      const field = page.locator(`#filters [name=${name}]`);
      await counted(page, (await api("/about")).games);
      await field.fill(typed);
      await show.click();
      await page.waitForFunction((wanted) => document.querySelector(`#filters [data-field=${wanted}] .wrong`)?.textContent, name);
      assert.match(await text(page, `#filters [data-field=${name}] .wrong`), problem);
      assert.equal(await field.inputValue(), typed);
      assert.ok(await show.isDisabled());
      assert.equal(await page.locator("#filters[open]").count(), 1);
      assert.equal(new URL(page.url()).search, "");
      // The other fields keep their texts when the first player is chosen.
      if (name === "event") {
        await page.fill("#filters [name=player]", "morphy, paul");
        await page.keyboard.press("Tab");
        await page.waitForSelector("#filters [name=opponentRating]");
        assert.equal(await field.inputValue(), typed);
        assert.equal(await page.locator("#filters [data-field=result], #filters [data-field=color]").count(), 2);
      }
      await page.locator("#filters [aria-label=Close]").click();
    }
    assert.match(faults.splice(0).join(), /^Failed to load resource: [^,]*400[^,]*,Failed to load resource: [^,]*400[^,]*$/);
    await page.keyboard.press("Shift+F");
    await page.fill("#filters [name=player]", "morphy, p");
    await show.click();
    await addressed(page, "player=Morphy, Paul");
    assert.equal(await page.locator("#filters[open]").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a wrong filter in the address leaves the other filters"() {
    for (const [wrong, title] of [["position=Bxh7%2B", "position is malformed"], ["since=2010&until=2000", "the first date, 2010"], ["variant=nothing", "variant has the unknown value"], ["source=nothing", "no source called"]]) {
      const { page, context } = await open(browser, url, `/?player=Morphy,+Paul&color=white&${wrong}`);
      assert.equal(new URL(page.url()).search, "?player=Morphy,+Paul&color=white", wrong);
      assert.equal(await tally(page), String(all(await api("/lichess?player=Morphy,+Paul&color=white"))));
      const message = await text(page, "#notice .banner p");
      assert.ok(message.startsWith("A filter is not valid and was removed: ") && message.includes(title), message);
      await context.close();
    }
  },

  async "the search offers the closest player next to events"() {
    const { page, context, faults } = await open(browser, url, "/");
    await page.keyboard.press("/");
    await page.keyboard.type("man");
    await page.waitForSelector("#search [role=option]");
    assert.deepEqual(await page.locator("#search .group, #search .message").allTextContents(), ["Events", "Openings", "Did you mean:"]);
    await page.click("#search [role=option]:has-text('Thal, Max')");
    await addressed(page, "player=Thal, Max");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "what is pasted is read, and what is not read is said"() {
    const { page, context, faults } = await open(browser, url, "/");
    await paste(page, "1. e4 c5 2. Nf3");
    await reaches(page, "e2e4,c7c5,g1f3");
    // The arrow keys move along the line.
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "e2e4,c7c5");
    await paste(page, "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1");
    await addressed(page, "fen=4k3");
    // The moves of the previous line do not belong to this position.
    assert.equal(await page.locator("#line button").count(), 0);
    await paste(page, "1. e4 e5 2. Nf6");
    await reaches(page, "e2e4,e7e5");
    assert.match(await text(page, "#notice"), /The line ends before 2\. Nf6: illegal move/);
    await paste(page, '[White "A"]\n[Black "B"]\n\n1. d4 d5 *');
    await reaches(page, "d2d4,d7d5");
    assert.equal(await page.locator("#notice .banner").count(), 0);
    // A long game with comments fits into a request.
    const long = readFileSync(new URL("annotated.pgn", import.meta.url), "utf8").split("\n\n[Event")[0];
    await paste(page, long);
    await page.waitForFunction(() => location.search.split(",").length === 41);
    await page.keyboard.press("/");
    await page.keyboard.type("rnbqkbnr/pppp1ppp/8");
    await page.waitForSelector("#search .message:text-is('Not a position: a FEN has 8 ranks, this one has 3')");
    await page.keyboard.press("Escape");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "Esc closes the suggestions, and then leaves the search"() {
    const { page, context, faults } = await open(browser, url, `/?game=${GAME}`);
    await page.keyboard.press("/");
    await page.keyboard.type("morphy");
    await page.waitForSelector("#search [role=option]");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#search [role=option]:visible").count(), 0);
    assert.equal(await page.inputValue("#search input"), "morphy");
    await page.keyboard.press("Escape");
    assert.equal(await page.inputValue("#search input"), "");
    assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
    assert.ok(await page.locator("#game-moves").isVisible(), "the game is still open");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a wrong FEN names the rank, and the board is never empty"() {
    const wrong = "rnbqkbnr/pppp1ppp/8/4p4/8/8/PPPPPPPP/RNBQKBNR_w_KQkq_-_0_1";
    const { page, context, faults } = await open(browser, url, `/?fen=${wrong}`);
    assert.match(await text(page, "#notice"), /Not a position: rank 5 has 9 squares \(“4p4”\)/);
    assert.equal(await page.locator(".man").count(), 32);
    assert.equal(await text(page, "#heading .family"), "Starting position");
    assert.equal(new URL(page.url()).search, "");
    await page.click("#notice >> text=Edit");
    assert.match(await page.inputValue("#search input"), /4p4/);
    await page.fill("#search input", "");
    await row(page, "e2e4").click();
    await reaches(page, "e2e4");
    await paste(page, wrong.replaceAll("_", " "));
    assert.match(await text(page, "#notice"), /rank 5 has 9 squares.*The board stays as it was/);
    assert.equal(line(page), "e2e4");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a game is opened, played through, left and closed"() {
    for (const viewport of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3,d7d6", { viewport });
      await followed(page);
      await page.locator("#games .game").first().scrollIntoViewIfNeeded();
      await page.locator("#games .game", { hasText: "Morphy" }).first().click();
      await page.waitForSelector("#game-moves:not([hidden])");
      assert.ok(await boardIsVisible(page), `${viewport.width}: the board is in the window`);
      assert.match(await text(page, "#strip-bottom"), /Morphy/);
      await page.keyboard.press("End");
      await page.waitForFunction(() => document.querySelector("#game-moves [aria-current]")?.textContent === "Rd8#");
      await settled(page);
      // The list shows the move, and the window has not scrolled away from the board.
      const [list, current] = await Promise.all(["#game-moves", "#game-moves [aria-current]"].map((selector) => page.locator(selector).boundingBox()));
      assert.ok(current.y >= list.y && current.y + current.height <= list.y + list.height, `${viewport.width}: the list shows the last move`);
      assert.ok(await boardIsVisible(page));
      // The table stays that of the last position that another game shares.
      assert.match(await text(page, "#others"), /^Last shared with \d+ games?Moves after \d\.+ \S+:/);
      assert.equal(await page.locator(".mark.check").count(), 1);
      await page.keyboard.press("Home");
      await reaches(page, "");
      const left = (await api("/lichess")).moves.find(({ uci }) => uci !== "e2e4");
      await row(page, left.uci).getByRole("button").evaluate((button) => button.click());
      await reaches(page, left.uci);
      assert.match(await text(page, "#left-game"), /You left the game after the start/);
      await page.keyboard.press("Escape");
      await reaches(page, "");
      assert.equal(await text(page, "#left-game"), "");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#game-moves", { state: "hidden" });
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a game has its clocks, evaluations, comments and what is new"() {
    const { page, context, faults } = await open(browser, url, `/?game=${GAME}`);
    assert.match(await text(page, "#heading .quiet"), /Rated Blitz game · 5\+3 · 1 May 2025/);
    assert.equal(await page.locator("#heading a").getAttribute("href"), `https://lichess.org/${GAME}`);
    await page.click('#game-moves [data-ply="18"]');
    await page.waitForFunction(() => document.querySelector("#game-moves [aria-current]")?.textContent === "dxc4?!0.0");
    assert.equal(await text(page, "#strip-top .clock"), "5:00");
    assert.equal(await text(page, "#strip-bottom .clock"), "5:11");
    assert.equal(await text(page, "#strip-bottom .point"), "1");
    // Four games played 2... g6.
    assert.match(await text(page, "#game-moves .note"), /^3\. Bf4 is new: no other game of 549 reached this position\.$/);
    assert.deepEqual(await page.locator("#game-moves .note", { hasText: ": from" }).allTextContents(), ["Blunder: from +0.6 to +5.5"]);
    assert.equal(await text(page, "#game-moves .result"), "1–0 White won");
    // The chart is also a slider.
    await page.locator("#evaluations input").focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelector("#game-moves [aria-current]")?.getAttribute("data-ply") === "19");
    const download = page.waitForEvent("download");
    await page.click("[title='Save the PGN']");
    assert.match(readFileSync(await (await download).path(), "utf8"), /%eval 0\.17/);
    assert.deepEqual(faults, []);
    await context.close();

    const slow = (await api("/games?event=Test+match&sort=id&limit=1")).games[0];
    const other = await open(browser, url, `/?game=${slow.id}`);
    assert.match(await text(other.page, "#game-moves"), /A slow move\./);
    assert.ok(await other.page.locator("#evaluations").isHidden());
    assert.equal(await other.page.locator("#heading a").count(), 0);
    await other.context.close();
  },

  async "equal games are listed once, a match is folded"() {
    const { page, context, faults } = await open(browser, url, "/?event=Test+match");
    await followed(page);
    const rows = page.locator("#games .game");
    assert.equal(await rows.count(), 1);
    const fold = page.locator("#games .folded");
    assert.equal(await fold.textContent(), "+1 more");
    await fold.click();
    await page.waitForFunction(() => document.querySelectorAll("#games .game").length === 2);
    const labels = await rows.evaluateAll((items) => items.map((item) => item.textContent));
    assert.equal(new Set(labels).size, 2);
    assert.equal(await text(page, "#games .foot"), "2 of 2 · 1 duplicate hidden");
    // The saved file contains the listed games, without the duplicate.
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#games-tools [data-focus=pgn]")]);
    assert.equal(readFileSync(await saved.path(), "utf8").match(/^\[White /gm)?.length, 2);
    // The winner is bold, and the date is complete.
    assert.equal(await page.locator("#games .white .names b").textContent(), "Berg, Ada");
    assert.deepEqual((await page.locator("#games .date").allTextContents()).sort(), ["4 Mar 2019", "5 Mar 2019"]);
    assert.match(labels.join(), /Berg, Ada2510Thal, Max2505White won.*4 Mar 2019/);
    await page.goto(new URL("/", url).href);
    await followed(page);
    const before = await rows.count();
    await page.click("text=Show more");
    await page.waitForFunction((count) => document.querySelectorAll("#games .game").length > count, before);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll("#games .game")].indexOf(document.activeElement)), before);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a server that stops keeps the place, and is asked again"() {
    const { page, context } = await open(browser, url, "/?play=e2e4");
    await followed(page);
    const before = page.url();
    const board = await page.getAttribute(".squares-field", "aria-label");
    await context.setOffline(true);
    await row(page, "e7e5").click();
    await page.waitForSelector("#notice .stopped");
    assert.match(await text(page, "#notice"), /polybook serve does not answer/);
    assert.equal(page.url(), before);
    assert.equal(await page.getAttribute(".squares-field", "aria-label"), board);
    assert.ok(await row(page, "e7e5").isVisible(), "the old numbers stay");
    await drag(page, "e7", "e5");
    await settled(page);
    assert.equal(page.url(), before);
    assert.equal(await page.locator('.man[data-square="e7"]').count(), 1);
    await context.setOffline(false);
    await page.click("#notice >> text=Retry");
    await page.waitForFunction(() => !document.querySelector("#notice .banner"));
    await row(page, "e7e5").click();
    await reaches(page, "e2e4,e7e5");
    // The page also retries without a press.
    await context.setOffline(true);
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector("#notice .stopped");
    await context.setOffline(false);
    await page.waitForFunction(() => !document.querySelector("#notice .banner"));
    await context.close();
  },

  async "games of other variants are offered"() {
    const { page, context, faults } = await open(browser, variants, "/");
    await page.waitForSelector("#moves .ways button");
    assert.match(await text(page, "#moves h3"), /no games of standard chess/);
    await page.click("#moves .ways >> text=Crazyhouse");
    await addressed(page, "variant=crazyhouse");
    assert.equal(await tally(page), String(all(await api("/lichess?variant=crazyhouse", variants))));
    assert.equal(await text(page, "#chips .chip"), "Crazyhouse");
    await page.keyboard.press("Shift+F");
    await page.waitForFunction(() => /\(\d/.test(document.querySelector("#filters select")?.textContent ?? ""));
    await page.selectOption("#filters select", "atomic");
    await page.click("#filters .bottom .main");
    await addressed(page, "variant=atomic");
    assert.ok(await page.locator("#moves [data-uci]").count());
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "quick presses count each, and once"() {
    const { page, context, faults } = await open(browser, url, "/");
    await followed(page);
    // Each press comes before the answer to the previous one.
    await page.evaluate(() => {
      for (let press = 0; press < 6; press += 1) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    });
    await page.waitForFunction(() => location.search.split(",").length === 6);
    await page.keyboard.press("Home");
    await reaches(page, "");
    await followed(page);
    const before = await page.locator("#games .game").count();
    await page.locator("#games .foot button").evaluate((more) => (more.click(), more.click()));
    await page.waitForFunction((count) => document.querySelectorAll("#games .game").length > count, before);
    await followed(page);
    const ids = await page.locator("#games .game").evaluateAll((items) => items.map((item) => item.getAttribute("data-game")));
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "Back while the server is away keeps the entries"() {
    const { page, context } = await open(browser, url, "/");
    await search(page, "morphy");
    await addressed(page, "player=Morphy, Paul");
    await followed(page);
    await context.setOffline(true);
    await page.goBack();
    await page.waitForSelector("#notice .stopped");
    await context.setOffline(false);
    await page.waitForFunction(() => !document.querySelector("#notice .banner"));
    await settled(page);
    assert.equal(new URL(page.url()).search, "");
    await page.goForward();
    await addressed(page, "player=Morphy, Paul");
    await context.close();
  },

  async "games from other positions, and ids that are none, say so"() {
    const { page, context } = await open(browser, variants, "/?variant=chess960");
    await page.waitForSelector("#moves .ways button");
    assert.match(await text(page, "#moves .blank"), /These games start from other positionsThere are 4 games of this variant/);
    await page.goto(new URL("/?game=..", variants).href);
    await page.waitForSelector("#notice .banner");
    assert.match(await text(page, "#notice"), /This game cannot be shown/);
    await context.close();
  },

  async "a game that cannot be read is not a busy server"() {
    const { page, context } = await open(browser, url, "/");
    await page.route("**/game/*", (route) => route.fulfill({ status: 503, body: "games.pgn: this file is no longer where it was" }));
    await page.goto(new URL(`/?game=${GAME}`, url).href);
    await page.waitForSelector("#notice .banner");
    assert.match(await text(page, "#notice"), /^This cannot be shown: games\.pgn: this file is no longer where it was\./);
    await context.close();
  },

  async "a link has the order of the games"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul");
    await followed(page);
    await page.click("#games-tools >> text=Best rated");
    await addressed(page, "sort=rating");
    await row(page, "e2e4").click();
    await addressed(page, "play=e2e4");
    assert.match(page.url(), /sort=rating/);
    await page.reload();
    await followed(page);
    assert.equal(await text(page, "#games-tools [aria-checked=true]"), "Best rated");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a game is copied, and a copy that fails says why"() {
    let fails = false;
    const broken = (route) => (fails ? route.fulfill({ status: 503, body: "the file cannot be read" }) : route.continue());
    const permissions = ["clipboard-read", "clipboard-write"];
    const { page, context } = await open(browser, url, `/?game=${GAME}`, { permissions, routes: { "**/game/*": broken } });
    const pgn = await (await fetch(new URL(`game/${GAME}`, url))).text();
    await page.click("[data-focus=copy-pgn]");
    await page.waitForFunction(() => document.querySelector("#toast")?.textContent === "PGN copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), pgn);
    fails = true;
    await page.click("[data-focus=copy-pgn]");
    await page.waitForFunction(() => document.querySelector("#toast")?.textContent === "the file cannot be read");
    await context.close();
  },

  async "a copied link that works only on this computer says so"() {
    const permissions = ["clipboard-read", "clipboard-write"];
    const away = "https://chess.example/";
    const elsewhere = async (route) => route.fulfill({ response: await route.fetch({ url: route.request().url().replace(away, url), headers: {} }) });
    for (const [start, message] of [[url, "Link copied. It works on this computer only."], [away, "Link copied"]]) {
      const { page, context } = await open(browser, start, "/?play=e2e4", { permissions, routes: { [`${away}**`]: elsewhere } });
      await page.keyboard.press("c");
      await page.waitForFunction((text) => document.querySelector("#toast")?.textContent === text, message);
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
      // Requests may still be under way.
      await context.close();
    }
  },

  async "the pockets of both sides are next to the board"() {
    const { page, context, faults } = await open(browser, variants, "/?variant=crazyhouse&play=e2e4,d7d5,e4d5,d8d5,b1c3,d5d2,d1d2");
    await settled(page);
    const pockets = () => page.locator(".hands button").evaluateAll((all) => all.map((one) => `${one.getAttribute("aria-label")} ${one.disabled}`));
    assert.deepEqual(await pockets(), ["2 pawn to drop false", "1 pawn to drop true", "1 queen to drop true"]);
    await page.keyboard.press("f");
    assert.equal(await page.locator(".hands.above").count(), 1);
    await page.goto(new URL("/?play=e2e5", variants).href);
    await page.waitForSelector("#notice .banner");
    assert.match(await text(page, "#notice"), /This line cannot be played: move 1 of the line, "e2e5", is not possible: illegal move\./);
    assert.deepEqual(faults.filter((fault) => !fault.includes("400")), []);
    await context.close();
  },

  async "the count of filtered games says so, and the list keeps its order"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul");
    await followed(page);
    const order = "#games-tools [aria-checked=true]";
    assert.equal(await text(page, order), "Latest");
    await page.locator("#games .game").first().click();
    await page.waitForSelector("#game-moves:not([hidden])");
    await followed(page);
    assert.match(await text(page, "#others"), /^[\d,]+ games? with these filters reached this position$/);
    assert.equal(await text(page, order), "Latest");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "no games: two ways out, with counts"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3,d7d6&player=Anderssen,+Adolf&color=black");
    await page.waitForSelector("#moves .ways button");
    const unfiltered = all(await api("/lichess?play=e2e4,e7e5,g1f3,d7d6"));
    const texts = await page.locator("#moves .ways button").allTextContents();
    assert.match(texts[0], /^Remove “Anderssen, Adolf” · /);
    assert.equal(texts[1], `Remove all filters · ${games(unfiltered)}`);
    assert.match(texts[2], /^One move back/);
    await page.locator("#moves .ways button").nth(1).click();
    await page.waitForFunction(() => !location.search.includes("player"));
    await settled(page);
    assert.equal(line(page), "e2e4,e7e5,g1f3,d7d6");
    assert.equal(await tally(page), String(unfiltered));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "filters that only the address can set are applied, shown, kept and removed"() {
    const wanted = "white=Tal&white=Morphy,+Paul&requireElo=true&speed=blitz&minPlies=30";
    const { page, context } = await open(browser, url, `/?${wanted}&utm_source=mail`);
    const chips = () => page.locator("#chips .chip:not(.offer)").allTextContents();
    assert.deepEqual(await chips(), ["Blitz", "at least 15 moves", "white Tal / Morphy, Paul", "require elo"]);
    assert.equal(await tally(page), "0");
    for (const name of ["Blitz", "require elo"]) {
      await page.click(`#chips [aria-label='Remove the filter ${name}']`);
      await settled(page);
    }
    await addressed(page, "?minPly=30&white=Tal&white=Morphy, Paul");
    assert.deepEqual(await chips(), ["at least 15 moves", "white Tal / Morphy, Paul"]);
    const counts = all(await api("/lichess?white=Tal&white=Morphy,+Paul&minPlies=30"));
    assert.equal(await tally(page), counts.toLocaleString("en"));
    assert.ok(counts > 0 && counts < (await api("/about")).games);
    await context.close();
  },

  async "filters that leave no games: the one to remove, and all of them"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul&color=white&since=2000");
    await page.waitForSelector("#moves .ways button");
    const without = all(await api("/lichess?player=Morphy,+Paul&color=white"));
    const texts = await page.locator("#moves .ways button").allTextContents();
    const dated = all(await api("/lichess?since=2000"));
    // The player's removal leaves more games than that of the years.
    assert.ok(dated > without);
    assert.deepEqual(texts, [`Remove “Morphy, Paul” · ${games(dated)}`, `Remove all filters · ${games(all(await api("/lichess")))}`]);
    await page.locator("#moves .ways button").first().click();
    await page.waitForFunction(() => !location.search.includes("player"));
    await settled(page);
    assert.equal(await tally(page), dated.toLocaleString("en"));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the page is there while the games are read, and becomes the explorer"() {
    const { page, context, faults } = await open(browser, url, "/");
    const about = await api("/about");
    let read = 1;
    await page.route("**/about", (route) => route.fulfill({ json: read < 3 ? { ...about, indexing: { read: 2 * read, of: 4, done: read++ / 4 } } : about }));
    // The request at the moment when the index becomes ready may fail.
    let breaks = 1;
    await page.route("**/about", (route) => (read === 3 && breaks > 0 ? ((breaks -= 1), route.abort()) : route.fallback()));
    await page.reload({ waitUntil: "commit" });
    await page.waitForSelector("[role=progressbar][aria-valuenow='25']");
    assert.equal(await page.locator(".man").count(), 32);
    assert.match(await page.locator("#search input").getAttribute("placeholder"), /FEN/);
    assert.equal(await page.locator("[data-act=back][aria-disabled=true]").count(), 2);
    await page.keyboard.press("Shift+F");
    // All games are read, and the index is written.
    await page.waitForSelector("[role=progressbar][aria-valuenow='50'][aria-label='Writing the index']");
    await page.waitForSelector("#moves [data-uci]");
    assert.equal(breaks, 0);
    assert.deepEqual(faults.filter((fault) => !fault.includes("ERR_FAILED")), []);
    await context.close();
  },

  async "trends have tables for those who hear them"() {
    // Games without a year do not appear in charts.
    const undated = async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      answer.history.push({ year: null, white: 1e6, draws: 0, black: 0, moves: {} });
      await route.fulfill({ response, json: answer });
    };
    const { page, context, faults } = await open(browser, url, "/", { routes: { "**/lichess?*history=moves*": undated } });
    await page.click("#views >> text=Trends");
    await addressed(page, "view=trends");
    await page.waitForSelector("#trends table");
    const years = page.getByRole("table", { name: "Games per year" });
    const { history } = await api("/lichess?history=moves");
    const last = history.at(-1);
    assert.equal(await years.locator("tr").last().textContent(), `${last.year}${all(last)}`);
    const shares = page.getByRole("table", { name: "Share of the moves" });
    assert.equal(await shares.locator("thead th").nth(1).textContent(), "e4");
    await page.goBack();
    await page.waitForSelector("#games .game");
    assert.equal(await page.locator("#trends:visible").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "labels of trends have swatches, keep their distance and stay within the chart"() {
    // A move that leads in the last year, and three that are rare, leave little room at the top.
    const year = (year, games) => ({ year, white: games, draws: 0, black: 0, moves: { e2e4: games * 0.97, d2d4: games * 0.01, c2c4: games * 0.01, g1f3: games * 0.01 } });
    const history = [2000, 2001, 2002, 2003, 2004, 2005].map((one) => year(one, one < 2003 ? 20 : 900));
    const answered = async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), history } });
    };
    const scores = [{ rating: "2200", white: 300, draws: 200, black: 100 }, { rating: "2500", white: 10, draws: 5, black: 5 }];
    const rated = (route) => route.fulfill({ json: { scores } });
    const { page, context, faults } = await open(browser, url, "/?view=trends", { routes: { "**/lichess?*history=moves*": answered, "**/scores?*": rated } });
    await page.waitForSelector("#trends .shares");
    const chart = await page.locator(".shares svg").boundingBox();
    const labels = await page.locator(".shares-labels > span").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2).sort((a, b) => a - b));
    assert.equal(labels.length, 5);
    for (const [index, label] of labels.entries()) {
      if (index) assert.ok(label - labels[index - 1] > 17.9, `${labels}`);
      assert.ok(label > chart.y - 1 && label < chart.y + chart.height, `${labels}`);
    }
    assert.equal(await page.locator(".shares-labels .swatch").count(), 5);
    // The shares of the first years are those of few games.
    assert.equal((await page.locator(".shares .thin").getAttribute("d")).split("M").length - 1, 2);
    assert.match(await page.locator("#trends figcaption").first().textContent(), /Pale: few games/);
    assert.equal(await page.locator(".shares .grid").count(), 1);
    assert.deepEqual(await page.locator(".scale span").allTextContents(), ["100%", "50%", "0%"]);
    // Scores have their 80% ranges, and those of few games are hollow.
    assert.deepEqual(await page.getByRole("table", { name: "White's score by rating" }).locator("tbody tr").allTextContents(), ["220067%65%–69%600", "250063%51%–74%20"]);
    assert.deepEqual(await page.locator(".curve-field .dot").evaluateAll((all) => all.map((one) => one.className)), ["dot enough", "dot"]);
    assert.equal(await page.locator(".curve-field .curve").count(), 3);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a book is counted, downloaded, and is the one of the command"() {
    const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul&color=white");
    await page.keyboard.press("b");
    await page.waitForSelector("#book .size");
    assert.equal(await page.locator("#book [aria-label='Moves of'] [aria-checked=true]").textContent(), "White");
    const fewest = page.locator("#book [aria-label='Minimum games, as a number']");
    await fewest.fill("1");
    await fewest.press("Enter");
    const size = await api("/book.bin?player=Morphy,+Paul&color=white&side=white&depth=24&minGame=1&weights=results&count=true");
    assert.ok(size.entries > 0);
    await page.waitForFunction((entries) => document.querySelector("#book .size")?.textContent === `${entries} moves`, size.entries.toLocaleString("en"));
    // The file has the name that is on the button.
    assert.equal((await text(page, "#book .command")).replaceAll(/\\\n +/g, ""), size.command.replace("book.bin", "morphy-white.bin"));
    assert.match(await text(page, "#book .command"), /--exact \\\n +\S+\.pgn/);
    const download = page.waitForEvent("download");
    await page.click("#book .bottom .main");
    const file = await download;
    assert.equal(file.suggestedFilename(), "morphy-white.bin");
    assert.equal(readFileSync(await file.path()).length, size.bytes);
    assert.equal(await page.locator("#book[open]").count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the table has the evaluations after the moves, and their mean times where these are asked for"() {
    let isPacked = false;
    const timed = (route) => (isPacked ? route.fulfill({ status: 503, body: "games.pgn: is packed\n" }) : route.continue());
    const { page, context, faults } = await open(browser, evaluated, "/", { routes: { "**/lichess?*clocks=true*": timed } });
    const headings = () => page.locator("#moves .head .extra button").allTextContents();
    const cells = (uci) => row(page, uci).locator(".extra").allTextContents();
    assert.deepEqual(await headings(), ["Eval"]);
    assert.deepEqual(await Promise.all(["e2e4", "d2d4"].map(cells)), [["−#3"], ["+0.17"]]);
    const depth = await row(page, "e2e4").locator(".extra").getAttribute("title");
    assert.equal(depth, "depth 30");
    await accessible(page, "evaluations");
    await page.click("[data-act=clock]");
    await settled(page);
    // The clock did not run during the first move. The second move took two of the three seconds of its increment.
    assert.deepEqual(await headings(), ["Eval"]);
    assert.equal(await text(page, "#results .none"), "No times: no clock times ([%clk] with a readable TimeControl, or [%emt]) of these moves in 4 games.");
    await row(page, "d2d4").click();
    await reaches(page, "d2d4");
    await row(page, "g8f6").click();
    await reaches(page, "d2d4,g8f6");
    assert.deepEqual(await headings(), ["Eval", "Time"]);
    assert.equal(await page.locator("#results .none").count(), 0);
    assert.deepEqual(await cells("g1f3"), ["+0.11", "2.0of 1"]);
    assert.match(await page.locator("#moves .head .extra").last().getAttribute("title"), /in seconds, .* Newest games read: 1$/);
    await accessible(page, "times");
    assert.deepEqual(faults, []);
    // The columns of a player's table keep their widths.
    await page.goto(new URL("/?player=Berg,+Ada", evaluated).href);
    await page.setViewportSize({ width: 1440, height: 900 });
    await settled(page);
    assert.deepEqual(await headings(), ["Eval"]);
    const [shown, needed] = await page.locator("#moves .body .latest").first().evaluate((cell) => [cell.clientWidth, cell.scrollWidth]);
    assert.ok(needed <= shown, `a date needs ${needed} of ${shown}`);
    await page.goto(new URL("/?play=d2d4,g8f6", evaluated).href);
    await settled(page);
    await page.keyboard.press("t");
    await page.waitForFunction(() => document.querySelectorAll("#moves .head .extra").length === 2);
    // If the texts of the games are unavailable, the page shows no times.
    isPacked = true;
    await page.keyboard.press("ArrowLeft");
    await reaches(page, "d2d4");
    // The message may be hidden again already.
    assert.equal(await page.locator("#toast").textContent(), "games.pgn: is packed");
    assert.deepEqual(await headings(), ["Eval"]);
    assert.equal(await page.locator("#notice .banner").count(), 0);
    await context.close();
  },

  async "a repertoire is built of the filtered games, and downloaded"() {
    const { page, context, faults } = await open(browser, url, "/?since=1900&source=famous");
    await page.keyboard.press("r");
    await page.waitForSelector("#book .size");
    assert.equal(await page.locator("#book [aria-label=Make] [aria-checked=true]").textContent(), "A repertoire");
    await page.click("#book [aria-label='Moves of'] >> text=Black");
    assert.match(await page.locator("#book [aria-label=Format] [role=radio]").first().textContent(), /^\.pgn/);
    assert.match(await text(page, "#book [aria-label=Format] [aria-checked=true]"), /^\.pgn/);
    const question = "since=1900&source=famous&side=black&depth=24&reach=200&by=games";
    const size = await api(`/repertoire.pgn?${question}&count=true`);
    assert.ok(size.answers > 10);
    await page.waitForFunction((command) => document.querySelector("#book .command")?.textContent.replaceAll(/\\\n +/g, "").replaceAll("&&\n", "&& ") === command, size.command.replace("repertoire.pgn", "black.pgn"));
    // The command breaks before options. The first lines of the file are shown.
    assert.match(await text(page, "#book .command"), /^polybook make-book \\\n {2}--/);
    await page.waitForSelector("#book .lines li");
    const lines = await page.locator("#book .lines li").allTextContents();
    assert.ok(lines.length === 6 && /^1\. \S+ \S+/.test(lines[0]) && lines.slice(1).every((one) => /^(… (?!1\. )\d+\.|1\. )/.test(one)), lines.join("\n"));
    assert.equal(await text(page, "#book .size"), `${size.answers} answers`);
    const download = page.waitForEvent("download");
    await page.click("#book .bottom >> text=Download");
    const file = await download;
    assert.equal(file.suggestedFilename(), "black.pgn");
    const served = Buffer.from(await (await fetch(new URL(`/repertoire.pgn?${question}`, url))).arrayBuffer());
    assert.ok(served.equals(readFileSync(await file.path())));
    assert.equal(served.length, size.bytes);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the first lines of a repertoire are each under a line with the same moves before"() {
    const moves = "1. e4 e5 (1... c5 2. Nf3 d6 (2... e6 3. d4)) 2. Nf3 Nc6 (2... Nf6 3. Nxe5) 3. Bb5 *";
    const file = (route) => (route.request().url().includes("count=") ? route.fulfill({ json: { games: 9, answers: 6, bytes: 90, command: "polybook" } }) : route.fulfill({ body: moves }));
    const { page, context } = await open(browser, url, "/", { routes: { "**/repertoire.pgn?*": file } });
    await page.keyboard.press("r");
    await page.waitForSelector("#book .lines li");
    assert.deepEqual(await page.locator("#book .lines li").allTextContents(), ["1. e4 e5 2. Nf3 Nc6 3. Bb5", "… 2... Nf6 3. Nxe5", "… 1... c5 2. Nf3 d6", "… 2... e6 3. d4"]);
    await context.close();
  },

  async "a command wraps at spaces in the dialog"() {
    for (const viewport of [{ width: 1440, height: 900 }, { width: 320, height: 640 }]) {
      const { page, context, faults } = await open(browser, url, "/?player=Morphy,+Paul&color=white&source=famous", { viewport });
      await page.evaluate(() => document.querySelector("[data-act=mark]").click());
      await page.waitForSelector("#book .command");
      await page.waitForSelector("#book .lines li");
      const [broken, wide, visible] = await page.locator("#book .command").evaluate((command) => {
        // A text in the file's name can break at its hyphen.
        const name = [...command.children].find((word) => word.textContent.includes("famous.pgn"));
        name.textContent = name.textContent.replace("famous.pgn", "games-of-2025-05-famous.pgn");
        const words = [...command.children].map((word) => [word.textContent, Math.round(word.offsetHeight / 18)]);
        return [words.filter(([, lines]) => lines > 1).map(([word]) => word), command.scrollWidth - command.clientWidth, words.length];
      });
      assert.deepEqual(broken, []);
      assert.ok(wide <= 0 && visible > 10, `${wide} ${visible}`);
      // The preview is as high as its content.
      assert.ok(await page.locator("#book .preview").evaluate((preview) => preview.scrollHeight <= preview.clientHeight), `${viewport.width}`);
      // The buttons are within the dialog.
      const [dialog, save] = await Promise.all(["#book", "#book .bottom .main"].map((selector) => page.locator(selector).boundingBox()));
      assert.ok(save.x + save.width <= dialog.x + dialog.width - 8, `${save.x + save.width} in ${dialog.x + dialog.width}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a book of a name that no game has says why"() {
    const { page, context } = await open(browser, url, "/?player=Morfy");
    await page.keyboard.press("b");
    await page.waitForSelector("#book .preview .problem");
    assert.match(await text(page, "#book .preview .problem"), /Morphy/);
    assert.ok(await page.locator("#book .bottom .main:visible").isDisabled());
    await page.click("#book >> text=Change");
    await page.waitForSelector("#filters[open]");
    await context.close();
  },

  async "focus returns, and keys of one letter can be switched off"() {
    const { page, context, faults } = await open(browser, url, "/");
    for (const [selector, dialog] of [["#filters-button", "#filters"], ["[data-act=book]", "#book"], ["[data-act=keys]", "#keys"]]) {
      await page.focus(selector);
      await page.keyboard.press("Enter");
      await page.waitForSelector(`${dialog}[open]`);
      await page.keyboard.press("Escape");
      assert.ok(await page.evaluate((opener) => document.activeElement === document.querySelector(opener), selector), dialog);
    }
    await page.keyboard.press("?");
    assert.equal(await text(page, "#keys h2"), "Keyboard and help");
    await page.click("#keys [role=switch]");
    await page.keyboard.press("Escape");
    await page.keyboard.press("b");
    assert.equal(await page.locator("#book[open]").count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => location.search.includes("play="));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a late answer is not shown under another heading"() {
    const held = [];
    const late = async (route) => {
      const answer = await route.fetch();
      // The page may have aborted the request.
      held.push(() => route.fulfill({ response: answer }).catch(() => undefined));
    };
    const { page, context, faults } = await open(browser, url, "/", { routes: { "**/games?*sort=recent*": late } });
    await followed(page);
    await page.click("text=Latest");
    await page.click("text=Best rated");
    await followed(page);
    for (let waited = 0; !held.length && waited < 200; waited += 1) await page.waitForTimeout(50);
    assert.equal(held.length, 1);
    for (const release of held) await release();
    await followed(page);
    const ids = await page.locator("#games .game").evaluateAll((items) => items.map((item) => item.getAttribute("data-game")));
    const wanted = (await api("/games?limit=20&sort=rating&duplicates=once&fold=match")).games.map(({ id }) => id);
    assert.deepEqual(ids, wanted);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the variant of all sources is asked for after going back"() {
    const { page, context } = await open(browser, url, "/");
    const about = { ...(await api("/about")), sources: [{ name: "drops", games: 1, variant: "crazyhouse", files: [] }] };
    await page.route("**/about", (route) => route.fulfill({ json: about }));
    const asked = async () => new URL((await page.waitForRequest((request) => new URL(request.url()).pathname === "/lichess")).url()).searchParams.get("variant");
    let request = asked();
    await page.reload();
    assert.equal(await request, "crazyhouse");
    await settled(page);
    await paste(page, "1. d4");
    await reaches(page, "d2d4");
    request = asked();
    await page.goBack();
    assert.equal(await request, "crazyhouse");
    await context.close();
  },

  async "counts without games have no filters that need games"() {
    const { page, context } = await open(browser, url, "/");
    const about = await api("/about");
    const sources = about.sources.map((source) => ({ ...source, counts: source.name === "famous" }));
    await page.route("**/about", (route) => route.fulfill({ json: { ...about, sources } }));
    const fields = async (path) => {
      await page.goto(new URL(path, url).href);
      await settled(page);
      await page.click("text=Years");
      await page.waitForSelector("#filters[open]");
      const shown = await page.locator("#filters [data-field]").evaluateAll((all) => all.map((field) => field.dataset.field));
      await page.keyboard.press("Escape");
      return shown.sort();
    };
    // Lists of games come from sources that contain games.
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url())));
    const lists = () => asked.filter(({ pathname }) => pathname === "/games").length;
    const others = () => page.locator("[data-act=book]:visible, [data-act=mark]:visible, [data-act=clock]:visible").count();
    const offers = () => page.locator(".offer:visible").allTextContents();
    const placeholder = () => page.locator("#search input").getAttribute("placeholder");
    for (const path of ["/", "/?source=famous"]) {
      assert.deepEqual(await fields(path), ["ratings", "since", "speeds"]);
      assert.deepEqual(await offers(), ["Years", "Rating", "Speed"]);
      assert.equal(await others(), 0);
      assert.equal(await placeholder(), "Opening, FEN or moves");
      await followed(page);
      assert.equal(lists(), 1);
      assert.equal(await page.locator(".problem:not(:empty)").count(), 0);
    }
    // The trends are in the place of the list.
    assert.equal(await page.locator("#side:visible, #views button").count(), 0);
    assert.ok(await page.locator("#trends table").first().isVisible());
    assert.ok((await fields("/?source=selfplay")).includes("player"));
    await followed(page);
    assert.equal(lists(), 2);
    assert.equal(await others(), 3);
    assert.equal((await offers()).length, 6);
    assert.match(await placeholder(), /^Player/);
    await context.close();
  },

  async "the position after a move shows its score if it differs"() {
    const { page, context, faults } = await open(browser, url, "/");
    const changed = async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      answer.moves.forEach((move, index) => {
        const { white, draws, black } = move;
        move.resulting = index ? { games: white + draws + black, white, draws, black, ended: 0 } : { games: 9, white: 0, draws: 0, black: 9, ended: 0 };
      });
      await route.fulfill({ response, json: answer });
    };
    // The request for the chart of the years does not ask for these results.
    await page.route("**/lichess?*resulting=true*", changed);
    await page.goto(new URL("/", url).href);
    await settled(page);
    assert.equal(await page.locator("#moves .after").count(), 1);
    assert.equal(await text(page, "#moves .after"), "after: 0% of 9");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "answers of pruned counts say what was left out"() {
    const { page, context, faults } = await open(browser, url, "/");
    const pruned = async (route) => {
      const response = await route.fetch();
      const answer = await response.json();
      Object.assign(answer.polybook, { minGame: 5, maxPly: 2, transpositions: null });
      await route.fulfill({ response, json: answer });
    };
    await page.route("**/lichess?*", pruned);
    for (const path of ["/", "/?play=a2a3,a7a6,a3a4,a6a5"]) {
      await page.goto(new URL(path, url).href);
      await settled(page);
      assert.equal(await text(page, "#results p"), "Positions with fewer than 5 counted moves were left out.");
    }
    assert.equal(await text(page, "#results p + p"), "The index ends at move 1: later moves are not indexed.");
    assert.equal(await page.locator("#moves .blank").count(), 1);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "arrows: four at most, and that of the row that is pointed at"() {
    const { page, context, faults } = await open(browser, url, "/");
    const { moves } = await api("/lichess");
    const total = moves.reduce((sum, move) => sum + all(move), 0);
    const expected = Math.min(4, moves.filter((move) => all(move) >= 0.02 * total).length);
    assert.equal(await page.locator(".arrow").count(), expected);
    await page.locator("#moves [data-uci]").nth(1).hover();
    assert.equal(await page.locator('.arrow[opacity="1.00"]').count(), 1);
    assert.ok((await page.locator(".arrow").count()) <= 4);
    assert.deepEqual(faults, []);
    await context.close();
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
