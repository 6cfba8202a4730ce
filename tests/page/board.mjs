// Uses the board with a mouse: node board.mjs URL
// The server has data/famous.pgn, data/selfplay.pgn and annotated.pgn.

import assert from "node:assert/strict";

import { followed, launch, middle, open, reaches, run, settled } from "./browser.mjs";

const [url] = process.argv.slice(2);
const browser = await launch();

/** Returns the arrows of moves, as the lengths of their shafts in squares. An arrow that is only a head has the length 0. */
const shafts = (page) =>
  page.locator(".arrow .shaft:not(.rim)").evaluateAll((paths) => paths.map((path) => Math.round(10 * path.getTotalLength()) / 10));

/** Answers in the server's place with moves of equal numbers of games, the first of which is the strongest. */
const answered = (moves) => async (route) => {
  const response = await route.fetch();
  const answer = await response.json();
  const counts = moves.map(([uci, games]) => ({ ...answer.moves[0], uci, san: uci, white: games, draws: 0, black: 0 }));
  await route.fulfill({ response, json: { ...answer, moves: counts } });
};

const tests = {
  async "an arrow that contains another one shares its shaft"() {
    const whole = 2 - 0.34 - 0.4;
    for (const [moves, expected] of [
      // The shorter move is only a head on the shaft of the stronger one.
      [[["e2e4", 90], ["e2e3", 50]], (e3, e4) => e3 === 0 && e4 > whole],
      // The longer move begins where the stronger one ends.
      [[["e2e3", 90], ["e2e4", 50]], (e4, e3) => e4 > 0 && e4 < 0.6 && e3 > 0],
    ]) {
      const { page, context, faults } = await open(browser, url, "/", { routes: { "**/lichess?*": answered(moves) } });
      const lengths = await shafts(page);
      assert.equal(lengths.length, 2);
      // The strongest arrow is drawn last.
      assert.ok(expected(...lengths), `${moves}: ${lengths}`);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "a row below a resting pointer is not pointed at"() {
    const { page, context, faults } = await open(browser, url, "/");
    const pointed = () => page.locator('.arrow[opacity="1.00"]').count();
    const box = await page.locator("#moves [data-uci]").nth(1).boundingBox();
    const [x, y] = [box.x + 40, box.y + 20];
    await page.mouse.move(x, y);
    assert.equal(await pointed(), 1);
    const uci = await page.locator("#moves [data-uci]").nth(1).getAttribute("data-uci");
    await page.mouse.click(x, y);
    await reaches(page, uci);
    await page.mouse.move(x + 2, y);
    assert.equal(await pointed(), 0, "the pointer rests");
    await page.mouse.move(x + 7, y);
    assert.equal(await pointed(), 1, "the pointer moved");
    await page.mouse.move(5, 5);
    assert.equal(await pointed(), 0, "the pointer left");
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the wheel steps through the line, and plays no new moves"() {
    const { page, context, faults } = await open(browser, url, "/?play=e2e4,e7e5,g1f3");
    await page.mouse.move(...(await middle(page, "d5")));
    for (const [turn, play] of [[-100, "e2e4,e7e5"], [-100, "e2e4"], [100, "e2e4,e7e5"], [100, "e2e4,e7e5,g1f3"]]) {
      await page.mouse.wheel(0, turn);
      await reaches(page, play);
    }
    await page.evaluate(() => {
      globalThis.turned = new Promise((resolve) => addEventListener("wheel", () => resolve(), { once: true }));
    });
    await page.mouse.wheel(0, 100);
    await page.evaluate(() => globalThis.turned);
    await settled(page);
    assert.match(page.url(), /play=e2e4,e7e5,g1f3$/);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the right button draws arrows and circles until the position changes"() {
    const { page, context, faults } = await open(browser, url, "/");
    const press = async (from, to) => {
      await page.mouse.move(...(await middle(page, from)));
      await page.mouse.down({ button: "right" });
      await page.mouse.move(...(await middle(page, to)), { steps: 3 });
      await page.mouse.up({ button: "right" });
    };
    const drawn = async () => [await page.locator(".arrow.drawn").count(), await page.locator(".sketch").count()];
    await press("b1", "d5");
    await press("f7", "f7");
    assert.deepEqual(await drawn(), [1, 1]);
    // An equal arrow removes the first one.
    await press("b1", "d5");
    assert.deepEqual(await drawn(), [0, 1]);
    await press("a1", "a8");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => location.search.includes("play="));
    await settled(page);
    assert.deepEqual(await drawn(), [0, 0]);
    await press("a1", "a8");
    await page.mouse.click(...(await middle(page, "d5")));
    assert.deepEqual(await drawn(), [0, 0]);
    await followed(page);
    assert.deepEqual(faults, []);
    await context.close();
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
