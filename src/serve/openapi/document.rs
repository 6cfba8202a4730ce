//! Generates the description of the API, and compares it with the stored file and with the routes.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Map, Serializer, Value, json, ser::PrettyFormatter};

use super::{
    super::{
        JSON, PGN, Route,
        board::Moves,
        content::camel_case,
        make::{BuiltRepertoire, FoundGaps, MadeBook, Reports},
        positions::MAX_POSITIONS,
        practise::PracticeAnswer,
        receive::{RECEIVE_PARAMETERS, ReceivedRepertoire, SENT_PARAMETERS},
        refusal::ErrorAnswer,
        routes::{CountedSuggestion, Scores, api, of_own_page},
        server::AboutIndexing,
        state::{
            About, BookAnswer, OpenGame, READ_PARAMETERS, SUGGEST_PARAMETERS, WithBoard,
            WithReasons,
        },
    },
    DOCUMENT, PATH,
    parameters::Parameter,
};
use crate::{
    explore::explorer::{Facets, GameList, OpeningTable, Preparation},
    serve::ServedRepertoire,
};

/// The media type of a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// The media type of JSON documents of one line each.
const LINES: &str = "application/x-ndjson";
/// The media type of books.
const BOOK: &str = "application/octet-stream";

/// The ways in which a request may pass parameters and data.
enum Accepted {
    /// Parameters in the address.
    Query,
    /// Parameters in the address or, with the method `POST`, in a form.
    QueryOrForm,
    /// Parameters in a form.
    Form,
    /// Parameters in the address, and a body with this media type and schema.
    Body(&'static str, Value),
}

/// A kind of request, with its responses.
struct Operation {
    /// The paths that request this operation. The usual path comes first.
    paths: &'static [&'static str],
    summary: &'static str,
    accepted: Accepted,
    parameters: Vec<&'static str>,
    required: &'static [&'static str],
    /// The media types of the responses, each with its schema.
    responses: Vec<(&'static str, Value)>,
    /// Whether the request needs the header `x-polybook`.
    is_of_own_page: bool,
}

impl Operation {
    fn new(
        paths: &'static [&'static str],
        summary: &'static str,
        parameters: impl Into<Vec<&'static str>>,
        responses: Vec<(&'static str, Value)>,
    ) -> Operation {
        Operation {
            paths,
            summary,
            accepted: Accepted::Query,
            parameters: parameters.into(),
            required: &[],
            responses,
            is_of_own_page: false,
        }
    }

    fn requiring(self, required: &'static [&'static str]) -> Operation {
        Operation { required, ..self }
    }

    fn accepting(self, accepted: Accepted) -> Operation {
        Operation { accepted, ..self }
    }

    fn of_own_page(self) -> Operation {
        Operation {
            is_of_own_page: true,
            ..self
        }
    }

    /// Returns an iterator over the descriptions of the parameters, each with a flag that says whether the parameter is
    /// required.
    fn parameters(&self) -> impl Iterator<Item = (Parameter, bool)> {
        self.parameters.iter().map(|name| {
            let parameter = Parameter::of_route(self.paths[0], name);
            (parameter, self.required.contains(name))
        })
    }

    /// Returns the methods that requests may use, each with a description of the request without the parameters in the
    /// address.
    fn methods(&self, path: &str) -> Vec<(&'static str, Value)> {
        let described = |method: &str, body: Option<Value>| {
            let contents = self.responses.iter();
            let contents =
                contents.map(|(kind, schema)| ((*kind).to_owned(), json!({"schema": schema})));
            let words = path.split(|c: char| !c.is_ascii_alphanumeric());
            let name = words
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join("_");
            let mut described = json!({
                "operationId": camel_case(&format!("{method}_{name}")),
                "summary": self.summary,
            });
            if let Some(body) = body {
                described["requestBody"] = body;
            }
            described["responses"] = json!({
                "200": {"description": "The answer.", "content": Map::from_iter(contents)},
                "default": {"$ref": "#/components/responses/Error"},
            });
            described
        };
        let get = || ("get", described("get", None));
        let form = || ("post", described("post", Some(self.form())));
        match &self.accepted {
            Accepted::Query => vec![get()],
            Accepted::QueryOrForm => vec![get(), form()],
            Accepted::Form => vec![form()],
            Accepted::Body(kind, schema) => {
                let body = json!({"required": true, "content": {*kind: {"schema": schema}}});
                vec![("post", described("post", Some(body)))]
            }
        }
    }

    /// Describes the body of a `POST` request that contains the parameters as a form.
    fn form(&self) -> Value {
        let (mut fields, mut lists) = (Map::new(), Map::new());
        for (parameter, _) in self.parameters() {
            let name = parameter.name.to_owned();
            if parameter.is_list() {
                let encoding = json!({"style": "form", "explode": parameter.is_repeated()});
                lists.insert(name.clone(), encoding);
            }
            let mut schema = parameter.schema;
            schema["description"] = parameter.description.into();
            fields.insert(name, schema);
        }
        let mut schema = json!({"type": "object", "properties": fields});
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        json!({"required": true, "content": {FORM: {"schema": schema, "encoding": lists}}})
    }
}

/// Returns the schema of `T`, as a reference to one of the schemas that `types` collects.
fn schema<T: JsonSchema>(types: &mut SchemaGenerator) -> Value {
    types.subschema_for::<T>().into()
}

fn string() -> Value {
    json!({"type": "string"})
}

/// Returns the schema of the content of a file.
fn bytes() -> Value {
    json!({"type": "string", "format": "binary"})
}

fn either(one: Value, other: Value) -> Value {
    json!({"anyOf": [one, other]})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// Returns all requests of the API.
fn operations(types: &mut SchemaGenerator) -> Vec<Operation> {
    let answer = schema::<WithBoard>(types);
    let error = schema::<ErrorAnswer>(types);
    let about = either(schema::<About<'_>>(types), schema::<AboutIndexing>(types));
    let game = schema::<OpenGame>(types);
    let games = schema::<WithReasons<'_, GameList>>(types);
    let book = schema::<MadeBook>(types);
    let repertoire = schema::<BuiltRepertoire>(types);
    let json = |schema| vec![(JSON, schema)];
    let pgn = || (PGN, string());
    vec![
        Operation::new(
            &["/lichess"],
            "The results of a position and its moves, top games and recent games",
            Route::Lichess.parameters(),
            json(answer.clone()),
        ),
        Operation::new(
            &["/masters", "/master"],
            "The results of a position and its moves, and top games",
            Route::Masters.parameters(),
            json(answer.clone()),
        ),
        Operation::new(
            &["/player", "/personal"],
            "The results of a position and its moves in the games of one player: one line",
            Route::Player.parameters(),
            vec![(LINES, answer.clone())],
        )
        .requiring(&["player", "color"]),
        Operation::new(
            &["/masters/pgn/{id}", "/master/pgn/{id}"],
            "A game",
            Vec::new(),
            vec![pgn()],
        ),
        Operation::new(
            &["/game/{id}"],
            "A game and, in JSON, its moves and the numbers of games that reach its positions",
            Route::Game.parameters(),
            vec![(JSON, game), pgn()],
        ),
        Operation::new(
            &["/games"],
            "The games of a position",
            Route::Games.parameters(),
            vec![(JSON, games), pgn()],
        ),
        Operation::new(
            &["/positions"],
            "The results of many positions and their moves",
            Route::Positions.parameters(),
            json(list(either(answer, error))),
        )
        .accepting(Accepted::Body(
            JSON,
            json!({
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MAX_POSITIONS,
                "description": "The FENs of the positions.",
            }),
        )),
        Operation::new(
            &["/book"],
            "The moves of the server's books in a position",
            Route::Book.parameters(),
            json(schema::<BookAnswer>(types)),
        ),
        Operation::new(
            &["/about"],
            "The games, books and repertoires of the server, or the progress of an index that is being made",
            Vec::new(),
            json(about),
        ),
        Operation::new(
            &["/read"],
            "The moves or the position of a text",
            READ_PARAMETERS,
            json(schema::<Moves>(types)),
        ),
        Operation::new(
            &["/suggest"],
            "Names of players, events or openings that are similar to a text",
            SUGGEST_PARAMETERS,
            json(list(schema::<CountedSuggestion>(types))),
        )
        .requiring(&["field"]),
        Operation::new(
            &["/book.bin"],
            "A book of games",
            Route::Make.parameters(),
            vec![(JSON, book.clone()), (BOOK, bytes())],
        ),
        Operation::new(
            &["/book.pgn"],
            "A book of games as PGN",
            Route::Make.parameters(),
            vec![(JSON, book), pgn()],
        ),
        Operation::new(
            &["/repertoire.bin"],
            "A repertoire that is built from games, as a book",
            Route::Build.parameters(),
            vec![(JSON, repertoire.clone()), (BOOK, bytes())],
        )
        .requiring(&["side"]),
        Operation::new(
            &["/repertoire.pgn"],
            "A repertoire that is built from games, or one of the server's repertoires with changes, as PGN",
            Route::Build.parameters(),
            vec![(JSON, repertoire), pgn()],
        )
        .requiring(&["side"])
        .accepting(Accepted::QueryOrForm),
        Operation::new(
            &["/gaps"],
            "The opponent's moves that a repertoire does not answer",
            Route::Gaps.parameters(),
            json(schema::<WithReasons<'_, FoundGaps>>(types)),
        )
        .requiring(&["repertoire", "side"])
        .accepting(Accepted::QueryOrForm),
        Operation::new(
            &["/facets"],
            "The number of games for each value of the conditions",
            Route::Facets.parameters(),
            json(schema::<WithReasons<'_, Facets>>(types)),
        ),
        Operation::new(
            &["/scores"],
            "The results of a position by rating group",
            Route::Scores.parameters(),
            json(schema::<WithReasons<'_, Scores>>(types)),
        )
        .requiring(&["by"]),
        Operation::new(
            &["/openings"],
            "The openings of the games of a position",
            Route::Openings.parameters(),
            json(schema::<WithReasons<'_, OpeningTable>>(types)),
        ),
        Operation::new(
            &["/prepare"],
            "An opponent's moves in a position, with the results and answers of the player who prepares",
            Route::Prepare.parameters(),
            vec![(JSON, schema::<WithReasons<'_, Preparation>>(types)), pgn()],
        )
        .requiring(&["player", "color", "me"])
        .accepting(Accepted::QueryOrForm),
        Operation::new(
            &["/repertoire"],
            "What the server's repertoires contain in a position",
            Route::Repertoire.parameters(),
            json(schema::<WithReasons<'_, Reports<'_>>>(types)),
        )
        .accepting(Accepted::QueryOrForm),
        Operation::new(
            &["/practise"],
            "The next position of a repertoire to practise, and the result of the previous answer",
            Route::Practise.parameters(),
            json(schema::<WithReasons<'_, PracticeAnswer>>(types)),
        )
        .requiring(&["repertoire", "side"])
        .accepting(Accepted::Form)
        .of_own_page(),
        Operation::new(
            &["/repertoires"],
            "Those of the repertoires that were sent which the server still keeps",
            SENT_PARAMETERS,
            json(list(schema::<ServedRepertoire>(types))),
        ),
        Operation::new(
            &["/repertoires"],
            "Sends a repertoire to the server: a PGN file or a book",
            RECEIVE_PARAMETERS,
            json(schema::<ReceivedRepertoire<'_>>(types)),
        )
        .requiring(&["side"])
        .accepting(Accepted::Body(BOOK, bytes()))
        .of_own_page(),
        Operation::new(
            &[PATH],
            "This description of the API",
            Vec::new(),
            json(json!({"type": "object", "additionalProperties": true})),
        ),
    ]
}

/// Makes the description of the API.
fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut types = settings.into_generator();
    let operations = operations(&mut types);
    let mut schemas = Value::from(types.take_definitions(true));
    adjust(&mut schemas);
    let shared = shared_parameters(&operations);
    let mut paths = Map::new();
    for operation in &operations {
        for path in operation.paths {
            for (method, mut described) in operation.methods(path) {
                let mut all = Vec::new();
                if path.ends_with("{id}") {
                    let id =
                        json!({"name": "id", "in": "path", "required": true, "schema": string()});
                    all.push(id);
                }
                if operation.is_of_own_page {
                    all.push(json!({"$ref": "#/components/parameters/x-polybook"}));
                }
                if !described["requestBody"]["content"][FORM].is_object() {
                    all.extend(operation.parameters().map(|(parameter, is_required)| {
                        let described = parameter.described(is_required);
                        match shared.get(parameter.name) == Some(&described) {
                            true => json!({"$ref": format!("#/components/parameters/{}", parameter.name)}),
                            false => described,
                        }
                    }));
                }
                if !all.is_empty() {
                    described["parameters"] = all.into();
                }
                let of_path = paths.entry(*path).or_insert_with(|| json!({}));
                of_path[method] = described;
            }
        }
    }
    let mut parameters = Map::from_iter(shared.into_iter().map(|(name, it)| (name.to_owned(), it)));
    let header = json!({
        "name": "x-polybook",
        "in": "header",
        "required": true,
        "description": "Any value. Only pages of allowed origins can send this header.",
        "schema": string(),
    });
    parameters.insert("x-polybook".to_owned(), header);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "polybook",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The explorer of polybook serve. The routes /lichess, /masters and /player answer like Lichess's \
                            opening explorer. Later versions can add fields to responses.",
            "license": {"name": "GPL-3.0-or-later", "identifier": "GPL-3.0-or-later"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters,
            "responses": {
                "Error": {
                    "description": "An error. It is JSON if the header Accept of the request names a JSON type.",
                    "content": {
                        JSON: {"schema": {"$ref": "#/components/schemas/Error"}},
                        "text/plain": {"schema": string()},
                    },
                },
            },
        },
    })
}

/// Returns the parameters that have the same meaning on several routes, in the form in which the document contains
/// them.
fn shared_parameters(operations: &[Operation]) -> BTreeMap<&'static str, Value> {
    let mut meanings: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for operation in operations {
        for (parameter, is_required) in operation.parameters() {
            let described = parameter.described(is_required);
            meanings.entry(parameter.name).or_default().push(described);
        }
    }
    let usual = |meanings: Vec<Value>| {
        let count = |one: &Value| meanings.iter().filter(|other| *other == one).count();
        let most = meanings.iter().max_by_key(|one| count(one))?;
        (count(most) > 1).then(|| most.clone())
    };
    meanings
        .into_iter()
        .filter_map(|(name, meanings)| Some((name, usual(meanings)?)))
        .collect()
}

/// Changes schemas of Rust types to schemas of responses: converts the names of fields to camel case, and removes Rust
/// from descriptions.
fn adjust(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // JSON has one kind of numbers.
            let format = fields.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| format != "binary") {
                fields.remove("format");
            }
            // The keys of a map are numbers.
            if let Some(Value::Object(patterns)) = fields.remove("patternProperties") {
                let values = patterns.into_values().next();
                fields.insert(
                    "additionalProperties".to_owned(),
                    values.expect("a pattern"),
                );
            }
            if let Some(Value::Array(required)) = fields.get_mut("required") {
                for name in required {
                    *name = camel_case(name.as_str().expect("a name")).into();
                }
            }
            let required = fields.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                let all = std::mem::take(properties);
                for (name, mut property) in all {
                    let name = camel_case(&name);
                    let is_required = required
                        .as_array()
                        .is_some_and(|names| names.contains(&json!(name)));
                    if let Some(Value::String(text)) = property.get_mut("description") {
                        *text = plain(text, if is_required { "`null`" } else { "missing" });
                    }
                    properties.insert(name, property);
                }
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = plain(text, "`null`");
            }
            fields.values_mut().for_each(adjust);
        }
        Value::Array(items) => items.iter_mut().for_each(adjust),
        _ => {}
    }
}

/// Converts the first paragraph of a Rust comment to plain text, without links and Rust names. `absent` replaces
/// `None`.
fn plain(comment: &str, absent: &str) -> String {
    let paragraph = comment.split("\n\n").next().unwrap_or_default();
    let mut text = paragraph.replace('\n', " ");
    // `[name](path)` and `[name]` are links, but not `[f64; 2]` within backticks.
    while let Some(at) = text.find("](") {
        let begin = text[..at].rfind('[').expect("a link begins");
        let end = at + text[at..].find(')').expect("a link ends");
        text = [&text[..begin], &text[begin + 1..at], &text[end + 1..]].concat();
    }
    text = text.replace("[`", "`").replace("`]", "`");
    let words = text.split('`').enumerate().map(|(at, word)| {
        if at % 2 == 0 {
            word.to_owned()
        } else if word == "None" {
            "\0".to_owned()
        } else if let Some(view) = word.strip_prefix("View::") {
            format!("`/{}`", view.to_lowercase())
        } else {
            let name = word.rsplit("::").next().unwrap_or_default();
            format!("`{}`", camel_case(name))
        }
    });
    let text = words.collect::<String>();
    let (first, rest) = absent.split_at(1);
    let capital = first.to_ascii_uppercase() + rest;
    let text = text.replace(". \0", &format!(". {capital}"));
    let text = match text.strip_prefix('\0') {
        Some(rest) => capital + rest,
        None => text,
    };
    text.replace('\0', absent)
}

/// Returns the methods of each path of the document.
fn described_paths() -> BTreeMap<String, BTreeSet<String>> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let methods = |path: &Value| path.as_object().unwrap().keys().cloned().collect();
    paths
        .iter()
        .map(|(path, of_path)| (path.clone(), methods(of_path)))
        .collect()
}

#[test]
fn the_document_is_made_from_the_types() {
    let mut made = Vec::new();
    let lines = PrettyFormatter::with_indent(b" ");
    let mut writer = Serializer::with_formatter(&mut made, lines);
    document().serialize(&mut writer).unwrap();
    let made = String::from_utf8(made).unwrap() + "\n";
    if std::env::var("SNAPSHOTS").is_ok_and(|action| action == "overwrite") {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/serve/openapi/openapi.json"
        );
        std::fs::write(path, made).unwrap();
    } else {
        let lines = made.lines().zip(DOCUMENT.lines());
        let other = lines
            .enumerate()
            .find(|(_, (made, written))| made != written);
        assert!(
            made == DOCUMENT,
            "openapi.json differs, and SNAPSHOTS=overwrite writes it anew: {other:?}"
        );
    }
}

#[test]
fn every_route_is_described() {
    let routes = api().into_iter().chain(of_own_page());
    let routes: BTreeSet<String> = routes
        .map(|(path, _)| path.to_owned())
        .chain([PATH.to_owned()])
        .collect();
    let described: BTreeSet<String> = described_paths().into_keys().collect();
    assert_eq!(described, routes);
}

#[test]
fn comments_become_descriptions() {
    for (comment, absent, expected) in [
        (
            "`None` in\n[`View::Masters`](super::View).",
            "missing",
            "Missing in `/masters`.",
        ),
        (
            "A [gap](Reply::Gap) of `Gap::one_in`, or `None`.",
            "`null`",
            "A gap of `oneIn`, or `null`.",
        ),
        ("A [`Preparation`].\n\nMore.", "missing", "A `Preparation`."),
        ("Text. `None` if not.", "missing", "Text. Missing if not."),
    ] {
        assert_eq!(plain(comment, absent), expected);
    }
}
