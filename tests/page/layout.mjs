// Checks the page in windows of each size and in each state: node layout.mjs URL DIRECTORY
// The screenshots go to the directory. The server has data/famous.pgn, data/selfplay.pgn and annotated.pgn.

import assert from "node:assert/strict";
import { join } from "node:path";

import { accessible, boardIsVisible, followed, isNotTooWide, launch, open, reaches, run, settled } from "./browser.mjs";

const [url, directory] = process.argv.slice(2);
const browser = await launch();
const LINE = "play=e2e4,c7c5,g1f3";
const GAME = "game=8qnGOgRl&play=d2d4,g8f6,g1f3,g7g6,c1f4,f8g7";

const phone = { hasTouch: true, isMobile: true };
/** Windows of phones and of computers: their sizes, and the sizes of the board. */
const WINDOWS = [
  [phone, { "320x640": 320, "390x844": 390, "844x390": 280 }],
  [{}, { "900x700": 384, "1280x900": 648, "1440x900": 648, "1920x1080": 824, "2560x1440": 1184 }],
];
/** The sizes at which each state is pictured and checked with axe. At the other sizes, the elements have the same colors and names. */
const PICTURED = ["1440x900", "390x844"];

const press = (key, selector) => async (page) => {
  await page.keyboard.press(key);
  await page.waitForSelector(selector);
};
/** The states: a path, and actions on the page. */
const STATES = {
  start: ["/"],
  line: [`/?${LINE}`],
  player: ["/?player=Morphy,+Paul&color=white"],
  game: [`/?${GAME}`],
  left: [`/?${GAME},e2e4`],
  filters: ["/?player=Morphy,+Paul&since=1850", press("Shift+F", "#filters .option small:not(:empty)")],
  // The numbers of games in chosen options have their own contrast.
  chosen: ["/?ratings=0,1000,unknown&speeds=classical,correspondence", press("Shift+F", "#filters .option[aria-checked=true] > small:not(:empty)")],
  openings: ["/?view=openings", async (page) => page.waitForSelector("#openings .body .row")],
  book: ["/?player=Morphy,+Paul&color=white", press("b", "#book .size")],
  "new repertoire": ["/?player=Morphy,+Paul&color=white", press("r", "#book .lines li")],
  trends: ["/?view=trends", async (page) => page.waitForSelector("#trends table")],
  lost: ["/?player=Morphy,+Paul&color=white&list=loss"],
  keys: ["/", press("?", "#keys[open]")],
  empty: ["/?player=Morphy,+Paul&play=a2a3", async (page) => page.waitForSelector("#moves .ways button")],
  "no player": ["/?player=Morphi", async (page) => page.waitForSelector("#moves .ways button")],
  "wrong FEN": ["/?fen=8/8/8/8/8/8/8/9_w_-_-_0_1"],
  search: [
    "/",
    async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("morphy");
      await page.waitForSelector("#search [role=option]");
    },
  ],
  stopped: [
    "/",
    async (page) => {
      await page.context().setOffline(true);
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector("#notice .stopped");
    },
  ],
  more: [
    "/",
    async (page) => {
      await page.evaluate(() => document.querySelector("[data-act=more]").click());
      await page.waitForSelector("#more[open]");
    },
  ],
  indexing: [
    "/",
    async (page) => {
      const about = { version: "", games: 0, positions: 0, years: null, books: [], indexing: { read: 62, of: 100, done: 0.41 } };
      const sources = [{ name: "masters", games: 0, variant: "auto", files: ["masters.pgn.zst"] }];
      await page.route("**/about", (route) => route.fulfill({ json: { ...about, sources } }));
      await page.reload({ waitUntil: "commit" });
      await page.waitForSelector("[role=progressbar]");
    },
  ],
  copied: [
    "/",
    async (page) => {
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.evaluate(() => {
        // The message stays until the page is left.
        document.querySelector("#toast").classList.remove = () => undefined;
        document.querySelector("[data-act=fen]").click();
      });
      await page.waitForSelector("#toast.shown");
      assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^rnbqkbnr\/pppppppp\//);
    },
  ],
};

const window = (size) => {
  const [width, height] = size.split("x").map(Number);
  return { width, height };
};

const tests = {
  async "each size: the board is where it belongs, nothing is wider than the window"() {
    for (const [options, boards] of WINDOWS) {
      const { page, context, faults } = await open(browser, url, `/?${LINE}`, options);
      for (const [size, board] of Object.entries(boards)) {
        await page.setViewportSize(window(size));
        await page.evaluate(() => scrollTo(0, 0));
        await followed(page);
        const box = await page.locator(".squares-field").boundingBox();
        assert.deepEqual([Math.round(box.width), Math.round(box.height)], [board, board], size);
        assert.ok(await boardIsVisible(page), size);
        await accessible(page, size);
        for (const colorScheme of PICTURED.includes(size) ? ["dark", "light"] : ["light"]) {
          await page.emulateMedia({ colorScheme });
          await page.screenshot({ path: join(directory, `${size}${colorScheme === "dark" ? " dark" : ""}.png`) });
        }
        if (options.isMobile && box.width === window(size).width) {
          // The board stays in place while the rest scrolls.
          await page.evaluate(() => scrollTo(0, 300));
          assert.ok((await page.locator(".squares-field").boundingBox()).y >= 0, `${size}: the board is sticky`);
          const small = await page.locator("#dock button").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).filter(({ width, height }) => width < 44 || height < 44).length);
          assert.equal(small, 0, `${size}: the dock`);
        }
      }
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "each state in windows of five sizes"() {
    const { page, context } = await open(browser, url, "/", { viewport: window("1440x900") });
    for (const [name, [path, act]] of Object.entries(STATES)) {
      await page.setViewportSize(window("1440x900"));
      await page.goto(new URL(path, url).href);
      await followed(page);
      await act?.(page);
      // While the index is made, the page is busy.
      if (name !== "indexing") await followed(page);
      for (const [size, colorScheme] of [["1440x900", "light"], ["1680x1050", "light"], ["900x700", "light"], ["320x640", "dark"], ["390x844", "dark"]]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(window(size));
        assert.ok(await boardIsVisible(page), `${name}, ${size}: the board is in the window`);
        await isNotTooWide(page, `${name}, ${size}`);
        if (window(size).width >= 900) {
          // The columns scroll. If the document did, the board would leave the window.
          const [high, inner] = await page.evaluate(() => [document.documentElement.scrollHeight, innerHeight]);
          assert.ok(high <= inner, `${name}, ${size}: the document is ${high} high in a window of ${inner}`);
        }
        if (!PICTURED.includes(size)) continue;
        await page.screenshot({ path: join(directory, `${name} ${size}.png`) });
        await accessible(page, `${name}, ${size}`, [colorScheme]);
      }
      await page.unrouteAll();
      await context.setOffline(false);
      await page.evaluate(() => localStorage.clear());
    }
    await context.close();
  },

  async "the table is whole where it is narrow"() {
    for (const [size, path] of [["900x700", `/?${GAME}`], ["844x390", `/?${GAME}`], ["320x640", "/"], ["320x640", "/?player=Morphy,+Paul"], ["1280x800", "/?player=Morphy,+Paul&player=Anderssen,+Adolf&color=white"]]) {
      const { page, context } = await open(browser, url, path, { viewport: window(size) });
      await followed(page);
      const cut = await page.locator("#moves .body .row:visible, .figures:visible dl, #heading:visible").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.className || one.localName));
      assert.deepEqual(cut, [], `${size} ${path}`);
      assert.ok(await page.locator("#moves .body .row").first().isVisible(), `${size} ${path}`);
      await context.close();
    }
  },

  async "the labels of the bars are whole or hidden, and the columns of a table fill it"() {
    for (const [size, path, selector] of [
      ["320x640", "/", "#moves .bar"],
      ["320x640", "/?view=openings", "#openings .bar"],
      ["390x844", "/", "#moves .bar"],
      ["1440x900", "/?view=openings", "#openings .bar"],
    ]) {
      const { page, context } = await open(browser, url, path, { viewport: window(size) });
      await page.waitForSelector(selector);
      await followed(page);
      const [shown, cut, rest] = await page.evaluate((bars) => {
        const labels = [...document.querySelectorAll(`${bars} > *`)].filter((section) => section.textContent && section.getClientRects().length);
        const visible = labels.map((section) => {
          const range = document.createRange();
          range.selectNodeContents(section);
          const [text, box] = [range.getBoundingClientRect(), section.getBoundingClientRect()];
          return { text, box, isVisible: text.top < box.bottom };
        });
        const isCut = ({ text, box, isVisible }) => isVisible && (text.left < box.left - 0.5 || text.right > box.right + 0.5);
        const row = document.querySelector("#openings .body .row:not(.rest)");
        const space = row ? row.getBoundingClientRect().right - row.lastElementChild.getBoundingClientRect().right : 0;
        return [visible.filter((one) => one.isVisible).length, visible.filter(isCut).length, space];
      }, selector);
      assert.ok(shown > 3, `${size} ${path}: ${shown} labels`);
      assert.equal(cut, 0, `${size} ${path}`);
      assert.ok(rest <= 17 || size !== "1440x900", `${size} ${path}: ${rest} to the right of the last column`);
      await context.close();
    }
  },

  async "the switch of the sources does not cover the name of the program"() {
    for (const size of ["900x700", "1024x768", "1280x900"]) {
      const { page, context } = await open(browser, url, "/", { viewport: window(size) });
      const [home, sources] = await Promise.all(["#home span", "#sources"].map((selector) => page.locator(selector).boundingBox()));
      assert.ok(home.x + home.width <= sources.x, `${size}: ${home.x + home.width} and ${sources.x}`);
      await context.close();
    }
  },

  async "a line of a game breaks between moves, and not after a number"() {
    const { page, context } = await open(browser, url, `/?${GAME}`, { viewport: window("390x844") });
    await followed(page);
    const split = await page.locator("#game-moves .pair").evaluateAll((pairs) => pairs.filter((pair) => {
      const bottoms = [...pair.children].map((one) => one.getBoundingClientRect().bottom);
      return Math.max(...bottoms) - Math.min(...bottoms) > 14;
    }).length);
    assert.equal(split, 0);
    await context.close();
  },

  async "the games follow the moves without a hole"() {
    const { page, context } = await open(browser, url, "/", { viewport: window("1440x900") });
    // A deeper position and a filter have fewer moves.
    for (const path of ["/", `/?${LINE},d7d6,d2d4,c5d4,f3d4,g8f6`, "/?player=Morphy,+Paul&color=white&since=1859"]) {
      await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), path);
      await followed(page);
      const [table, side] = await Promise.all(["#moves .card", "#side"].map((selector) => page.locator(selector).boundingBox()));
      assert.ok(side.y - (table.y + table.height) < 20, `${path}: ${table.y + table.height} to ${side.y}`);
    }
    await context.close();
  },

  async "the board is a thumbnail next to the heading in the lists of a phone, until it is pressed"() {
    for (const size of ["390x844", "320x640"]) {
      const { page, context, faults } = await open(browser, url, "/?view=openings&play=e2e4", { viewport: window(size), ...phone });
      await followed(page);
      const box = (selector) => page.locator(selector).boundingBox();
      const [small, heading, count] = await Promise.all(["#board", "#heading h2", "#heading .phone-count"].map(box));
      assert.deepEqual([small.width, small.height], [112, 112]);
      assert.ok(heading.x >= small.x + small.width && heading.y < small.y + small.height);
      assert.ok(count.x >= heading.x && count.x + count.width <= heading.x + heading.width);
      await accessible(page, `a thumbnail in ${size}`);
      await page.evaluate(() => scrollTo(0, 300));
      assert.ok((await box("#board")).y < 0, "the thumbnail is not sticky");
      await page.evaluate(() => scrollTo(0, 0));
      await page.click("#enlarge");
      const whole = (await box("#board")).width;
      assert.ok(whole >= 320);
      assert.equal(await page.locator("#enlarge").isVisible(), false);
      // The board stays whole while the position changes, and is a thumbnail in another list.
      await page.click("#dock [data-act=back]");
      await followed(page);
      assert.equal((await box("#board")).width, whole);
      await page.click("#views >> text=Trends");
      await followed(page);
      assert.equal((await box("#board")).width, 112);
      await page.click("#views >> text=Moves");
      await followed(page);
      assert.equal((await box("#board")).width, whole);
      assert.deepEqual(faults, []);
      await context.close();
    }
  },

  async "the targets are large enough for fingers"() {
    for (const size of ["390x844", "1180x820"]) {
      const { page, context } = await open(browser, url, "/", { viewport: window(size), ...phone });
      for (const path of ["/", "/?player=Morphy,+Paul&color=white", "/?view=openings", `/?${GAME}`, "/?player=Morphi"]) {
        await page.goto(new URL(path, url).href);
        await followed(page);
        const small = await page.locator("button:visible, a:visible, select:visible, input:visible").evaluateAll((all) =>
          all.flatMap((one) => {
            const { width, height } = one.getBoundingClientRect();
            // Moves, headings and names need only 24 pixels, because they are in text or in rows that are targets themselves.
            const isInText = one.closest(".line, .san, .head, .name, .pair, .bar, .chip, .folded, h1, .unseen");
            return width < 23.9 || height < 23.9 || (!isInText && (width < 43.9 || height < 43.9)) ? [`${one.outerHTML.slice(0, 90)} ${width}x${height}`] : [];
          }),
        );
        assert.deepEqual(small, [], `${size} ${path}`);
      }
      await context.close();
    }
  },

  async "a focused element is not below the board or the buttons of a phone"() {
    const { page, context } = await open(browser, url, "/", { viewport: window("390x844"), ...phone });
    await followed(page);
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator("#moves .more, #moves button").last().evaluate((one) => one.focus());
    for (let step = 0; step < 15; step += 1) {
      await page.keyboard.press(step < 12 ? "Tab" : "Shift+Tab");
      const [top, bottom, least, most, name] = await page.evaluate(() => {
        const edge = (selector, side) => document.querySelector(selector).getBoundingClientRect()[side];
        const { top, bottom } = document.activeElement.getBoundingClientRect();
        return [top, bottom, edge("#play", "bottom"), edge("#dock", "top"), document.activeElement.textContent];
      });
      assert.ok(top >= least && bottom <= most, `${name}: ${top} to ${bottom} in ${least} to ${most}`);
    }
    await context.close();
  },

  async "nothing shifts while moving through a line"() {
    for (const size of ["1440x900", "390x844"]) {
      const { page, context } = await open(browser, url, "/", { viewport: window(size) });
      await followed(page);
      await page.evaluate(() => {
        globalThis.shifts = 0;
        const observer = new PerformanceObserver((list) => add(list.getEntries()));
        // The games move when the table gets shorter, in answer to the press. Like the metric, count only other shifts.
        const add = (entries) => entries.forEach(({ hadRecentInput, value }) => (globalThis.shifts += hadRecentInput ? 0 : value));
        observer.observe({ type: "layout-shift", buffered: false });
        globalThis.lastShifts = () => add(observer.takeRecords());
      });
      const places = () =>
        page.evaluate(() =>
          [".squares-field", "#strip-top", "#strip-bottom", "#line", "#results", "#moves"].map((selector) => {
            const { top, left, width } = document.querySelector(selector).getBoundingClientRect();
            return [selector, top, left, width].join(" ");
          }),
        );
      const before = await places();
      for (const play of ["e2e4", "e2e4,e7e5", "e2e4,e7e5,g1f3"]) {
        // Scrolling to the button is not a shift.
        await page.locator(`#moves [data-uci="${play.split(",").at(-1)}"] button`).evaluate((button) => button.focus({ preventScroll: true }));
        await page.keyboard.press("Enter");
        await reaches(page, play);
        await followed(page);
        assert.deepEqual(await places(), before, `${size}: ${play}`);
      }
      const shifts = await page.evaluate(() => (globalThis.lastShifts(), globalThis.shifts));
      assert.equal(shifts, 0, size);
      await context.close();
    }
  },

  async "the page is small"() {
    const { page, context } = await open(browser, url, "/");
    const sizes = await page.evaluate(async () => {
      const paths = performance.getEntriesByType("resource").filter(({ initiatorType }) => initiatorType !== "fetch").map(({ name }) => name);
      const files = await Promise.all([location.href, ...paths].map(async (path) => (await fetch(path)).text()));
      return Promise.all(files.map(async (file) => (await new Response(new Blob([file]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer()).byteLength));
    });
    const size = sizes.reduce((all, one) => all + one, 0);
    assert.ok(sizes.length > 30 && size < 110_000, `${sizes.length} files have ${size} bytes`);
    await context.close();
  },

  async "all of it with the keyboard alone, in an order that makes sense"() {
    const { page, context, faults } = await open(browser, url, `/?${LINE}`, { viewport: window("1440x900") });
    await followed(page);
    const seen = [];
    for (let step = 0; step < 80; step += 1) {
      await page.keyboard.press("Tab");
      const [name, region] = await page.evaluate(() => {
        const active = document.activeElement;
        const { width, height } = active.getBoundingClientRect();
        const place = active.closest("header, #filter-bar, #play, #answer, #side");
        const outline = getComputedStyle(active).outlineStyle;
        return [active.getAttribute("aria-label") ?? active.textContent.trim(), place && width && height && outline !== "none" ? place.id || place.localName : ""];
      });
      if (!region) break;
      seen.push([region, name]);
    }
    const regions = seen.map(([region]) => region).filter((region, index, all) => region !== all[index - 1]);
    assert.deepEqual(regions, ["header", "filter-bar", "play", "answer", "side"]);
    // The table is a single tab stop.
    const stops = seen.filter(([region, name]) => region === "answer" && /, [\d,]+ games?$/.test(name));
    assert.equal(stops.length, 1);
    assert.deepEqual(faults, []);
    await context.close();
  },

  async "the page as it is read aloud"() {
    const { page, context } = await open(browser, url, "/?play=e2e4", { viewport: window("1440x900") });
    await followed(page);
    const tree = await page.locator("body").ariaSnapshot();
    let from = 0;
    for (const part of [
      "- banner:",
      '- link "polybook, to the start"',
      '- combobox "Search players, events, openings',
      '- region "Filters"',
      '- region "Board"',
      'img "Black to move. White: king e1',
      '- toolbar "Move through the line"',
      '- region "Moves of the position"',
      '- heading "B00 King\'s Pawn Game',
      '- group "White ',
      '- button "White ',
      '- radiogroup "View"',
      '- table "Moves of the position"',
      "- columnheader \"Games",
      '- rowheader "e5, ',
      '- region "Games"',
      '- radiogroup "Result of the games"',
      '- radiogroup "Order of the games"',
    ]) {
      const at = tree.indexOf(part, from);
      assert.ok(at >= 0, `${part} is missing after ${tree.slice(Math.max(0, from - 200), from + 600)}`);
      from = at;
    }
    // The label of a move contains its name and results.
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await page.textContent("#said"), /^\S+\. .+, [\d,]+ games?, White scores \d+%$/);
    await context.close();
  },
};

const failed = await run(tests);
await browser.close();
process.exit(failed ? 1 : 0);
