//! The names of fields in JSON: snake case in the documents of the command line, camel case in the answers of the
//! server.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::common::{ok, run, sample, temp};

/// Calls `take` with the path of each key of a document. The items of lists have the path of their list.
fn for_each_key(document: &Value, path: &str, take: &mut impl FnMut(&str, &str)) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                take(path, name);
                for_each_key(value, &format!("{path}.{name}"), take);
            }
        }
        Value::Array(items) => {
            for item in items {
                for_each_key(item, path, take);
            }
        }
        _ => {}
    }
}

/// Returns `true` if no number of a document has more than six decimal places.
fn has_short_numbers(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.all(|word| {
        let decimals = word.rsplit_once('.').map_or("", |(_, decimals)| decimals);
        decimals.len() <= 6
    })
}

fn is_lower(name: &str, other: impl Fn(char) -> bool) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || other(c))
}

/// Returns the commands that have `--json`, with their subcommands.
fn commands_with_json(dir: &Path) -> BTreeSet<String> {
    let mut waiting = vec![String::new()];
    let mut found = BTreeSet::new();
    while let Some(command) = waiting.pop() {
        let help = ok(dir, &format!("{command} --help"));
        let has_json = |line: &str| line.trim_start().starts_with("--json");
        if help.lines().any(has_json) {
            found.insert(command.trim().to_owned());
        }
        let (_, commands) = help.split_once("Commands:\n").unwrap_or_default();
        let names = commands
            .lines()
            .map_while(|line| line.split_whitespace().next());
        waiting.extend(
            names
                .filter(|name| *name != "help")
                .map(|name| format!("{command} {name}")),
        );
    }
    found
}

/// Command lines that together print every kind of JSON document, in the order in which their files are made.
const PRINTED: [&str; 40] = [
    "make-book famous.pgn --bin f.bin --leveldb f.db --index-stats --obs f.obs.db3 --counts f.counts --min-game 1 --json",
    "make-book famous.pgn --explorer f.idx --json",
    "make-book online.pgn --explorer o.idx --time-control 180-480 --json",
    "make-book f.counts --bin c.bin --min-game 2 --json",
    "make-book selfplay.pgn --suite s.epd --min-game 1 --limit 4 --force --json",
    "make-book selfplay.pgn --suite s.pgn --min-game 1 --limit 4 --force --json",
    "make-book flawed.pgn --bin x.bin --min-game 1 --eco B --allow-empty --json",
    "evals evals.epd --out e.evals --json",
    "evals e.evals --out e.epd --json",
    "show f.bin --evals e.evals --json",
    "show f.obs.db3 --json",
    "key --json",
    "games f.idx --json",
    "games f.db --json",
    "show f.idx --evals e.evals --clocks --json",
    "show f.idx --player morphy --resulting --json",
    "show f.db --json",
    "openings f.idx --json",
    "openings f.idx --player morphy --families --json",
    "prepare f.idx --opponent anderssen --player morphy --color black --json",
    "merge-book f.bin c.bin --out m.bin --json",
    "merge-book f.obs.db3 f.obs.db3 --out m.obs.db3 --json",
    "edit f.bin --set e4=7 --out edited.bin --json",
    "filter f.bin --out filtered.bin --best 1 --json",
    "diff f.bin edited.bin --json",
    "tree f.bin --max-ply 2 --out t.jsonl --json",
    "convert f.obs.db3 f.csv --json",
    "extract famous.pgn --position check --json",
    "info-book f.bin --json",
    "verify f.bin --json",
    "verify f.obs.db3 --json",
    "verify f.idx --json",
    "verify s.epd --json",
    "suite-report line.pgn match.pgn --json",
    "repertoire build famous.pgn --color white --out r.pgn --json",
    "repertoire check r.pgn famous.pgn --color white --json",
    "repertoire check r.pgn --color white --contradictions --json",
    "repertoire gaps r.pgn --color white --against online.pgn --json",
    "repertoire new online.pgn --reference f.idx --json",
    "repertoire cards r.pgn --color white --out r.csv --json",
];

#[test]
fn the_command_line_writes_snake_case() {
    let dir = temp();
    let dir = dir.path();
    for name in ["famous.pgn", "online.pgn", "selfplay.pgn"] {
        fs::copy(sample(name), dir.join(name)).unwrap();
    }
    let flawed = "1. e4 e5 2. Ke3 1-0\n\n[Result \"remis\"]\n\n1. d4 1-0\n";
    fs::write(dir.join("flawed.pgn"), flawed).unwrap();
    let evals = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - ce 20;\n\
                 rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - ce -30;\n";
    fs::write(dir.join("evals.epd"), evals).unwrap();
    let game = |white: &str, black: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n")
    };
    fs::write(dir.join("match.pgn"), game("A", "B") + &game("B", "A")).unwrap();
    fs::write(dir.join("line.pgn"), "[Result \"*\"]\n\n1. e4 *\n").unwrap();
    let mut shown = BTreeSet::new();
    for line in PRINTED {
        let is_name = |word: &&str| !word.contains('.') && !word.starts_with("--");
        let words = line.split(' ').take_while(is_name);
        let words: Vec<&str> = words.collect();
        shown.insert(words.join(" "));
        let printed = run(dir, &format!("-q {line}"));
        // `diff` fails if books differ.
        let text = String::from_utf8_lossy(&printed.stdout);
        assert!(has_short_numbers(&text), "{line}: {text}");
        let document: Value = serde_json::from_slice(&printed.stdout)
            .unwrap_or_else(|err| panic!("{line}: {err}: {printed:?}"));
        for_each_key(&document, "", &mut |path, name| {
            assert!(is_lower(name, |c| c == '_'), "{line}: {path}.{name}");
        });
    }
    assert_eq!(shown, commands_with_json(dir));
    // Each line is a document of its own.
    for line in ok(dir, "tree f.bin --max-ply 2 --format jsonl").lines() {
        assert!(has_short_numbers(line), "{line}");
        for_each_key(
            &serde_json::from_str(line).unwrap(),
            "",
            &mut |path, name| {
                assert!(is_lower(name, |c| c == '_'), "tree: {path}.{name}");
            },
        );
    }
}

/// Requests that together get every kind of JSON answer.
#[cfg(feature = "serve")]
pub const ANSWERED: [&str; 29] = [
    "/lichess?history=true&clocks=true",
    "/lichess?history=moves&transpositions=true&resulting=true&play=e2e4",
    "/lichess?player=Morfy,+Paul",
    "/games?player=Morfy,+Paul&play=e2e4",
    "/masters",
    "/player?player=Morphy,+Paul&color=white",
    "/games?limit=200&fold=match&duplicates=once",
    "/game/00000000",
    "/book",
    "/about",
    "/read?text=1.+e4+e5",
    "/read?text=%5BWhite+%22A%22%5D%0A%0A1.+e4+%7B%5B%25clk+0:01:00%5D+text%7D+e5+(1...+c5)+*",
    "/suggest?field=player&text=m",
    "/suggest?field=event&text=o",
    "/suggest?field=opening&text=sic",
    "/facets",
    "/facets?player=Morphy,+Paul",
    "/openings",
    "/openings?player=Morphy,+Paul",
    "/prepare?player=Anderssen,+Adolf&me=Morphy,+Paul&color=white&lines=5",
    "/scores?by=rating",
    "/book.bin?count=true&minGame=1",
    "/book.pgn?count=true&minGame=1&side=white",
    "/repertoire.bin?count=true&side=white",
    "/repertoire.pgn?count=true&side=white",
    "/repertoire",
    "/repertoire?play=e2e4",
    "/gaps?side=white&repertoire=r",
    "/gaps?side=white&repertoire=r&limit=1",
];

/// Requests to a server of an index of counts.
#[cfg(feature = "serve")]
pub const COUNTED: [&str; 4] = ["/lichess?history=true", "/masters", "/about", "/facets"];

/// Objects whose keys are data: speeds, rating groups, years, variants and moves.
#[cfg(feature = "serve")]
const DATA: [&str; 5] = [
    ".speeds",
    ".ratings",
    ".years",
    ".variants",
    ".history.moves",
];

/// The files that [`ANSWERED`] needs.
#[cfg(feature = "serve")]
pub const SERVED: &str =
    "f.idx --book f.obs.db3 --book f.bin --repertoire r.pgn:white --evals e.evals";

/// Makes the files of [`SERVED`], and an index of counts.
#[cfg(feature = "serve")]
pub fn make_served(dir: &Path) {
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    fs::copy(sample("online.pgn"), dir.join("online.pgn")).unwrap();
    let evals = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - ce 20;\n\
                 rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - ce -30;\n";
    fs::write(dir.join("evals.epd"), evals).unwrap();
    for line in [
        "make-book -q famous.pgn online.pgn --explorer f.idx",
        "make-book -q famous.pgn --obs f.obs.db3 --min-game 1",
        "make-book -q famous.pgn --bin f.bin --min-game 1",
        "make-book -q famous.pgn --counts f.counts --by speed,rating,month",
        "make-book -q f.counts --explorer counted.idx",
        "evals -q evals.epd --out e.evals",
        "repertoire build -q online.pgn --color white --out r.pgn",
    ] {
        ok(dir, line);
    }
}

#[cfg(feature = "serve")]
#[test]
fn the_server_writes_camel_case() {
    let dir = temp();
    let dir = dir.path();
    make_served(dir);
    let mut undocumented = BTreeSet::new();
    for (sources, paths) in [(SERVED, &ANSWERED[..]), ("counted.idx", &COUNTED)] {
        let served = crate::common::served::Served::start(dir, sources);
        for path in paths {
            let reply = served.ask("GET", path, "Accept: application/json\r\n");
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            let kind = reply.header("content-type").unwrap_or_default();
            assert!(kind.contains("json"), "{path}: {kind}");
            for line in reply.text().lines() {
                assert!(has_short_numbers(line), "{path}: {line}");
                for_each_key(&serde_json::from_str(line).unwrap(), "", &mut |at, name| {
                    let is_camel = is_lower(name, |c| c.is_ascii_uppercase());
                    let is_data = DATA.contains(&at);
                    assert!(is_data || is_camel, "{path}: {at}.{name}");
                    let (route, _) = path.split_once('?').unwrap_or((path, ""));
                    if !is_data && !crate::api_page::is_documented(route, name) {
                        undocumented.insert(format!("{at}.{name} of {route}"));
                    }
                });
            }
        }
    }
    assert!(
        undocumented.is_empty(),
        "docs/api.md lacks {undocumented:?}"
    );
}
