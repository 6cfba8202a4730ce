// Makes the screenshots for the documents: cargo build --release && node tests/page/screenshots.mjs [PROGRAM [PGN...]]

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { followed, launch, open } from "./browser.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const sample = (name) => join(root, "data", name);
const [program = join(root, "target/release/polybook"), ...given] = process.argv.slice(2);
const sources = given.length ? given : [sample("selfplay.pgn"), sample("famous.pgn")];

/**
 * The screenshots: a file, a path of the page, the window, and the element at which the pointer is. The first one shows a player of a
 * collection that is not in the repository, so it is taken only of given PGN files, and the other one only of the sample games.
 */
const PICTURES = given.length
  ? [
      [
        "docs/explorer.png",
        "/?player=Carlsen,M&play=e2e4",
        { viewport: { width: 1280, height: 800 } },
        "#moves [data-uci]:nth-child(2)",
      ],
    ]
  : [
      [
        "docs/explorer-phone.png",
        "/?player=Morphy,+Paul",
        { viewport: { width: 390, height: 844 }, deviceScaleFactor: 1.5, colorScheme: "dark" },
        "",
      ],
    ];

const cache = mkdtempSync(join(tmpdir(), "polybook-"));
const server = spawn(program, ["serve", "-q", "--listen", "127.0.0.1:0", ...sources], {
  env: { ...process.env, XDG_CACHE_HOME: cache },
  stdio: ["ignore", "pipe", "inherit"],
});
const [url] = await new Promise((resolve) => createInterface(server.stdout).once("line", (line) => resolve([line])));
const browser = await launch();
for (const [file, path, options, pointed] of PICTURES) {
  const { page } = await open(browser, url, path, options);
  if (pointed) await page.hover(pointed);
  await followed(page);
  await page.screenshot({ path: join(root, file) });
  console.log(file);
}
await browser.close();
server.kill();
rmSync(cache, { recursive: true });
