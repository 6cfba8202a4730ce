// Tests a repertoire on the board: answers, gaps, adding moves and saving the file: node repertoire.mjs URL URL-OF-BLACK FILE.PGN

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { accessible, addressed, drag, followed, launch, open, reaches, run, settled } from "./browser.mjs";

const [url, black, file] = process.argv.slice(2);
const browser = await launch();

const api = async (path) => (await fetch(new URL(path, url))).json();
const often = (games) => (games < 9.5 ? Number(games.toFixed(1)) : Math.round(games));
const row = (page, uci) => page.locator(`#moves [data-uci="${uci}"]`);
const card = (page) => page.locator("#repertoires .repertoire");
const gapsAreCounted = (page, total) =>
  page.waitForFunction((wanted) => !document.querySelector("#repertoires .ring .stale") && document.querySelector("#views .tag.gap")?.textContent === String(wanted), total);

const failed = await run({
  async "the table has the answers and the gaps of the repertoire of the side below"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4");
    const seen = [];
    for (const filters of ["", "&since=1950"]) {
      await page.goto(new URL(`/?play=e2e4${filters}`, url).href);
      await followed(page);
      const { repertoires } = await api(`/repertoire?play=e2e4&repertoire=white&side=white${filters}`);
      if (await page.locator("#moves .more").count()) await page.click("#moves .more");
      const [{ gaps, moves }] = repertoires;
      assert.ok(gaps.length > 1);
      for (const { uci, oneIn } of gaps) assert.match(await row(page, uci).textContent(), new RegExp(`Gap · 1 in ${often(oneIn)}`));
      for (const { uci, answers } of moves) assert.equal(await row(page, uci).locator(".answer").textContent(), answers.map(({ san }) => san).join(" or "));
      assert.equal(await page.locator("#moves .row.gap").count(), gaps.length);
      assert.equal(await page.locator("#moves .head .name button").textContent(), "Your answer");
      assert.equal(await page.locator(".arrow.gap").count(), 1);
      const { coverage } = await api(`/gaps?repertoire=white&side=white${filters}`);
      const share = Math.round(100 * coverage[0].share);
      assert.match(await card(page).textContent(), new RegExp(`^${share}%whiteAn answer in ${share} of 100 games up to move 1`));
      await accessible(page, "a repertoire");
      seen.push(JSON.stringify(gaps.map(({ uci, oneIn }) => [uci, oneIn])));
    }
    assert.notEqual(seen[0], seen[1]);
    // "Your answer" sorts by the answer. Moves without one come last.
    await page.locator("#moves .head .name button").dispatchEvent("click");
    const shown = await page.locator("#moves .body .row").evaluateAll((rows) => rows.map((one) => one.querySelector(".answer")?.textContent ?? "~"));
    assert.ok(shown.length > 2 && shown[0] !== "~");
    assert.deepEqual(shown, [...shown].sort());
    await page.locator("#moves .head .games button").dispatchEvent("click");
    // The board is turned to the other repertoire, and the switch chooses one, too.
    await page.keyboard.press("f");
    await page.waitForFunction(() => document.querySelector("#moves .head .san button")?.textContent === "You play");
    await card(page).filter({ hasText: /%black(?! · )/ }).waitFor();
    assert.equal(await row(page, "e7e5").locator(".in-repertoire").count(), 1);
    await page.click("#repertoires .which [data-value='white white']");
    await addressed(page, "repertoire=white");
    await page.waitForFunction(() => document.querySelector("#moves .head .san button")?.textContent === "Move");
    // In the games of the user, the card shows the repertoire for the color of the user, and the switch changes the color.
    await page.evaluate(() => localStorage.setItem("polybook.me", JSON.stringify(["Fischer, Robert James"])));
    await page.goto(new URL("/?player=Fischer,+Robert+James&color=white", url).href);
    await followed(page);
    await page.keyboard.press("f");
    await addressed(page, "flip=1");
    await followed(page);
    assert.match(await card(page).textContent(), /%white/);
    await page.click("#repertoires .which [data-value='black black']");
    await addressed(page, "color=black");
    await followed(page);
    assert.match(await card(page).textContent(), /%black/);
    await page.evaluate(() => localStorage.removeItem("polybook.me"));
    // The table also contains moves without games.
    await page.goto(new URL("/?play=e2e4&since=2200", url).href);
    await followed(page);
    assert.match(await row(page, "e7e5").textContent(), /no games/);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "nothing shifts while moving through a line of the repertoire and beyond it"() {
    for (const viewport of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
      const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3,b8c6,f1b5", { viewport });
      await followed(page);
      const places = () => page.evaluate(() => ["#repertoires", "#views", "#moves"].map((selector) => document.querySelector(selector).getBoundingClientRect().top));
      const seen = [];
      for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) {
        await page.keyboard.press(key);
        await settled(page);
        await followed(page);
        seen.push(await places());
      }
      for (const place of seen) assert.deepEqual(place, seen[0], `${viewport.width}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a repertoire for Black has its side below"() {
    const { page, context } = await open(browser, black, "/");
    assert.equal(await page.locator("#strip-bottom .man-of.black").count(), 1);
    assert.equal(await page.locator("#repertoires .which").count(), 0);
    await context.close();
  },

  async "all gaps are listed, and the positions with several moves"() {
    const { page, context, faults } = await open(browser, url, "/?view=gaps");
    await page.waitForSelector("#gaps .gaps button");
    await followed(page);
    const found = await api("/gaps?repertoire=white&side=white&limit=200");
    await gapsAreCounted(page, found.total);
    const listed = async (list) => page.locator(list).first().locator("button > span:first-child").allTextContents();
    assert.deepEqual(await listed("#gaps .gaps"), found.gaps.map(({ moves }) => moves));
    assert.deepEqual(await listed("#gaps .ends"), found.lineEnds.map(({ moves }) => moves));
    assert.deepEqual(await page.locator("#gaps .several button").allTextContents(), ["1. e4 c5Nf3 or c3"]);
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await accessible(page, "gaps on a phone");
    await page.setViewportSize(wide);
    await accessible(page, "gaps");
    // The games have a column of their own in a wide window.
    assert.ok(await page.locator("#games .game").first().isHidden());
    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.reload();
    await followed(page);
    assert.ok(await page.locator("#games .game").first().isVisible());
    await page.locator("#gaps .gaps button").nth(1).press("Enter");
    await page.waitForFunction((last) => document.querySelector("#line [aria-current]")?.textContent === last, found.gaps[1].move);
    // The answer to the gap is chosen among the moves.
    await settled(page);
    assert.equal(new URL(page.url()).searchParams.get("view"), null);
    assert.equal(await page.evaluate(() => document.activeElement.id), "moves");
    await page.locator("#moves .adds").first().waitFor();
    // In the view of the moves, the most frequent gaps are above the games.
    const next = page.locator("#next-gaps button:visible");
    const most = found.gaps.slice(0, 8);
    assert.deepEqual(await next.allTextContents(), most.map(({ moves, oneIn, games }) => `${moves}1 game in ${often(oneIn)} ${games} games`));
    assert.ok((await next.last().boundingBox()).y < (await page.locator("#games").boundingBox()).y);
    await accessible(page, "gaps above the games");
    await next.first().click();
    await page.waitForFunction((last) => document.querySelector("#line [aria-current]")?.textContent === last, found.gaps[0].move);
    await page.setViewportSize(wide);
    assert.equal(await next.count(), 0);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the gaps above the games are those of the repertoire below, or none"() {
    const held = [];
    let holds = false;
    const routes = { "**/gaps?*": (route) => (holds ? held.push(route) : route.continue()) };
    const { page, context } = await open(browser, url, "/", { routes, viewport: { width: 1750, height: 900 } });
    await followed(page);
    const next = page.locator("#next-gaps button");
    assert.ok(await next.count());
    holds = true;
    await Promise.all([page.waitForRequest(/gaps\?.*side=black/), page.keyboard.press("f")]);
    assert.equal(await next.count(), 0);
    // After an edit, the gaps before it stay until the answer arrives.
    await held.shift().continue();
    await next.first().waitFor();
    await Promise.all([page.waitForRequest(/gaps\?.*edits=/), row(page, "d2d4").locator(".san button").click().then(() => row(page, "g8f6").locator(".adds").click())]);
    assert.ok(await next.count());
    for (const route of held) await route.fulfill({ status: 500, body: "broken" }).catch(() => undefined);
    await followed(page);
    assert.equal(await next.count(), 0);
    assert.match(await page.locator("#gaps").textContent(), /broken/);
    await context.close();
  },

  async "a move that was played is added with the key and the button of the card"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4");
    await page.keyboard.press("a");
    assert.equal(await card(page).locator("[data-focus=add-last]").count(), 0);
    const lines = () => page.evaluate(() => JSON.parse(localStorage.getItem("polybook.edits") ?? "{}")["white white"]?.lines ?? []);
    assert.deepEqual(await lines(), []);
    for (const [play, san] of [["e2e4,c7c6,d2d4", "d4"], ["e2e4,c7c6,a2a3", "a3"]]) {
      await page.goto(new URL(`/?play=${play}`, url).href);
      await followed(page);
      const add = card(page).locator("[data-focus=add-last]");
      assert.equal(await add.textContent(), `Add ${san}`);
      await accessible(page, "a move to add");
      await page.keyboard.press("a");
      await page.waitForFunction((text) => document.querySelector("[data-focus=add-last]")?.textContent === text, `Added ${san}`);
      assert.match(await card(page).textContent(), new RegExp(`1\\.\\.\\. c6 ${san} added\\.`));
      assert.deepEqual(await lines(), [play]);
      await add.click();
      await page.waitForFunction((text) => document.querySelector("[data-focus=add-last]")?.textContent === text, `Add ${san}`);
      assert.deepEqual(await lines(), []);
    }
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a move is added, kept, removed and saved"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4");
    const { total } = await api("/gaps?repertoire=white&side=white&limit=200");
    const [largest] = (await api("/repertoire?play=e2e4&repertoire=white&side=white")).repertoires[0].gaps;
    await gapsAreCounted(page, total);
    await row(page, largest.uci).locator(".answers").click();
    await reaches(page, `e2e4,${largest.uci}`);
    const first = page.locator("#moves [data-uci]").first();
    const san = await first.locator(".san button").textContent();
    const uci = await first.getAttribute("data-uci");
    await first.locator(".adds").click();
    await row(page, uci).locator(".added").waitFor();
    assert.equal(new URL(page.url()).searchParams.get("play"), `e2e4,${largest.uci}`);
    const edits = `&edits=e2e4,${largest.uci},${uci}`;
    const left = await api(`/gaps?repertoire=white&side=white${edits}`);
    await gapsAreCounted(page, left.total);
    assert.ok(!left.gaps.some(({ moves }) => moves === `1. e4 ${largest.san}`));
    assert.match(await card(page).textContent(), /1 move added/);
    assert.match(await card(page).textContent(), new RegExp(`1\\.\\.\\. ${largest.san} ${san} added\\. Next gap: `));
    assert.match(await page.locator("#said").textContent(), new RegExp(`${san} added\\. ${left.total} gaps? left`));
    await accessible(page, "an added move");
    // The browser keeps the move.
    await page.reload();
    await followed(page);
    assert.equal(await row(page, uci).locator(".added").count(), 1);
    assert.equal(await page.locator("#repertoires .main").count(), 1);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download PGN']")]);
    assert.equal(download.suggestedFilename(), "white.pgn");
    const saved = readFileSync(await download.path(), "utf8");
    assert.ok(saved.endsWith(readFileSync(file, "utf8")), saved);
    assert.ok(saved.includes(`1. e4 ${largest.san} 2. ${san} *`), saved);
    await page.waitForFunction(() => !document.querySelector("#repertoires .main"));
    await page.click("[data-focus=next-gap]");
    await page.waitForFunction((last) => document.querySelector("#line [aria-current]")?.textContent === last, left.gaps[0].move);
    await page.goBack();
    await settled(page);
    // The key removes the move of the row with the focus.
    await row(page, uci).locator(".san button").focus();
    await page.keyboard.press("a");
    await row(page, uci).locator(".adds").waitFor();
    await gapsAreCounted(page, total);
    assert.doesNotMatch(await card(page).textContent(), /move added/);
    // Moves that were added to another state of the file are offered again.
    await page.evaluate((line) => localStorage.setItem("polybook.edits", JSON.stringify({ "white white": { version: "old", lines: [line], isSaved: false } })), `e2e4,${largest.uci},${uci}`);
    await page.reload();
    await followed(page);
    assert.match(await card(page).textContent(), /The file has changed\. Apply 1 added move\?/);
    await page.click("#repertoires .older .main");
    await row(page, uci).locator(".added").waitFor();
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the card and the tabs keep their numbers until the gaps after an edit are known"() {
    let held = () => undefined;
    const late = async (route) => {
      await new Promise((resolve) => (held = resolve));
      await route.continue();
    };
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,c7c5");
    await followed(page);
    const numbers = () => page.evaluate(() => ["#repertoires .ring", "#views"].map((selector) => document.querySelector(selector).textContent));
    const places = () => page.locator("#views button").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
    const before = [await numbers(), await places()];
    assert.match(before[0].join(), /^\d+%,MovesGaps\d+/);
    const { total } = await api("/gaps?repertoire=white&side=white&edits=e2e4,c7c5,d2d4");
    await page.route("**/gaps?*", late);
    await row(page, "d2d4").locator(".adds").click();
    await row(page, "d2d4").locator(".added").waitFor();
    assert.deepEqual([await numbers(), await places()], before);
    assert.doesNotMatch(await card(page).textContent(), /Next gap/);
    held();
    await gapsAreCounted(page, total);
    // The next gap is named by its last move, and the line is in its title.
    const title = await card(page).locator("[title^='1. ']").getAttribute("title");
    const [, number, white, black] = title.match(/(\d+)\. (\S+)(?: (\S+))?$/);
    assert.match(await card(page).textContent(), new RegExp(`Next gap: ${number}${black ? `\\.\\.\\. ${black}` : `\\. ${white}`}, 1 game in `.replaceAll("+", "\\+")));
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a move of the file is removed, taken back, and left out of the saved file"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,c7c5");
    const stored = () => page.evaluate(() => JSON.parse(localStorage.getItem("polybook.edits") ?? "{}")["white white"]?.lines ?? []);
    const total = async (edits) => (await api(`/gaps?repertoire=white&side=white${edits && `&edits=${edits}`}`)).total;
    const removal = "-e2e4,c7c5,g1f3";
    await gapsAreCounted(page, await total(""));
    await accessible(page, "moves to remove");
    await row(page, "g1f3").locator(".removes").click();
    await row(page, "g1f3").locator(".adds").waitFor();
    assert.deepEqual(await stored(), [removal]);
    assert.equal(await row(page, "c2c3").locator(".removes").count(), 1);
    assert.equal(new URL(page.url()).searchParams.get("play"), "e2e4,c7c5");
    await gapsAreCounted(page, await total(removal));
    assert.match(await card(page).textContent(), /1 move removed1\.\.\. c5 Nf3 removed\. /);
    assert.match(await page.locator("#said").textContent(), /Nf3 removed\. \d+ gaps? left/);
    await accessible(page, "a removed move");
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await accessible(page, "a removed move on a phone");
    await page.setViewportSize(wide);
    await page.click("[data-focus=undo-edit]");
    await row(page, "g1f3").locator(".removes").waitFor();
    assert.deepEqual(await stored(), []);
    assert.equal(await page.locator("[data-focus=undo-edit]").count(), 0);
    // The key removes the move of the row with the focus, takes it back, and removes it again.
    for (const [kind, lines] of [["adds", [removal]], ["removes", []], ["adds", [removal]]]) {
      await row(page, "g1f3").locator(".san button").focus();
      await page.keyboard.press("a");
      await row(page, "g1f3").locator(`.${kind}`).waitFor();
      assert.deepEqual(await stored(), lines);
    }
    // The page keeps the removal, and shows it in other positions.
    await page.goto(new URL("/?play=e2e4", url).href);
    await followed(page);
    assert.equal(await row(page, "c7c5").locator(".answer").textContent(), "c3");
    assert.equal(await row(page, "e7e5").locator(".answer").textContent(), "Nf3");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download PGN']")]);
    const saved = readFileSync(await download.path(), "utf8");
    assert.equal(saved, readFileSync(file, "utf8").replace("2. Nf3 (2. c3))", "2. c3)"));
    await page.waitForFunction(() => !document.querySelector("#repertoires .main"));
    // A reply without its last answer is a gap, and an added answer closes it.
    await page.goto(new URL("/?play=e2e4,c7c5", url).href);
    await followed(page);
    await row(page, "c2c3").locator(".removes").click();
    // No game has the move, so its row disappears. The card takes the edit back.
    await row(page, "c2c3").waitFor({ state: "detached" });
    await followed(page);
    await page.click("[data-focus=undo-edit]");
    await row(page, "c2c3").locator(".removes").click();
    await row(page, "c2c3").waitFor({ state: "detached" });
    await row(page, "d2d4").locator(".adds").click();
    await row(page, "d2d4").locator(".added").waitFor();
    const edits = `${removal};-e2e4,c7c5,c2c3;e2e4,c7c5,d2d4`;
    assert.deepEqual(await stored(), edits.split(";"));
    await row(page, "d2d4").locator(".added").click();
    await row(page, "d2d4").locator(".adds").waitFor();
    await page.goto(new URL("/?play=e2e4", url).href);
    await followed(page);
    assert.match(await row(page, "c7c5").textContent(), /Gap · /);
    // Edits of another state of the file are offered again.
    await page.evaluate((lines) => localStorage.setItem("polybook.edits", JSON.stringify({ "white white": { version: "old", lines, isSaved: false } })), edits.split(";"));
    await page.reload();
    await followed(page);
    assert.match(await card(page).textContent(), /Apply 1 added move and 2 removed moves\?/);
    await page.click("#repertoires .older .main");
    await page.waitForFunction(() => document.querySelector("#moves [data-uci=c7c5] .answer")?.textContent === "d4");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "edits that are too long for an address are sent as a form"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,c7c5");
    const [{ version }] = (await api("/repertoire?repertoire=white&side=white")).repertoires;
    const stores = async (count) => {
      const lines = Array.from({ length: count }, () => "e2e4,c7c5,d2d4");
      await page.evaluate((edits) => localStorage.setItem("polybook.edits", JSON.stringify({ "white white": edits })), { version, lines, isSaved: false });
      await page.reload();
      await followed(page);
    };
    const asked = [];
    page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await stores(600);
    assert.deepEqual(asked.filter((one) => /repertoire$|gaps$/.test(one)).sort(), ["POST /gaps", "POST /repertoire"]);
    await row(page, "d2d4").locator(".added").waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download PGN']")]);
    assert.match(readFileSync(await download.path(), "utf8"), /\n1\. e4 c5 2\. d4 \*/);
    // The server would refuse a longer form.
    await stores(1910);
    await row(page, "g1f3").locator(".removes").click();
    assert.match(await page.locator("#toast").textContent(), /too many edits/);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the gaps of a repertoire have room next to the columns of two books"() {
    const moves = [{ uci: "e7e5", san: "e5", weight: 3, learn: 0, probability: 100 }];
    const names = ["games", "performance"];
    const routes = {
      "**/about": async (route) => route.fulfill({ json: { ...(await (await route.fetch()).json()), books: names } }),
      "**/book*": (route) => route.fulfill({ json: { books: names.map((name) => ({ name, moves })) } }),
    };
    const { page, context, faults } = await open(browser, url, "/?play=e2e4", { routes, viewport: { width: 1440, height: 900 } });
    await followed(page);
    assert.equal(await page.locator("#moves .head .extra").count(), 2);
    const { width } = await page.locator("#moves .row.gap .name").first().boundingBox();
    assert.ok(width > 100, `${width}`);
    assert.equal(await page.locator("#moves .head .results .short").innerText(), "W / D / B, %");
    const cut = await page.locator("#moves .head > .row > *").evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length);
    assert.equal(cut, 0);
    // In a narrow column, the buttons show only a sign, so they have tooltips.
    await page.setViewportSize({ width: 1024, height: 768 });
    const answer = page.locator("#moves .row.gap .answers").first();
    assert.equal((await answer.innerText()).trim(), "");
    assert.match(await answer.getAttribute("title"), /^Answer /);
    assert.equal(await page.locator("[data-focus=save-repertoire]").getAttribute("title"), "Download PGN");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "a repertoire is practised on the board and with the keyboard"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4");
    await followed(page);
    const place = page.locator("#practice");
    const said = (text) => page.waitForFunction((wanted) => document.querySelector("#practice")?.textContent.includes(wanted), text);
    await page.click("[data-focus=practise]");
    await said("A new position.");
    assert.ok(await page.locator("#answer").isHidden());
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "INPUT");
    await accessible(page, "practice");
    // A skipped position is not asked again in this session.
    await place.getByText("Skip").click();
    await page.waitForFunction(() => document.querySelector("#practice .so-far")?.textContent.startsWith("1. e4 "));
    await place.getByText("End").click();
    await page.locator("#moves .row").first().waitFor();
    await page.click("[data-focus=practise]");
    await page.waitForFunction(() => document.querySelector("#practice .so-far")?.textContent === "Start");
    const progress = () => place.locator(".done").textContent();
    assert.equal(await progress(), "0 of 3 today");
    // A wrong move is taken back and gets a ring. After the second one, the right move is shown until it is played.
    await drag(page, "d2", "d4");
    await said("Not a move of the repertoire. Try again.");
    assert.equal(await page.locator(".man[data-square=d2]").count(), 1);
    assert.equal(await page.locator(".mark.wrong").count(), 1);
    assert.equal(await page.locator(".arrow").count(), 0);
    await page.keyboard.press("ArrowLeft");
    // A text that is not a legal move does not count as the second try.
    for (const text of ["zzz", "Nf6"]) {
      await place.locator("input").fill(text);
      await page.keyboard.press("Enter");
      await said(`“${text}” is not a legal move. Try again.`);
      assert.equal(await page.locator(".arrow").count(), 0);
    }
    // The second try may be in any notation, too.
    await place.locator("input").fill("d2-d4");
    await page.keyboard.press("Enter");
    await said("The repertoire has e4. Play it to go on.");
    assert.equal(await page.locator(".mark.wrong").count(), 1);
    assert.equal(await page.locator(".arrow").count(), 1);
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await accessible(page, "practice on a phone");
    await page.setViewportSize(wide);
    const green = page.waitForFunction(() => document.querySelector(".mark.right"));
    await drag(page, "e2", "e4");
    await green;
    await page.waitForFunction(() => document.querySelector("#practice .so-far")?.textContent.startsWith("1. e4 "));
    assert.equal(await page.locator(".mark.right, .mark.wrong").count(), 0);
    assert.equal(await progress(), "0 of 3 today", "the position comes again");
    await place.locator("input").fill("nonsense");
    await page.keyboard.press("Enter");
    await said("nonsense");
    assert.match(await place.locator(".problem").innerText(), /^nonsense: /, "the text is as the user wrote it");
    // However often its move is shown, a position counts once, when its answer is right.
    for (let presses = 0; presses < 2; presses += 1) {
      await place.getByText("Show").click();
      await said("Play it to go on.");
      assert.equal(await progress(), "0 of 3 today");
    }
    for (let number = 0; await place.locator("input").count(); number += 1) {
      assert.ok(number < 5);
      // The first answer was shown.
      assert.equal(await progress(), `${Math.max(0, number - 1)} of 3 today`);
      const line = await place.locator(".so-far").textContent();
      await place.locator("input").fill(line === "Start" ? "e4" : "Nf3");
      await page.keyboard.press("Enter");
      await page.waitForFunction((before) => document.querySelector("#practice .so-far")?.textContent !== before, line);
    }
    await said("1 right, 2 wrong. ");
    assert.match(await place.textContent(), /3 positions return in \d+ days?\.|\d positions? returns? in \d+ days?\./);
    assert.equal(await place.locator("li").first().textContent(), "Start");
    assert.equal(await place.locator("li").count(), 2);
    await accessible(page, "the results of practice");
    await place.locator("text=Close").click();
    await followed(page);
    assert.ok(await place.isHidden());
    await reaches(page, "e2e4");
    // Nothing is left for this day, and Escape ends a session.
    await page.click("[data-focus=practise]");
    await said("Nothing is due today.");
    await page.keyboard.press("Escape");
    await page.locator("#moves .row").first().waitFor();
    assert.deepEqual(faults.filter((text) => !/400/.test(text)), []);
    await context.close();
  },

  async "a repertoire that was built or dropped is used at once"() {
    const { page, context, faults } = await open(browser, black, "/");
    await page.keyboard.press("r");
    const dialog = page.locator("#book");
    await dialog.locator("text=Use it here").waitFor();
    await dialog.locator("[data-value=white]").click();
    await page.waitForFunction(() => /answers/.test(document.querySelector("#book .size")?.textContent ?? "") && !document.querySelector("#book .stale"));
    const [, answers] = (await dialog.locator(".size").textContent()).match(/(\d+) answers/);
    await accessible(page, "numbers of a repertoire");
    // A higher minimum leaves answers out.
    await dialog.locator("[data-field=least] input:not([type=range])").fill("20");
    await page.keyboard.press("Tab");
    await page.waitForFunction((before) => !document.querySelector("#book .stale") && document.querySelector("#book .size")?.textContent !== `${before} answers`, answers);
    assert.match(await dialog.locator(".preview").textContent(), /Each answer was played in at least 20 games/);
    assert.match(await dialog.locator(".command").textContent(), /--min-game 20/);
    // The openings that the repertoire covers are unfolded.
    await dialog.getByText(/^\d+ openings? covered$/).click();
    assert.match(await dialog.locator("details").first().textContent(), /covered.*: \d+ answers?/);
    await accessible(page, "the openings of a repertoire");
    await dialog.locator("text=Use it here").click();
    await addressed(page, "repertoire=white");
    await followed(page);
    assert.match(await card(page).textContent(), /%white/);
    // The server still knows the repertoire after the page was loaded again, but shows it to nobody else.
    await page.reload();
    await followed(page);
    assert.match(await card(page).textContent(), /%white/);
    const { repertoires } = await (await fetch(new URL("/about", black))).json();
    assert.deepEqual(repertoires.map(({ name }) => name), ["black"]);
    const dropped = async (name, text, half) => {
      const file = await page.evaluateHandle(([name, text]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], name));
        return transfer;
      }, [name, text]);
      await page.dispatchEvent("body", "dragenter", { dataTransfer: file });
      assert.ok(await page.locator("#drop").isVisible());
      await page.locator("#drop div").nth(half).dispatchEvent("drop", { dataTransfer: file });
      assert.ok(await page.locator("#drop").isHidden());
    };
    await dropped("Queen's pawn.pgn", "1. d4 d5 2. c4 *", 0);
    await addressed(page, "repertoire=Queens pawn");
    await followed(page);
    assert.match(await card(page).textContent(), /%Queens pawn · White/);
    await dropped("wrong.pgn", "no games", 1);
    const says = (text) => page.waitForFunction((wanted) => document.querySelector("#toast.shown")?.textContent.includes(wanted), text);
    await says("neither a PGN file nor a book");
    await dropped("large.pgn", " ".repeat((2 << 20) + 1), 1);
    await says("large.pgn is too large: a repertoire has at most 2 MiB.");
    // A keyboard or a phone opens a file in the dialog. If there are many repertoires, they are in a menu.
    for (const [number, moves] of ["1. c4 *", "1. b3 *", "1. f4 *"].entries()) {
      await page.keyboard.press("r");
      await dialog.locator("[data-value=white]").click();
      const [chooser] = await Promise.all([page.waitForEvent("filechooser"), dialog.getByText("Open a file").click()]);
      await chooser.setFiles({ name: `mine${number}.pgn`, mimeType: "application/x-chess-pgn", buffer: Buffer.from(moves) });
      await addressed(page, `repertoire=mine${number}`);
      await followed(page);
    }
    // On a phone, the page scrolls to the repertoire.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.keyboard.press("r");
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), dialog.getByText("Open a file").click()]);
    await chooser.setFiles({ name: "phone.pgn", mimeType: "application/x-chess-pgn", buffer: Buffer.from("1. g3 *") });
    await addressed(page, "repertoire=phone");
    await followed(page);
    const { y, height } = await card(page).boundingBox();
    assert.ok(y + height <= 844 - 64, `${y}, ${height}`);
    await page.locator("select.which").selectOption({ label: "Queens pawn · White" });
    await addressed(page, "repertoire=Queens pawn");
    await followed(page);
    assert.match(await card(page).textContent(), /%Queens pawn · White/);
    assert.deepEqual(faults.filter((text) => !/400/.test(text)), []);
    await context.close();
  },

  async "stored texts that are not edits are ignored, and edits that cannot be stored are kept"() {
    const { page, context, faults } = await open(browser, url, "/");
    const [{ version }] = (await api("/repertoire?repertoire=white&side=white")).repertoires;
    for (const edits of ["Tal", 5, null, [1], { "white white": null }, { "white white": { version, lines: "e2e4" } }, { "white white": { version: "old", lines: [1] } }]) {
      await page.evaluate((text) => localStorage.setItem("polybook.edits", text), JSON.stringify(edits));
      await page.reload();
      await settled(page);
      assert.equal(await card(page).count(), 1, JSON.stringify(edits));
      assert.doesNotMatch(await card(page).textContent(), /added/);
    }
    await page.evaluate(() => {
      Storage.prototype.setItem = () => {
        throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
      };
    });
    await row(page, "d2d4").locator(".san button").focus();
    await page.keyboard.press("a");
    await row(page, "d2d4").locator(".added").waitFor();
    assert.match(await page.locator("#toast").textContent(), /could not store/);
    // The last edit is removed from the full storage.
    await row(page, "d2d4").locator(".san button").focus();
    await page.keyboard.press("a");
    await row(page, "d2d4").locator(".adds").waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem("polybook.edits")), null);
    assert.deepEqual(faults, []);
    await context.close();
  },
});
await browser.close();
process.exit(failed ? 1 : 0);
