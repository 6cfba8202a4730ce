//! Checks the documents: their console blocks, Python code, example programs, links, and the options that they mention.

// The commands in the documents are for Unix shells.
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[cfg(feature = "serve")]
use crate::common::served::Served;
use crate::common::{sample, temp};
#[cfg(feature = "serve")]
use serde_json::Value;
use tempfile::TempDir;

/// The documents with console blocks, and the minimum number of commands in each.
const DOCUMENTS: [(&str, usize); 12] = [
    ("README.md", 11),
    ("docs/engine-tester.md", 9),
    ("docs/club-player.md", 13),
    ("docs/bot-owner.md", 18),
    ("docs/data-person.md", 9),
    ("docs/operator.md", 3),
    ("docs/explorer.md", 3),
    ("docs/api.md", 2),
    ("docs/reference.md", 5),
    ("docs/formats.md", 20),
    ("docs/compatibility.md", 8),
    ("docs/scale.md", 11),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|err| panic!("{path}: {err}"))
}

/// A command in a document, with the output that the document shows.
struct Transcript {
    command: String,
    output: String,
}

/// Splits lines into commands, which begin with `$ `, and their outputs.
fn transcripts<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Transcript> {
    let mut found: Vec<Transcript> = Vec::new();
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Transcript {
                command: command.to_owned(),
                output: String::new(),
            });
        } else if let Some(last) = found.last_mut() {
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    found
}

/// Returns the code blocks of a document in a language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("\n```{language}\n");
    document
        .split(&start)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("\n```")?.0))
        .collect()
}

/// Removes what differs between runs from an output.
fn steady(output: &str) -> String {
    output
        .lines()
        .filter(|line| !line.ends_with(" seconds"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Creates a directory that contains only the sample games.
fn directory() -> TempDir {
    let dir = temp();
    // A link would lead to games outside of the directory.
    fs::create_dir(dir.path().join("data")).unwrap();
    for entry in fs::read_dir(sample("")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(
            entry.path(),
            dir.path().join("data").join(entry.file_name()),
        )
        .unwrap();
    }
    dir
}

/// Runs the commands in order, and reports all whose output differs.
#[track_caller]
fn assert_prints(dir: &Path, document: &str, transcripts: &[Transcript]) {
    let bin = Path::new(env!("CARGO_BIN_EXE_polybook")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}:/usr/games", bin.display());
    let mut different = String::new();
    for Transcript { command, output } in transcripts {
        let program = command.split(' ').next().unwrap_or_default();
        if ["cmp", "polyglot", "python3", "sqlite3", "tar"].contains(&program)
            && crate::common::program(&[program]).is_none()
        {
            // Later commands may depend on this program's output.
            break;
        }
        let run = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(dir)
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", dir.join("cache"))
            .output()
            .unwrap();
        let printed = String::from_utf8(run.stdout).unwrap();
        if steady(&printed) != steady(output) {
            different += &format!("$ {command}\n{printed}instead of\n{output}\n");
        }
    }
    assert!(different.is_empty(), "{document}:\n{different}");
}

#[test]
fn the_console_blocks_print_what_they_show() {
    for (path, least) in DOCUMENTS {
        let document = read(path);
        let blocks = blocks(&document, "console");
        let transcripts = transcripts(blocks.iter().flat_map(|block| block.split('\n')));
        let count = transcripts.len();
        assert!(count >= least, "{path}: {count} commands");
        assert_prints(directory().path(), path, &transcripts);
    }
}

#[test]
fn the_recommended_settings_work() {
    let dir = temp();
    let dir = dir.path();
    let rated = "[WhiteElo \"2500\"]\n[BlackElo \"2500\"]\n[White \"";
    let games = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let end = games[..games.len() / 8].rfind("[Event ").unwrap();
    let games = &games[..end];
    // Each round is another game for `--drop-duplicates`.
    let games: String = (0..10)
        .map(|round| games.replace("[White \"", &format!("{rated}{round} ")))
        .collect();
    fs::write(dir.join("games.pgn"), games).unwrap();
    let document = read("docs/recommended-settings.md");
    let code = blocks(&document, "sh");
    let transcripts: Vec<Transcript> = code
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| Transcript {
            command: format!("{line} --quiet"),
            output: String::new(),
        })
        .collect();
    assert_eq!(transcripts.len(), 5);
    assert_prints(dir, "docs/recommended-settings.md", &transcripts);
    for output in ["book.bin", "suite.epd", "white.pgn", "black.pgn"] {
        assert!(
            fs::metadata(dir.join(output)).unwrap().len() > 500,
            "{output}"
        );
    }
}

/// Follows the recipe from monthly files to a server, including the next month.
#[cfg(feature = "serve")]
#[test]
fn the_recipe_of_counts_ends_in_servers_that_answer_as_games_do() {
    let document = read("docs/scale.md");
    let (_, recipe) = document.split_once("\n## An explorer of counts\n").unwrap();
    let (recipe, _) = recipe.split_once("\n## ").unwrap();
    let dir = directory();
    let dir = dir.path();
    let mut games: Vec<&str> = Vec::new();
    let mut served = Vec::new();
    for part in recipe.split("```") {
        if let Some(commands) = part.strip_prefix("console\n") {
            assert_prints(dir, "docs/scale.md", &transcripts(commands.lines()));
            let words = commands.split_whitespace();
            games.extend(words.filter(|word| word.ends_with(".pgn")));
            continue;
        }
        for indexes in part.split("`polybook serve ").skip(1) {
            let indexes = indexes.split('`').next().unwrap();
            let pgns = games.join(" ");
            let line = "--max-ply 30 --explorer games.idx --force";
            crate::common::ok(dir, &format!("make-book -q {pgns} {line}"));
            let [of_counts, of_games] =
                [indexes, "games.idx"].map(|indexes| Served::start(dir, indexes));
            let mut answered = 0;
            for play in [
                "",
                "e2e4",
                "e2e4,e7e5",
                "e2e4,c7c5,g1f3",
                "d2d4",
                "e2e4,e7e5,g1f3",
            ] {
                for filters in ["", "&history=true", "&speeds=blitz,classical&until=2024-04"] {
                    let path = format!("/lichess?play={play}{filters}&moves=40");
                    let [ours, theirs] = [&of_counts, &of_games].map(|served| served.json(&path));
                    for field in ["white", "draws", "black", "history", "opening"] {
                        assert_eq!(ours[field], theirs[field], "{indexes}: {path}: {field}");
                    }
                    let moves = |answer: &Value| {
                        let mut moves = answer["moves"].as_array().unwrap().clone();
                        moves.iter_mut().for_each(|mv| mv["game"] = Value::Null);
                        moves
                    };
                    assert_eq!(moves(&ours), moves(&theirs), "{indexes}: {path}");
                    answered += moves(&ours).len();
                }
            }
            assert!(answered > 50, "{answered}");
            served.push(indexes);
        }
    }
    assert_eq!(
        served,
        ["explorer.idx", "explorer.idx new.idx", "explorer.idx"]
    );
    assert_eq!(games.len(), 3);
}

#[test]
fn the_python_example_finds_the_opera_game() {
    let Some(python) = crate::common::python(&["chess", "plyvel"]) else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    let line = format!(
        "make-book -q {} --leveldb data.idx --index-stats",
        pgn.display()
    );
    crate::common::ok(dir.path(), &line);
    let document = read("docs/data-person.md");
    let blocks = blocks(&document, "python");
    let example = blocks
        .iter()
        .find(|block| block.contains("plyvel"))
        .unwrap();
    let output = Command::new(python)
        .args(["-c", example])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.starts_with("Morphy, Paul - Duke Karl"),
        "{printed}{error}"
    );
    assert!(
        printed.contains("17. Rd8#") && printed.ends_with("d4 1 white 1 black 0\n"),
        "{printed}{error}"
    );
}

#[test]
fn the_python_loop_passes_over_the_header() {
    let Some(python) = crate::common::python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    crate::common::ok(dir.path(), &format!("make-book -q {}", pgn.display()));
    let document = read("docs/compatibility.md");
    let blocks = blocks(&document, "python");
    assert_eq!(blocks.len(), 1);
    let output = Command::new(python)
        .args(["-c", &format!("import chess.polyglot\n{}", blocks[0])])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let entries = crate::common::records(&dir.path().join("book.bin")).len();
    assert_eq!(printed.lines().count(), entries);
    assert!(printed.contains("e2e4 "), "{printed}");
}

/// Returns a command that runs an example program. `cargo test` builds the examples next to the tests.
fn example(name: &str) -> Option<Command> {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        crate::common::skip(&format!("{} is not built", program.display()));
        return None;
    }
    let mut command = Command::new(program);
    command.current_dir(root());
    Some(command)
}

/// Returns the output of an example program.
#[track_caller]
fn printed(mut command: Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_of_a_books_moves() {
    let Some(mut program) = example("book_moves") else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    crate::common::ok(
        dir.path(),
        &format!("make-book -q {} --min-game 1", pgn.display()),
    );
    program.arg(dir.path().join("book.bin")).arg("1. e4");
    assert_eq!(printed(program), "e5       66.7%\nc5       33.3%\n");
}

#[test]
fn the_example_of_the_most_played_line() {
    let Some(mut program) = example("most_played") else {
        return;
    };
    program.args(["data/selfplay.pgn", "data/famous.pgn"]);
    let line = printed(program);
    // The OOBS database of the tour has the same line.
    assert!(line.starts_with("1. e4 "), "{line}");
    assert!(line.contains("1... Nf6         42 games\n"), "{line}");
}

#[test]
fn the_example_of_the_games_of_a_position() {
    let Some(mut program) = example("games_of_position") else {
        return;
    };
    program.args(["data/famous.pgn", "1. e4 e5 2. Nf3 d6"]);
    assert_eq!(
        printed(program),
        "1 of 45 games\nMorphy, Paul - Duke Karl / Count Isouard 1-0\nd2d4 White won 1, Black won 0\n"
    );
}

#[test]
fn the_example_of_an_explorer() {
    let explored = |args: &[&str]| {
        let mut program = example("explorer")?;
        program.args(args);
        Some(printed(program))
    };
    let famous = "data/famous.pgn";
    let Some(all) = explored(&[famous, "1. e4 e5"]) else {
        return;
    };
    let first = all.lines().next().unwrap();
    assert!(
        first.starts_with("Nf3 ") && first.contains(" games: White won "),
        "{all}"
    );
    let of_player = explored(&[famous, "e2e4,e7e5", "Morphy, Paul"]).unwrap();
    assert!(
        of_player.len() < all.len() && !of_player.is_empty(),
        "{of_player}"
    );
    let unknown = explored(&[famous, "1. e4", "Morfy, Paul"]).unwrap();
    assert!(unknown.contains("Morphy, Paul"), "{unknown}");
}

#[test]
fn the_commands_without_json_are_those_that_the_reference_names() {
    fn help(command: &str) -> String {
        crate::common::ok(Path::new("."), &format!("{command} --help"))
    }
    fn commands(help: &str) -> Vec<&str> {
        let (_, commands) = help.split_once("Commands:\n").unwrap_or_default();
        let names = commands
            .lines()
            .map_while(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").collect()
    }
    /// Returns the command if it lacks the option, or those of its subcommands that lack it.
    fn without_json(command: &str) -> Vec<String> {
        let help = help(command);
        let has_it = help
            .lines()
            .any(|line| line.trim_start().starts_with("--json"));
        let parts = commands(&help);
        match (has_it, parts.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![command.to_owned()],
            (false, false) => {
                let parts = parts.iter().map(|part| format!("{command} {part}"));
                parts.flat_map(|part| without_json(&part)).collect()
            }
        }
    }
    let all = help("");
    let without = commands(&all).into_iter().flat_map(without_json);
    let without: Vec<String> = without.map(|name| format!("`{name}`")).collect();
    let (last, others) = without.split_last().unwrap();
    let others = others.join(", ");
    let sentence = format!("Every command has it except {others} and {last}.");
    let document = read("docs/reference.md").replace("\n  ", " ");
    assert!(document.contains(&sentence), "{sentence}");
}

#[test]
fn the_readme_is_short() {
    assert!(read("README.md").lines().count() < 220);
}

#[test]
fn the_page_about_the_architecture_fits_two_screens() {
    let page = read("ARCHITECTURE.md");
    assert!(page.lines().count() <= 130);
    let wide = page.lines().find(|line| line.chars().count() > 120);
    assert_eq!(wide, None);
}

#[test]
fn paths_that_documents_name_exist() {
    let mut named = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            if ["src/", "tests/", "benches/", "examples/", "packaging/"]
                .iter()
                .any(|directory| word.starts_with(directory))
                && !word.contains([' ', '*'])
            {
                named += 1;
                assert!(root().join(word).exists(), "{}: {word}", document.display());
            }
        }
    }
    assert!(named >= 5, "{named} paths");
}

/// Returns the documents of the project.
fn documents() -> Vec<PathBuf> {
    let directories = [
        "",
        "docs",
        "data",
        "contrib/spark",
        ".github",
        ".github/ISSUE_TEMPLATE",
    ];
    let mut found: Vec<PathBuf> = directories
        .into_iter()
        .filter_map(|directory| fs::read_dir(root().join(directory)).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

/// Returns the anchors of a document's headings, as GitHub generates them.
fn anchors(document: &str) -> Vec<String> {
    let mut inside = false;
    document
        .lines()
        .filter(|line| {
            inside ^= line.starts_with("```");
            !inside && line.starts_with('#')
        })
        .map(|heading| {
            heading
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// Returns the targets of a document's links.
fn links(document: &str) -> impl Iterator<Item = &str> {
    document
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0))
}

#[test]
fn the_links_lead_somewhere() {
    let documents: BTreeMap<PathBuf, String> = documents()
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.canonicalize().unwrap(), text)
        })
        .collect();
    let mut checked = 0;
    for (path, text) in &documents {
        let local = links(text).filter(|link| !link.contains("://"));
        for link in local {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let target = target
                .canonicalize()
                .unwrap_or_else(|err| panic!("{}: {link}: {err}", path.display()));
            if !anchor.is_empty() {
                let known = anchors(&documents[&target]);
                let found = known.iter().any(|known| known == anchor);
                assert!(found, "{}: {link}: {known:?}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} links");
}
