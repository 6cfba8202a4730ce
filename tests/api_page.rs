//! The page about the API's responses: its samples are what the server answers, and it names every field.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::common::{ok, sample, served::Served, temp};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    fs::read_to_string(path).unwrap()
}

/// Returns the words in backticks of a text.
fn code_words(text: &str) -> BTreeSet<&str> {
    let words = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    words.collect()
}

/// Returns `true` if a field of a route's response is documented: in the section of the route, in the section about
/// shared fields, or on the explorer's page.
pub fn is_documented(route: &str, field: &str) -> bool {
    let (api, explorer) = (page("api.md"), page("explorer.md"));
    let mut sections = api.split("\n## ");
    let is_of_route = |section: &&str| {
        let heading = section.lines().next().unwrap_or_default();
        heading.starts_with("Fields that several")
            || heading.split(", ").any(|name| {
                let (start, _) = name.split_once('{').unwrap_or((name, ""));
                name == route || start != name && route.starts_with(start)
            })
    };
    sections.any(|section| is_of_route(&section) && code_words(section).contains(field))
        || code_words(&explorer).contains(field)
}

/// Removes the versions of polybook and of files, which change.
fn without_versions(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            fields.remove("version");
            fields.values_mut().for_each(without_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_versions),
        _ => {}
    }
}

/// Shortens the lists of `answered` that end with "..." in `shown`.
fn shorten(answered: &mut Value, shown: &Value) {
    match (answered, shown) {
        (Value::Array(answered), Value::Array(shown)) => {
            if shown.last() == Some(&Value::from("...")) {
                assert!(answered.len() >= shown.len(), "{shown:?}");
                answered.truncate(shown.len() - 1);
                answered.push(Value::from("..."));
            }
            answered
                .iter_mut()
                .zip(shown)
                .for_each(|(one, other)| shorten(one, other));
        }
        (Value::Object(answered), Value::Object(shown)) => {
            for (name, value) in answered {
                shown
                    .get(name)
                    .into_iter()
                    .for_each(|other| shorten(value, other));
            }
        }
        _ => {}
    }
}

#[test]
fn the_samples_are_what_the_server_answers() {
    let page = page("api.md");
    let dir = temp();
    let dir = dir.path();
    fs::create_dir(dir.join("data")).unwrap();
    fs::copy(sample("online.pgn"), dir.join("data/online.pgn")).unwrap();
    for line in page.lines() {
        if let Some(command) = line.strip_prefix("$ polybook ") {
            ok(dir, command);
        }
    }
    let mut lines = page.lines();
    let server = lines.find_map(|line| line.strip_prefix("polybook serve "));
    let served = Served::start(dir, server.unwrap());
    let mut samples = 0;
    for block in page.split("\n```http\n").skip(1) {
        let (request, rest) = block.split_once("\n\n").unwrap();
        let (body, _) = rest.split_once("\n```").unwrap();
        let (path, reply) = match request.split_once(' ').unwrap() {
            ("GET", path) => (
                path,
                served.ask("GET", path, "Accept: application/json\r\n"),
            ),
            (_, request) => {
                let (path, sent) = request.split_once('\n').unwrap();
                let (kind, sent) = sent.split_once('\n').unwrap();
                (path, served.post(path, kind, sent))
            }
        };
        let mut answered = serde_json::from_str(&reply.text()).unwrap();
        let mut shown = serde_json::from_str(body).unwrap();
        without_versions(&mut answered);
        without_versions(&mut shown);
        shorten(&mut answered, &shown);
        assert_eq!(answered, shown, "{path}");
        samples += 1;
    }
    assert!(samples >= 17, "{samples}");
}
