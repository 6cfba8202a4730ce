//! Sends one query to every interface: the command line, HTTP, Python, the index, databases, counts and books must give
//! the same answer about the games that pass the same filters, and it must agree with a simple count over the games.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs::{self, File},
    path::Path,
    process::Command,
};

use polybook::selection::{Selection, Spelling};
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Move, Position, fen::Fen, san::SanPlus};

use crate::common::{fails, ok, ok_json, python, records, served::Served, temp};

/// The text of a tag, and its meaning.
type Tag<T> = (&'static str, T);

const NAMES: [Tag<&str>; 7] = [
    ("Tal, Mikhail", "tal, mikhail"),
    (" TAL,  Mikhail", "tal, mikhail"),
    ("Müller, H", "müller, h"),
    ("Mu\u{308}ller, h", "müller, h"),
    ("Talbot", "talbot"),
    ("Keres", "keres"),
    ("?", "?"),
];
const DATES: [Tag<[u16; 3]>; 10] = [
    ("2019.05.31", [2019, 5, 31]),
    ("2019.06.31", [2019, 6, 0]),
    ("2019.??.??", [2019, 0, 0]),
    ("2020-02-29", [2020, 2, 29]),
    ("2021.02.29", [2021, 2, 0]),
    ("15.03.2024", [2024, 3, 15]),
    ("20190601", [2019, 6, 1]),
    ("Sun Jul 09 2017", [2017, 7, 9]),
    ("19.05.31", [0, 0, 0]),
    ("????.??.??", [0, 0, 0]),
];
const RATINGS: [Tag<u32>; 11] = [
    ("2500", 2500),
    (" 1900 ", 1900),
    ("2200", 2200),
    ("2100?", 2100),
    ("+2400", 2400),
    ("DWZ=1500", 1500),
    ("2,400", 2400),
    ("2400.5", 2400),
    ("27000", 0),
    ("0", 0),
    ("?", 0),
];
const OPENINGS: [Tag<&str>; 6] = [
    ("B20", "B20"),
    (" b33 ", "B33"),
    ("E99/2", "E99"),
    ("B2", ""),
    ("B2x", ""),
    ("?", ""),
];
/// Time controls, and whether each is that of a blitz game.
const TIMES: [Tag<bool>; 7] = [
    ("180+2", true),
    ("300", true),
    ("40/240:180", true),
    ("60", false),
    ("G/300", false),
    ("3:00:00", false),
    ("-", false),
];
const RESULTS: [&str; 4] = ["1-0", "0-1", "1/2-1/2", "*"];

#[derive(Clone, Debug)]
struct Game {
    white: Tag<&'static str>,
    black: Tag<&'static str>,
    date: Tag<[u16; 3]>,
    event_date: Option<Tag<[u16; 3]>>,
    ratings: [Tag<u32>; 2],
    eco: Tag<&'static str>,
    time: Tag<bool>,
    /// The `Result` tag and the termination marker.
    result: (Option<&'static str>, &'static str),
    moves: Vec<u8>,
}

fn games() -> impl Strategy<Value = Vec<Game>> {
    let names = (select(&NAMES[..]), select(&NAMES[..]));
    let dates = (select(&DATES[..]), proptest::option::of(select(&DATES[..])));
    let ratings = [select(&RATINGS[..]), select(&RATINGS[..])];
    let tags = prop_oneof![
        3 => select(&RESULTS[..]).prop_map(Some),
        1 => Just(None),
        1 => Just(Some("1/2")),
        1 => Just(Some("won")),
    ];
    let game = (
        names,
        dates,
        ratings,
        select(&OPENINGS[..]),
        select(&TIMES[..]),
        (tags, select(&RESULTS[..])),
        vec(0..5u8, 0..16),
    );
    let game = game.prop_map(|(names, dates, ratings, eco, time, result, moves)| Game {
        white: names.0,
        black: names.1,
        date: dates.0,
        event_date: dates.1,
        ratings,
        eco,
        time,
        result,
        moves,
    });
    vec(game, 1..25)
}

impl Game {
    /// Returns the date of the game.
    fn played(&self) -> [u16; 3] {
        match self.event_date {
            Some((_, date)) if self.date.1[0] == 0 => date,
            _ => self.date.1,
        }
    }

    /// Returns the result that is used: that of the tag, unless the tag is missing or is not a result.
    fn result(&self) -> &'static str {
        match self.result.0 {
            Some("1/2") => "1/2-1/2",
            Some(tag) if RESULTS.contains(&tag) => tag,
            _ => self.result.1,
        }
    }

    /// Returns the moves, each with the position before it, and the last position.
    fn line(&self) -> (Vec<(Chess, Move)>, Chess) {
        let mut pos = Chess::default();
        let mut line: Vec<(Chess, Move)> = Vec::new();
        for choice in &self.moves {
            let mut legal: Vec<Move> = pos.legal_moves().into_iter().collect();
            legal.sort_by_key(|mv| coordinates(*mv));
            // Often take back the move before the last one, so that positions repeat.
            let back = line.iter().rev().nth(1).and_then(|(_, last)| {
                let from = last.from();
                legal
                    .iter()
                    .position(|mv| mv.from() == Some(last.to()) && Some(mv.to()) == from)
            });
            let mv = match (choice, back) {
                (4, Some(back)) => legal[back],
                _ => legal[usize::from(*choice) % legal.len()],
            };
            line.push((pos.clone(), mv));
            pos.play_unchecked(mv);
        }
        (line, pos)
    }

    fn write(&self, pgn: &mut String) {
        let mut tag = |name: &str, value: &str| {
            let _ = writeln!(pgn, "[{name} \"{value}\"]");
        };
        tag("Event", "A");
        tag("White", self.white.0);
        tag("Black", self.black.0);
        tag("Date", self.date.0);
        if let Some(date) = self.event_date {
            tag("EventDate", date.0);
        }
        tag("WhiteElo", self.ratings[0].0);
        tag("BlackElo", self.ratings[1].0);
        tag("ECO", self.eco.0);
        tag("TimeControl", self.time.0);
        if let Some(result) = self.result.0 {
            tag("Result", result);
        }
        pgn.push('\n');
        for (mut pos, mv) in self.line().0 {
            let _ = write!(
                pgn,
                "{} ",
                SanPlus::from_move_and_play_unchecked(&mut pos, mv)
            );
        }
        let _ = write!(pgn, "{}\n\n", self.result.1);
    }
}

/// Returns a move in UCI notation.
fn coordinates(mv: Move) -> String {
    mv.to_uci(CastlingMode::Standard).to_string()
}

/// Returns a text that identifies a position, without its counters.
fn identity(pos: &Chess) -> String {
    let fen = Fen::from_position(pos, EnPassantMode::PseudoLegal).to_string();
    fen.rsplitn(3, ' ').last().unwrap().to_owned()
}

/// A query: filters and a position.
#[derive(Clone, Debug)]
struct Question {
    /// The names of one player.
    players: Vec<&'static str>,
    /// Whether the names must match completely.
    exact: bool,
    color: Option<Color>,
    since: Option<[u16; 2]>,
    until: Option<[u16; 2]>,
    elo: Option<(u32, u32)>,
    eco: Option<(&'static str, &'static str)>,
    result: Option<&'static str>,
    blitz: bool,
    /// The index of a game, and the number of its moves before the position.
    place: (usize, usize),
}

fn questions() -> impl Strategy<Value = Question> {
    use proptest::option::weighted;
    let names = select(&["tal", "TAL, MIKHAIL", "mu\u{308}ller", "Müller, H", "l"][..]);
    let players = prop_oneof![2 => Just(vec![]), 1 => vec(names.clone(), 1), 1 => vec(names, 2)];
    let colors = select(&[Color::White, Color::Black][..]);
    let month = || (2018..2023u16, 1..13u16).prop_map(|(year, month)| [year, month]);
    let ecos = select(&[("B00", "B99"), ("B33", "B33"), ("C00", "E99")][..]);
    let who = (players, any::<bool>(), weighted(0.3, colors));
    let when = (weighted(0.3, month()), weighted(0.3, month()));
    let elo = weighted(0.3, (1800..2600u32, 0..800u32));
    let rest = (
        weighted(0.2, ecos),
        weighted(0.3, select(&RESULTS[..])),
        weighted(0.2, Just(())),
    );
    let place = (0..100usize, 0..6usize);
    (who, when, elo, rest, place).prop_map(|(who, when, elo, rest, place)| Question {
        exact: who.1 && !who.0.is_empty(),
        color: who.2.filter(|_| !who.0.is_empty()),
        players: who.0,
        since: when.0,
        until: when
            .1
            .filter(|until| when.0.is_none_or(|since| since <= *until)),
        elo: elo.map(|(min, more)| (min, min + more)),
        eco: rest.0,
        result: rest.1,
        blitz: rest.2.is_some(),
        place,
    })
}

impl Question {
    /// Evaluates the filters for a game in the simplest way.
    fn admits(&self, game: &Game) -> bool {
        let wanted = self.players.iter().map(|name| match *name {
            "mu\u{308}ller" => "müller".to_owned(),
            name => name.to_lowercase(),
        });
        let is_player = |name: &str, color| {
            let is_named = wanted.clone().any(|wanted| {
                if self.exact {
                    name == wanted
                } else {
                    name.contains(&wanted)
                }
            });
            (is_named || self.players.is_empty()) && self.color.is_none_or(|asked| asked == color)
        };
        let date = game.played();
        let order = |bound: [u16; 2]| {
            let known = date.iter().zip(bound).take_while(|(ours, _)| **ours > 0);
            known
                .map(|(ours, theirs)| ours.cmp(&theirs))
                .find(|order| order.is_ne())
        };
        let rating_passes = |rating: u32| {
            let range = self.elo.map(|(min, max)| min..=max);
            rating == 0 || range.is_none_or(|range| range.contains(&rating))
        };
        (is_player(game.white.1, Color::White) || is_player(game.black.1, Color::Black))
            && self.since.and_then(order).is_none_or(|order| order.is_gt())
            && self.until.and_then(order).is_none_or(|order| order.is_lt())
            && game.ratings.iter().all(|rating| rating_passes(rating.1))
            && self
                .eco
                .is_none_or(|(first, last)| (first..=last).contains(&game.eco.1))
            && self.result.is_none_or(|result| result == game.result())
            && (!self.blitz || game.time.1)
    }

    /// Returns the filters as options of `moves` and `games`.
    fn of_index(&self) -> Vec<String> {
        let mut args = self.of_both();
        args.extend(self.players.iter().map(|name| format!("--player={name}")));
        args.extend(
            self.color
                .map(|color| format!("--color={}", color.fold_wb("white", "black"))),
        );
        args.extend(self.blitz.then(|| "--speed=blitz".to_owned()));
        args
    }

    /// Returns the filters as options of `make-book`.
    fn of_games(&self) -> Vec<String> {
        let mut args = self.of_both();
        let option = self
            .color
            .map_or("player", |color| color.fold_wb("white", "black"));
        let names = self.players.iter();
        args.extend(names.map(|name| format!("--{option}={name}")));
        args.extend(self.blitz.then(|| "--time-control=180-479".to_owned()));
        args
    }

    fn of_both(&self) -> Vec<String> {
        let date = |[year, month]: [u16; 2]| format!("{year}.{month:02}");
        let mut args = Vec::new();
        args.extend(self.since.map(|since| format!("--since={}", date(since))));
        args.extend(self.until.map(|until| format!("--until={}", date(until))));
        if let Some((min, max)) = self.elo {
            args.extend([format!("--min-elo={min}"), format!("--max-elo={max}")]);
        }
        args.extend(
            self.eco
                .map(|(first, last)| format!("--eco={first}-{last}")),
        );
        args.extend(self.result.map(|result| format!("--result={result}")));
        args.extend(self.exact.then(|| "--exact".to_owned()));
        args
    }

    /// Returns the filters as arguments of Python's `make_book`, which are named like the options.
    fn of_python_games(&self) -> Value {
        let options = self.of_games().into_iter().map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            let value = match value {
                "" => json!(true),
                value => value
                    .parse::<u32>()
                    .map_or(json!(value), |number| json!(number)),
            };
            (name.trim_start_matches("--").replace('-', "_"), value)
        });
        let mut all = Map::new();
        for (name, value) in options {
            // Each value of a repeated option is in a list.
            match all.get_mut(&name) {
                Some(other) => *other = json!([other, value]),
                None => _ = all.insert(name, value),
            }
        }
        let mut options = all;
        options.insert("min_game".to_owned(), json!(1));
        let factors = ["win_factor", "draw_factor", "loss_factor"];
        for (name, factor) in factors.into_iter().zip(FACTORS) {
            options.insert(name.to_owned(), json!(factor));
        }
        options.into()
    }

    /// Returns the filters as arguments of Python's explorer, or null if it lacks one of them.
    fn of_python(&self) -> Value {
        if !self.players.is_empty() && !self.exact {
            return Value::Null;
        }
        let mut filters = Map::new();
        let mut add = |name: &str, value: Option<Value>| {
            filters.extend(value.map(|value| (name.to_owned(), value)));
        };
        let date = |[year, month]: [u16; 2]| json!(format!("{year}-{month:02}"));
        add("since", self.since.map(date));
        add("until", self.until.map(date));
        add("min_elo", self.elo.map(|(min, _)| json!(min)));
        add("max_elo", self.elo.map(|(_, max)| json!(max)));
        let has_player = !self.players.is_empty();
        add("player", has_player.then(|| json!(self.players)));
        let color = |color: Color| json!(color.fold_wb("white", "black"));
        add("color", self.color.map(color));
        let eco = |(first, last)| json!(format!("{first}-{last}"));
        add("eco", self.eco.map(eco));
        add("result", self.result.map(|result| json!(result)));
        add("speeds", self.blitz.then(|| json!("blitz")));
        filters.into()
    }

    /// Returns the line to the position of the query, and the position.
    fn line(&self, games: &[Game]) -> (Vec<String>, Chess) {
        let (line, end) = games[self.place.0 % games.len()].line();
        let plies = self.place.1.min(line.len());
        let place = line.get(plies).map_or(end, |(pos, _)| pos.clone());
        let moves = line[..plies].iter().map(|(_, mv)| coordinates(*mv));
        (moves.collect(), place)
    }

    /// Returns the filters as HTTP parameters, or `None` if HTTP lacks one of them.
    fn of_http(&self) -> Option<String> {
        if self.elo.is_some() || (!self.players.is_empty() && !self.exact) {
            return None;
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        };
        let date = |[year, month]: [u16; 2]| format!("{year}-{month:02}");
        add("since", self.since.map(date));
        add("until", self.until.map(date));
        for name in &self.players {
            add("player", Some((*name).to_owned()));
        }
        add(
            "color",
            self.color
                .map(|color| color.fold_wb("white", "black").to_owned()),
        );
        add(
            "eco",
            self.eco.map(|(first, last)| format!("{first}-{last}")),
        );
        add("result", self.result.map(str::to_owned));
        add("speeds", self.blitz.then(|| "blitz".to_owned()));
        Some(query.finish())
    }
}

/// Moves in UCI notation, with the numbers of White wins, games without a winner, and Black wins.
type Counts = BTreeMap<String, [u64; 3]>;

/// The expected answer about a position.
struct Expected {
    /// Every occurrence of a move.
    times: Counts,
    /// Each game once, with the last move that it played in the position.
    games: Counts,
    /// The number of games that reached the position.
    reached: u64,
}

fn expected<'a>(games: impl Iterator<Item = &'a Game>, place: &Chess) -> Expected {
    let place = identity(place);
    let mut expected = Expected {
        times: Counts::new(),
        games: Counts::new(),
        reached: 0,
    };
    for game in games {
        let column = match game.result() {
            "1-0" => 0,
            "0-1" => 2,
            _ => 1,
        };
        let (line, end) = game.line();
        let here = line.iter().filter(|(pos, _)| identity(pos) == place);
        let here: Vec<String> = here.map(|(_, mv)| coordinates(*mv)).collect();
        for mv in &here {
            expected.times.entry(mv.clone()).or_default()[column] += 1;
        }
        if let Some(last) = here.last() {
            expected.games.entry(last.clone()).or_default()[column] += 1;
        }
        expected.reached += u64::from(!here.is_empty() || identity(&end) == place);
    }
    expected
}

/// Returns the moves of a document, with three numbers for each.
fn counts(document: &Value, numbers: impl Fn(&Value) -> [u64; 3]) -> Counts {
    let moves = document["moves"].as_array().unwrap().iter();
    let count = |mv: &Value| (mv["uci"].as_str().unwrap().to_owned(), numbers(mv));
    moves.map(count).collect()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap()
}

fn by_color(mv: &Value) -> [u64; 3] {
    ["white", "draws", "black"].map(|name| number(mv, name))
}

/// Weights from which wins, draws and losses can be told, because none of these numbers is 32 or more.
const FACTORS: [u64; 3] = [1, 32, 1024];

fn of_weight(weight: u64) -> [u64; 3] {
    [weight % 32, weight / 32 % 32, weight / 1024]
}

/// Converts results between White's view and that of the side to move.
fn turned(turn: Color, [wins, draws, losses]: [u64; 3]) -> [u64; 3] {
    match turn {
        Color::White => [wins, draws, losses],
        Color::Black => [losses, draws, wins],
    }
}

fn ask_everywhere(dir: &Path, served: &Served, games: &[Game], question: &Question) {
    let (moves, place) = question.line(games);
    let at = format!("--moves={}", moves.join(" "));
    let expected = expected(games.iter().filter(|game| question.admits(game)), &place);
    let of_mover = |numbers| turned(place.turn(), numbers);
    let [win, draw, loss] = FACTORS;
    let factors =
        [("win", win), ("draw", draw), ("loss", loss)].map(|(of, n)| format!("--{of}-factor={n}"));

    let mut run = vec![
        "make-book",
        "-q",
        "games.pgn",
        "--force",
        "--allow-empty",
        "--min-game=1",
    ];
    run.extend(["--bin=a.bin", "--obs=a.obs.db3", "--counts=a.counts"]);
    run.extend(factors.iter().map(String::as_str));
    let filters = question.of_games();
    run.extend(filters.iter().map(String::as_str));
    ok(dir, &run);
    let book = counts(&ok_json(dir, &["show", "a.bin", "--json", &at]), |mv| {
        of_mover(of_weight(number(mv, "weight")))
    });
    assert_eq!(book, expected.times, "book: {question:?}");
    let obs = counts(&ok_json(dir, &["show", "a.obs.db3", "--json", &at]), |mv| {
        of_mover(["wins", "draws", "losses"].map(|name| number(mv, name)))
    });
    assert_eq!(obs, expected.times, "database: {question:?}");
    let mut run = vec!["make-book", "-q", "a.counts", "--force", "--allow-empty"];
    run.extend(["--min-game=1", "--bin=b.bin"]);
    run.extend(factors.iter().map(String::as_str));
    ok(dir, &run);
    let [of_games, of_counts] = ["a.bin", "b.bin"].map(|book| records(&dir.join(book)));
    assert!(of_games == of_counts, "counts: {question:?}");

    let filters = question.of_index();
    let ask = |command| {
        let mut args = vec![command, "--leveldb", "games.idx", "--json", &at];
        args.extend(filters.iter().map(String::as_str));
        args
    };
    let only_name = Question {
        place: question.place,
        players: question.players.clone(),
        exact: question.exact,
        color: None,
        since: None,
        until: None,
        elo: None,
        eco: None,
        result: None,
        blitz: false,
    };
    if games.iter().any(|game| only_name.admits(game)) {
        // `moves` lists games without a result separately; the other interfaces include them in the draws.
        let with_unfinished = |mv: &Value| {
            let [white, draws, black] = by_color(mv);
            [white, draws + mv["unfinished"].as_u64().unwrap_or(0), black]
        };
        let moves = counts(&ok_json(dir, &ask("moves")), with_unfinished);
        assert_eq!(moves, expected.games, "moves: {question:?}");
        let list = ok_json(dir, &ask("games"));
        assert_eq!(list["total"], expected.reached, "games: {question:?}");
    } else {
        let error = fails(dir, &ask("moves"), 1);
        assert!(error.contains("no player"), "{error}");
    }
    if let Some(query) = question.of_http() {
        let play = moves.join(",");
        let answer = served.json(&format!("/lichess?moves=999&play={play}&{query}"));
        let answered = counts(&answer, by_color);
        assert_eq!(answered, expected.games, "HTTP: {question:?}");
        let list = served.json(&format!("/games?play={play}&{query}"));
        assert_eq!(list["total"], expected.reached, "/games: {question:?}");
    }
}

/// Sends all queries to Python at once.
fn ask_python(python: &Path, dir: &Path, games: &[Game], questions: &[Question]) {
    let asked = questions.iter().map(|question| {
        let fen = Fen::from_position(&question.line(games).1, EnPassantMode::PseudoLegal);
        json!({"fen": fen.to_string(), "make": question.of_python_games(), "ask": question.of_python()})
    });
    let asked: Vec<Value> = asked.collect();
    fs::write(dir.join("questions.json"), json!(asked).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/doors.py");
    let mut command = Command::new(python);
    command.arg(script).args(["games.pgn", "games.idx"]);
    let questions_file = File::open(dir.join("questions.json")).unwrap();
    let output = command.current_dir(dir).stdin(questions_file).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), questions.len());
    for (question, answer) in questions.iter().zip(&answers) {
        let (_, place) = question.line(games);
        let all = expected(games.iter(), &place);
        let expected = expected(games.iter().filter(|game| question.admits(game)), &place);
        let counts = |door: &str| -> BTreeMap<String, Vec<u64>> {
            serde_json::from_value(answer[door].clone()).unwrap()
        };
        let of_mover = |numbers| turned(place.turn(), numbers);
        let times = |door: &str, numbers: fn(&[u64]) -> [u64; 3]| -> Counts {
            let counts = counts(door).into_iter();
            counts
                .map(|(uci, found)| (uci, of_mover(numbers(&found))))
                .collect()
        };
        let book = times("book", |found| of_weight(found[0]));
        assert_eq!(book, expected.times, "Python's book: {question:?}");
        let database = times("database", |found| found.try_into().unwrap());
        assert_eq!(database, expected.times, "Python's database: {question:?}");
        assert_eq!(
            answer["reached"], all.reached,
            "Python's index: {question:?}"
        );
        if answer.get("explorer").is_some() {
            let asked = counts("explorer").into_iter();
            let asked: Counts = asked
                .map(|(uci, found)| (uci, found.try_into().unwrap()))
                .collect();
            assert_eq!(asked, expected.games, "Python's explorer: {question:?}");
        }
    }
}

#[test]
fn every_door_gives_the_same_answer() {
    let config = Config {
        cases: 12,
        // A case takes a second, so failing cases are not shrunk for long.
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    };
    let cases = (games(), vec(questions(), 1..5));
    let python = python(&["polybook"]);
    let done = TestRunner::new(config).run(&cases, |(games, questions)| {
        let dir = temp();
        let mut pgn = String::new();
        games.iter().for_each(|game| game.write(&mut pgn));
        fs::write(dir.path().join("games.pgn"), pgn).unwrap();
        ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
        let served = Served::start(dir.path(), "-q games.idx");
        for question in &questions {
            ask_everywhere(dir.path(), &served, &games, question);
        }
        if let Some(python) = &python {
            ask_python(python, dir.path(), &games, &questions);
        }
        Ok(())
    });
    done.unwrap();
}

#[test]
fn the_annotations_of_python_have_every_condition() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/package/polybook/__init__.pyi");
    let annotations = fs::read_to_string(path).unwrap();
    let (_, classes) = annotations
        .split_once("class _PreparationConditions")
        .unwrap();
    let (classes, _) = classes.split_once("\ndef ").unwrap();
    let annotated = classes
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
    // The other lines are sentences.
    let annotated = annotated.filter(|(name, _)| !name.contains(' '));
    let annotated: BTreeSet<String> = annotated.map(|(name, _)| name.to_owned()).collect();
    let names = Selection::condition_names().into_iter();
    let names = names.map(|name| Spelling::Keyword.of(name)).collect();
    assert_eq!(annotated, names);
}
