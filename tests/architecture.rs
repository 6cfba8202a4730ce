//! Checks ARCHITECTURE.md: no module imports a module below it in the table.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Finds the Rust files of a directory and its subdirectories.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the modules of the crate that a file imports with `crate::`, ignoring tests and comments.
fn imports(source: &str) -> Vec<String> {
    let code = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect();
    let paths = code.split("crate::").skip(1);
    let mut found: Vec<String> = paths
        .flat_map(|path| match path.strip_prefix('{') {
            Some(group) => members(group),
            None => vec![path.to_owned()],
        })
        .collect();
    found = found.iter().flat_map(|path| modules(path)).collect();
    found.retain(|name| !name.is_empty());
    found
}

/// Returns the first two names of an imported path, joined by `/`. A group of names after the first one gives one path for each
/// of them.
fn modules(path: &str) -> Vec<String> {
    let name = |path: &str| {
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        path[..end.unwrap_or(path.len())].to_owned()
    };
    let room = name(path);
    let Some(inner) = path[room.len()..].strip_prefix("::") else {
        return vec![room];
    };
    let inner = match inner.strip_prefix('{') {
        Some(group) => members(group),
        None => vec![inner.to_owned()],
    };
    inner
        .iter()
        .filter(|path| !path.is_empty())
        .map(|path| format!("{room}/{}", name(path)))
        .collect()
}

/// Returns the members of a group of imports up to its closing brace, each with its own nested groups.
fn members(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut found = vec![String::new()];
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        found.last_mut().expect("it is never empty").push(c);
    }
    found
}

/// Functions and types that start, join or wait for threads, or that fail because a thread panicked.
const SUPERVISED: [&str; 6] = [
    "thread::spawn",
    "thread::Builder",
    "mpsc",
    "catch_unwind",
    ".lock().expect",
    ".lock().unwrap()",
];

#[test]
fn one_module_of_the_library_starts_threads() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut checked = 0;
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        // The command line and the server may start other threads, because no output depends on these: signals, the
        // progress bar, the log.
        let is_other = path.starts_with("cli") || path.starts_with("serve");
        if is_other || path == Path::new("task.rs") || path.ends_with("tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        let code = source.split("\nmod tests {").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let found = SUPERVISED.iter().find(|name| line.contains(**name));
            // A panic of the crate `parquet` means that a file is damaged.
            let is_parquet = path == Path::new("formats/counts/parquet_file.rs")
                && found == Some(&"catch_unwind");
            if let (Some(found), false, false) = (found, is_comment, is_parquet) {
                panic!(
                    "{}:{}: {found}, which `task` has",
                    path.display(),
                    number + 1
                );
            }
        }
        checked += 1;
    }
    assert!(checked >= 100, "{checked} files");
}

#[test]
fn imports_are_found() {
    let source = "use crate::{\n    error::Error,\n    games::{pgn::{Tags, Cutter}, openings}, counts,\n};\n// crate::book\n\
        fn f() { crate::obs::g() }\n#[cfg(test)]\nmod tests;\nuse crate::task;\n#[cfg(test)]\nmod tests {\n use crate::index;\n}";
    let expected = "error/Error games/pgn games/openings counts obs/g task";
    assert_eq!(imports(source).join(" "), expected);
}

#[test]
fn modules_know_only_those_above_them_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let floors: Vec<&str> = architecture
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(module, _)| module)
        .collect();
    assert!(floors.len() >= 10, "{floors:?}");

    let src = root.join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut checked = 0;
    for file in files {
        let path = file.strip_prefix(&src).unwrap();
        let place = path.with_extension("");
        let place = place.to_str().unwrap().replace('\\', "/");
        if ["lib", "main"].contains(&place.as_str()) {
            continue;
        }
        // A module in a room has a row of its own in the table, or belongs to the row of its room.
        let floor_of = |place: &str| {
            let mut names = place.split('/');
            let (room, module) = (names.next().unwrap(), names.next());
            let module = module.map(|module| format!("{room}/{module}"));
            let position = |name: &str| floors.iter().position(|row| *row == name);
            module
                .and_then(|module| position(&module))
                .or_else(|| position(room))
        };
        let is_room = |name: &str| {
            floors
                .iter()
                .any(|row| row.starts_with(&format!("{name}/")))
        };
        let Some(floor) = floor_of(&place) else {
            assert!(
                place.strip_suffix("/mod").is_some_and(is_room),
                "{place} is not in the table"
            );
            continue;
        };
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            let Some(imported) = floor_of(&import) else {
                // The root of the crate exports some modules of the rooms for users of the library.
                let name = import.split('/').next().unwrap();
                let is_exported = floors.iter().any(|row| row.ends_with(&format!("/{name}")));
                assert!(
                    !is_exported && !is_room(name),
                    "{place} imports {import} without its room"
                );
                continue;
            };
            assert!(imported <= floor, "{} imports {import}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 100, "{checked} imports");
}

/// A test that returns early without the helper would not be reported as skipped.
#[test]
fn tests_skip_through_the_common_helpers() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        if !is_code || path.ends_with(file!()) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for own in ["\"skipped", "\"POLYBOOK_CORPUS\"", "\"POLYBOOK_WITHOUT"] {
            assert!(!text.contains(own), "{}: {own}", path.display());
        }
    }
}
