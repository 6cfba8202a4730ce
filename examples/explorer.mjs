// Prints the moves that were played in a position: node explorer.mjs ADDRESS [PARAMETERS]
//
//     polybook serve data/famous.pgn
//     node examples/explorer.mjs http://127.0.0.1:8040/ "play=e2e4,e7e5&player=Morphy,+Paul"
//
// In a web page of another origin, the same code works if the server was started with --allow-origin.

const [address, parameters = ""] = process.argv.slice(2);

/** Requests a route of the server. An error has the server's message. */
async function ask(route, query = "", body = undefined) {
  const post = body && { method: "POST", body: JSON.stringify(body) };
  const headers = { accept: "application/json", "x-polybook": "1", ...(body && { "content-type": "application/json" }) };
  const response = await fetch(new URL(`${route}?${query}`, address), { ...post, headers });
  if (response.ok) return response.json();
  // The answer to a request that is too long has no text.
  const text = await response.text();
  throw new Error(text ? JSON.parse(text).error : `${response.status} ${response.statusText}`);
}

const answer = await ask("lichess", parameters);
const unknown = answer.polybook.unknownName;
if (unknown) console.log(`no game has ${unknown.name}: did you mean ${unknown.nearest.join(", ")}?`);
for (const { san, white, draws, black, opening } of answer.moves) {
  console.log(san.padEnd(7), String(white + draws + black).padStart(6), opening?.name ?? "");
}

// The route positions answers about many positions in one request. It reads the variant and the filters, but no line.
const { fen, legal } = answer.polybook;
const known = ["variant", ...(await ask("about")).conditions];
const filters = new URLSearchParams([...new URLSearchParams(parameters)].filter(([name]) => known.includes(name)));
filters.set("moves", "0");
const [here] = await ask("positions", filters, [fen]);
const games = here.white + here.draws + here.black;
console.log(`${games} games continue from the position and pass the filters; the position has ${legal.length} legal moves`);
