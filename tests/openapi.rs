//! The description of the API: its routes, parameters and types are those of the server, for Python and for TypeScript.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::{
    common::{python, run_python, served::Served, skip, temp},
    json_names::{ANSWERED, COUNTED, SERVED, make_served},
};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// The parameters that a request needs, for each path that needs some.
const NEEDED: [(&str, &str); 14] = [
    ("/player", "player=Morphy,+Paul&color=white"),
    ("/personal", "player=Morphy,+Paul&color=white"),
    (
        "/prepare",
        "player=Anderssen,+Adolf&me=Morphy,+Paul&color=white&lines=3",
    ),
    ("/scores", "by=rating"),
    ("/suggest", "field=player&text=m"),
    ("/read", "text=1.+e4"),
    ("/gaps", "repertoire=r&side=white"),
    ("/practise", "repertoire=r&side=white"),
    ("/repertoire", "repertoire=r&side=white"),
    ("/repertoire.bin", "side=white"),
    ("/repertoire.pgn", "side=white"),
    ("/book.bin", "minGame=1"),
    ("/book.pgn", "minGame=1"),
    ("/repertoires", "name=sent&side=white"),
];

/// Returns the query string that a request to `path` needs.
fn needed(path: &str) -> &'static str {
    let known = NEEDED.iter().find(|(known, _)| *known == path);
    known.map_or("", |(_, query)| query)
}

/// An answer of the server, with the path as the document spells it.
struct Recorded {
    path: String,
    method: &'static str,
    status: u16,
    media_type: String,
    body: Vec<u8>,
}

impl Recorded {
    fn document(&self) -> Option<Value> {
        let is_json = self.media_type.ends_with("json");
        is_json.then(|| serde_json::from_slice(&self.body).unwrap())
    }
}

/// A server and its description of the API.
struct Described {
    served: Served,
    document: Value,
}

impl Described {
    fn start(dir: &Path) -> Described {
        make_served(dir);
        let served = Served::start(dir, SERVED);
        let document = served.json("/openapi.json");
        Described { served, document }
    }

    /// Returns each path with each method, and the description of these requests.
    fn operations(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.document["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap();
            methods
                .iter()
                .map(|(method, described)| (&**path, &**method, described))
        })
    }

    /// Returns the names and schemas of the parameters of an operation: those in the address, or the fields of a form.
    fn parameters<'a>(&'a self, described: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let form = &described["requestBody"]["content"][FORM]["schema"]["properties"];
        if let Some(fields) = form.as_object() {
            return fields
                .iter()
                .map(|(name, schema)| (&**name, schema))
                .collect();
        }
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| match parameter["$ref"].as_str() {
            Some(path) => self.document.pointer(&path[1..]).unwrap(),
            None => parameter,
        });
        parameters
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| (parameter["name"].as_str().unwrap(), &parameter["schema"]))
            .collect()
    }

    /// Sends a request with a query string to a path of the document. `accept` is the media type that the client accepts.
    fn ask(&self, path: &str, method: &'static str, query: &str, accept: &str) -> Recorded {
        let address = path.replace("{id}", "00000000");
        let described = &self.document["paths"][path][method];
        let kinds = described["requestBody"]["content"].as_object();
        let kind = kinds.and_then(|kinds| kinds.keys().next());
        let headers = format!("Accept: {accept}\r\nX-Polybook: 1\r\n");
        let with_kind =
            |kind: &str| format!("Accept: {accept}\r\nX-Polybook: 1\r\nContent-Type: {kind}");
        let in_address = format!("{address}?{query}");
        let reply = match kind.map(|kind| &**kind) {
            None => self.served.ask("GET", &in_address, &headers),
            Some(FORM) => self.served.post(&address, &with_kind(FORM), query),
            Some(JSON) => {
                let fens = json!([
                    "8/8/8/8 w",
                    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"
                ]);
                self.served
                    .post(&in_address, &with_kind(JSON), &fens.to_string())
            }
            Some(kind) => self
                .served
                .post(&in_address, &with_kind(kind), "1. e4 e5 2. Nf3 *\n"),
        };
        let media_type = reply.header("content-type").unwrap_or_default();
        Recorded {
            path: path.to_owned(),
            method,
            status: reply.status,
            media_type: media_type.split(';').next().unwrap().to_owned(),
            body: reply.body,
        }
    }

    /// Returns answers of each route, in each media type, and errors.
    fn answers(&self) -> Vec<Recorded> {
        let mut answers = Vec::new();
        for address in ANSWERED {
            let (path, query) = address.split_once('?').unwrap_or((address, ""));
            let path = if path.starts_with("/game/") {
                "/game/{id}"
            } else {
                path
            };
            answers.push(self.ask(path, "get", query, JSON));
        }
        // A repertoire that a visitor sent can be practised, and is listed by its secret.
        let sent = self.ask("/repertoires", "post", needed("/repertoires"), JSON);
        let id = sent.document().unwrap()["id"].as_str().unwrap().to_owned();
        answers.push(sent);
        answers.push(self.ask("/repertoires", "get", &format!("id={id}"), JSON));
        for answer in ["", "&play=e2e4&answer=e7e5", "&answer=e2e4", "&answer="] {
            let query = format!("repertoire={id}&side=white{answer}");
            answers.push(self.ask("/practise", "post", &query, JSON));
        }
        for (path, method, described) in self.operations() {
            let method = if method == "get" { "get" } else { "post" };
            let kinds = described["responses"]["200"]["content"].as_object();
            for kind in kinds.unwrap().keys() {
                // The answer is a file if `count` is missing.
                let is_counted = kind == JSON && self.parameters(described).contains_key("count");
                let count = if is_counted { "&count=true" } else { "" };
                let query = format!("{}{count}", needed(path));
                answers.push(self.ask(path, method, &query, kind));
            }
            // Most routes refuse these parameters.
            let wrong = format!("{}&play=x&variant=shogi&nosuch=1&nosuch=2", needed(path));
            answers.push(self.ask(path, method, &wrong, JSON));
        }
        answers
    }
}

#[test]
fn each_path_accepts_the_methods_of_the_document() {
    let dir = temp();
    let described = Described::start(dir.path());
    let mut methods: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, method, _) in described.operations() {
        let of_path = methods.entry(path).or_default();
        of_path.insert(method.to_uppercase());
    }
    assert!(methods.len() > 20);
    for (path, methods) in methods {
        let address = path.replace("{id}", "00000000");
        let headers = "Accept: application/json\r\nX-Polybook: 1\r\n";
        let reply = described.served.ask("DELETE", &address, headers);
        assert_eq!(reply.status, 405, "{path}");
        let allowed = reply.header("allow").unwrap().split(',');
        let allowed = allowed.map(str::to_owned).filter(|method| method != "HEAD");
        assert_eq!(allowed.collect::<BTreeSet<_>>(), methods, "{path}");
        let error: Value = serde_json::from_slice(&reply.body).unwrap();
        assert!(error["error"].is_string(), "{path}");
    }
}

/// Returns the names of parameters that an error message says a route accepts. `conditions` are the names of all
/// conditions.
fn accepted<'a>(message: &'a str, conditions: &[&'a str]) -> BTreeSet<&'a str> {
    let (_, list) = message.split_once("this address accepts ").unwrap();
    let Some(list) = list.strip_prefix("only the parameters ") else {
        return BTreeSet::new();
    };
    let (own, others) = match list.split_once(", and conditions on games") {
        None => return list.split(", ").collect(),
        Some((own, others)) => (own, others.strip_prefix(" other than ")),
    };
    let refused: Vec<&str> = others
        .into_iter()
        .flat_map(|names| names.split(", "))
        .collect();
    let conditions = conditions.iter().filter(|name| !refused.contains(name));
    own.split(", ").chain(conditions.copied()).collect()
}

#[test]
fn each_route_accepts_the_parameters_of_the_document() {
    let dir = temp();
    let described = Described::start(dir.path());
    let about = described.served.json("/about");
    let conditions = about["conditions"].as_array().unwrap();
    let conditions: Vec<&str> = conditions
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut refusing = 0;
    for (path, method, operation) in described.operations() {
        let method = if method == "get" { "get" } else { "post" };
        let query = match path {
            "/practise" => "",
            _ => needed(path),
        };
        let known = described.parameters(operation);
        let reply = described.ask(path, method, &format!("{query}&nosuch=1"), JSON);
        let text = String::from_utf8_lossy(&reply.body).replace("\\\"", "\"");
        if reply.status == 200 {
            // Lichess's routes ignore unknown parameters.
            let ignoring = [
                "/lichess",
                "/master",
                "/player",
                "/personal",
                "/openapi.json",
            ];
            assert!(
                ignoring.iter().any(|start| path.starts_with(start)),
                "{path}: {text}"
            );
            continue;
        }
        assert_eq!(reply.status, 400, "{path}");
        let message = text.trim_end_matches("\"}");
        let names: BTreeSet<&str> = known.keys().copied().collect();
        assert_eq!(accepted(message, &conditions), names, "{method} {path}");
        refusing += 1;
    }
    assert!(refusing > 20, "{refusing}");
}

#[test]
fn the_server_reads_the_values_that_the_document_allows() {
    let dir = temp();
    let described = Described::start(dir.path());
    let mut tried = 0;
    for (path, method, operation) in described.operations() {
        let method = if method == "get" { "get" } else { "post" };
        let parameters = described.parameters(operation);
        for (name, schema) in &parameters {
            let bounds = [schema.get("minimum"), schema.get("maximum")];
            // A limit above all ratings means no limit.
            let is_rating = name.ends_with("Elo");
            let bound = |bound: Option<&Value>, step: i64| {
                let text = bound.map(Value::to_string)?;
                let number: i64 = text.parse().ok()?;
                Some(text)
                    .filter(|_| step == 0 || number < i64::from(u32::MAX))
                    .map(|_| (number + step).to_string())
            };
            let [allowed, wrong]: [Vec<String>; 2] =
                match (schema["type"].as_str().unwrap(), schema.get("enum")) {
                    ("boolean", _) => [vec!["true".into(), "false".into()], vec!["perhaps".into()]],
                    (_, Some(values)) => {
                        let values = values.as_array().unwrap().iter();
                        let values = values.map(|value| value.as_str().unwrap().to_owned());
                        [values.collect(), vec!["perhaps".into()]]
                    }
                    ("integer", _) => [
                        bounds.into_iter().filter_map(|it| bound(it, 0)).collect(),
                        [
                            bound(bounds[0], -1),
                            bound(bounds[1], 1).filter(|_| !is_rating),
                            Some("x".into()),
                        ]
                        .into_iter()
                        .flatten()
                        .collect(),
                    ],
                    ("number", _) => [vec!["0.1".into()], vec!["0.05".into(), "x".into()]],
                    _ => continue,
                };
            let others = needed(path)
                .split('&')
                .filter(|pair| pair.split('=').next() != Some(*name));
            let mut query: Vec<&str> = others.filter(|pair| !pair.is_empty()).collect();
            // The color of the player needs a player.
            let has_player = query.iter().any(|pair| pair.starts_with("player="));
            if parameters.contains_key("player") && !has_player {
                query.push("player=Morphy,+Paul");
            }
            let query = query.join("&");
            for (values, is_allowed) in [(allowed, true), (wrong, false)] {
                for value in values {
                    let reply =
                        described.ask(path, method, &format!("{query}&{name}={value}"), JSON);
                    let text = String::from_utf8_lossy(&reply.body);
                    let is_refused = text.contains(&format!("the parameter {name} "));
                    assert_eq!(
                        is_refused, !is_allowed,
                        "{method} {path} {name}={value}: {text}"
                    );
                    tried += 1;
                }
            }
        }
        let body = &operation["requestBody"]["content"][FORM]["schema"]["required"];
        let of_form = body
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let in_address = operation["parameters"].as_array().into_iter().flatten();
        let in_address = in_address.filter(|it| it["required"] == true && it["in"] == "query");
        let in_address = in_address.filter_map(|it| it["name"].as_str());
        for name in of_form.chain(in_address) {
            let others = needed(path)
                .split('&')
                .filter(|pair| pair.split('=').next() != Some(name));
            let others: Vec<&str> = others.collect();
            let reply = described.ask(path, method, &others.join("&"), JSON);
            let text = String::from_utf8_lossy(&reply.body);
            assert!(
                text.contains(&format!("the parameter {name} ")),
                "{method} {path} {name}: {text}"
            );
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn a_name_that_no_game_has_is_answered_with_the_nearest_names() {
    let dir = temp();
    let described = Described::start(dir.path());
    let sent = described.ask("/repertoires", "post", needed("/repertoires"), JSON);
    let id = sent.document().unwrap()["id"].as_str().unwrap().to_owned();
    let mut answers = 0;
    for (path, method, operation) in described.operations() {
        let method = if method == "get" { "get" } else { "post" };
        let parameters = described.parameters(operation);
        for (name, wrong, right) in [
            ("player", "Morfy,+Paul", "Morphy, Paul"),
            ("me", "Morfy,+Paul", "Morphy, Paul"),
            ("opponent", "Andersen,+Adolf", "Anderssen, Adolf"),
            ("white", "Andersen,+Adolf", "Anderssen, Adolf"),
            ("black", "Morfy,+Paul", "Morphy, Paul"),
            ("event", "Casul+Blitz+game", "Casual Blitz game"),
            ("opening", "Sicilan", "Sicilian"),
        ] {
            if !parameters.contains_key(name) {
                continue;
            }
            let query = match path {
                "/practise" => format!("repertoire={id}&side=white"),
                _ => needed(path).to_owned(),
            };
            let others = query
                .split('&')
                .filter(|pair| !pair.is_empty() && pair.split('=').next() != Some(name));
            let mut query: Vec<&str> = others.collect();
            if name == "opponent" && !query.iter().any(|pair| pair.starts_with("player=")) {
                query.push("player=Morphy,+Paul");
            }
            let query = format!("{}&{name}={wrong}", query.join("&"));
            let kinds = &operation["responses"]["200"]["content"];
            for kind in kinds.as_object().unwrap().keys() {
                let reply = described.ask(path, method, &query, kind);
                let text = String::from_utf8_lossy(&reply.body);
                assert!(
                    text.contains(right),
                    "{method} {path} {query} {kind}: {text}"
                );
                answers += 1;
            }
        }
    }
    assert!(answers > 100, "{answers}");
}

#[test]
fn python_validates_the_document_and_the_answers() {
    let Some(python) = python(&["jsonschema", "openapi_spec_validator"]) else {
        return;
    };
    let dir = temp();
    let described = Described::start(dir.path());
    let mut answers = described.answers();
    let counted = Described {
        served: Served::start(dir.path(), "counted.idx"),
        document: described.document.clone(),
    };
    for address in COUNTED {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        answers.push(counted.ask(path, "get", query, JSON));
    }
    let mut answered = BTreeSet::new();
    let recorded = answers.iter().map(|answer| {
        if answer.status == 200 {
            answered.insert((
                answer.path.clone(),
                answer.method,
                answer.media_type.clone(),
            ));
        }
        json!({
            "path": answer.path,
            "method": answer.method,
            "status": answer.status,
            "kind": answer.media_type,
            "body": answer.document(),
        })
    });
    let recorded: Value = recorded.collect();
    let [document, answers] = ["openapi.json", "answers.json"].map(|name| dir.path().join(name));
    fs::write(&document, described.document.to_string()).unwrap();
    fs::write(&answers, recorded.to_string()).unwrap();
    for (path, method, operation) in described.operations() {
        let kinds = operation["responses"]["200"]["content"]
            .as_object()
            .unwrap();
        for kind in kinds.keys() {
            let is_answered = answered
                .iter()
                .any(|(known, by, of)| known == path && of == kind && *by == method);
            assert!(
                is_answered,
                "no answer was recorded: {method} {path} {kind}"
            );
        }
    }
    run_python(&python, "openapi.py", &[&document, &answers]);
}

/// Returns a program of the packages of tests/page, or skips the test.
fn node_program(name: &str) -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/node_modules/.bin");
    let found = Some(packages.join(name)).filter(|path| path.exists());
    if found.is_none() {
        skip(&format!(
            "{name} is not installed: run npm ci in tests/page"
        ));
    }
    found
}

/// Writes the answers as constants of the types that `openapi.ts` contains, and compiles them.
fn compile(dir: &Path, compiler: &Path, answers: &[(&Recorded, Value)]) -> Output {
    let mut code = "import type { paths } from \"./openapi\";\n".to_owned();
    for (at, (answer, body)) in answers.iter().enumerate() {
        let Recorded {
            path,
            method,
            status,
            media_type,
            ..
        } = answer;
        let status = if *status == 200 { "200" } else { "\"default\"" };
        writeln!(
            code,
            "export const answer{at}: paths[{path:?}][{method:?}][\"responses\"][{status}][\"content\"][{media_type:?}] = {body};"
        )
        .unwrap();
    }
    fs::write(dir.join("answers.ts"), code).unwrap();
    let mut command = Command::new(compiler);
    command.args(["--noEmit", "--strict", "--exactOptionalPropertyTypes"]);
    command.arg("answers.ts").current_dir(dir).output().unwrap()
}

#[test]
fn the_answers_have_the_types_of_the_document_in_typescript() {
    let (Some(generator), Some(compiler)) =
        (node_program("openapi-typescript"), node_program("tsc"))
    else {
        return;
    };
    let dir = temp();
    let described = Described::start(dir.path());
    fs::write(
        dir.path().join("openapi.json"),
        described.document.to_string(),
    )
    .unwrap();
    let made = Command::new(generator)
        .args(["openapi.json", "--output", "openapi.ts"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let answers = described.answers();
    let bodies = answers
        .iter()
        .filter_map(|answer| Some((answer, answer.document()?)));
    let mut bodies: Vec<(&Recorded, Value)> = bodies.collect();
    let compiled = compile(dir.path(), &compiler, &bodies);
    let said = String::from_utf8_lossy(&compiled.stdout);
    assert!(compiled.status.success(), "{said}");
    // A field of another type, a field that is missing, and a field that the document lacks are errors.
    let known = bodies
        .iter()
        .position(|(answer, _)| answer.path == "/lichess" && answer.status == 200);
    let known = known.unwrap();
    for (name, value, problem) in [
        ("white", Some(json!("many")), "'string' is not assignable"),
        ("moves", None, "'moves' is missing"),
        ("whites", Some(json!(1)), "whites\"' does not exist"),
    ] {
        let right = bodies[known].1.clone();
        let fields = bodies[known].1.as_object_mut().unwrap();
        match value {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
        let compiled = compile(dir.path(), &compiler, &bodies[known..=known]);
        let said = String::from_utf8_lossy(&compiled.stdout);
        assert!(
            !compiled.status.success() && said.contains(problem),
            "{name}: {said}"
        );
        bodies[known].1 = right;
    }
}
