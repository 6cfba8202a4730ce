//! Tests that an index of counts gives the same answers as an index of the same games.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use shakmaty::{Position, variant::VariantPosition};

use super::{
    Date, Explorer, Facets, Filters, Line, PrepareQuery, Query, RatingGroup, Speed, Variant, View,
    open_index::UNRATED,
};
use crate::{
    Error, MakeBook,
    index::{
        CountedSource, IndexWriter,
        store::{
            CountsSources, ListKey,
            results::{Class, Month, ResultRow},
        },
        verify,
    },
    pgn::{GameReader, Input, NameMatch, Token},
    position::{BookMove, Keyed, VariantChoice, read_move},
    progress::Meter,
};

type RowsByKey = BTreeMap<ListKey, Vec<ResultRow>>;

/// Returns the rows of all positions, counted game by game, and the positions by key.
fn counted(explorer: &Explorer) -> (RowsByKey, HashMap<u64, VariantPosition>) {
    let (mut rows, mut positions) = (RowsByKey::new(), HashMap::new());
    let source = &explorer.sources.indexes[0];
    for id in 0..source.games() as u32 {
        let summary = source.rows.get(id).unwrap();
        let text = source.index.text(id).unwrap();
        let mut game = GameReader::new(&text);
        assert!(game.next_game());
        if !summary.traits.is_indexed() || game.tags().get(b"FEN").is_some() {
            continue;
        }
        let (speed, _) = summary.speed_and_mode();
        let group = RatingGroup::all().nth(summary.traits.group());
        assert_eq!(group.is_none(), summary.traits.group() == UNRATED);
        let date = summary.date();
        let month = Month::of(date);
        let mut pos = Keyed::new(Variant::Standard.start());
        let mut last = HashMap::new();
        while let Token::Move { text, .. } = game.next_token() {
            let Ok(mv) = read_move(pos.position(), text) else {
                break;
            };
            positions.insert(pos.identity(), pos.position().clone());
            let rating = summary.elo_of(pos.position().turn());
            last.insert(pos.identity(), (BookMove::from(mv), rating));
            pos.play(mv);
        }
        for (identity, (mv, rating)) in last {
            let mut games = [0; 4];
            games[summary.result() % 3] = 1;
            rows.entry(ListKey(identity)).or_default().push(ResultRow {
                mv,
                class: Class::new(speed, group),
                month,
                games,
                rated: u64::from(rating > 0),
                ratings: rating.into(),
                game: None,
            });
        }
    }
    (rows, positions)
}

fn write(rows: &RowsByKey, target: &Path, min_game: u64) {
    let writer = IndexWriter::create(target, false).unwrap();
    let counts = CountedSource {
        rows: Box::new(|take| {
            let mut all = rows
                .iter()
                .flat_map(|(subject, rows)| rows.iter().map(|row| (*subject, *row)));
            all.try_for_each(|(subject, row)| take(subject, row))
        }),
        total: rows.values().map(|rows| rows.len() as u64).sum(),
        variant: VariantChoice::default(),
        about: CountsSources {
            games: Some(7),
            min_game,
            max_ply: (min_game > 0).then_some(30),
            inputs: vec!["a.pgn".to_owned()],
        },
    };
    let (_, finished) = writer
        .write_counts(counts, &AtomicBool::new(false), &Meter::default())
        .unwrap();
    finished.commit().unwrap();
}

/// Returns combinations of filters that can be applied to counts.
fn combinations() -> Vec<Filters> {
    let date = |year, month| Some(Date::new(year, month, 0));
    let times = [
        (None, None),
        (date(2022, 0), None),
        (date(2021, 7), date(2023, 2)),
        (None, date(2023, 11)),
    ];
    let groups =
        |floors: &[u32]| Some(floors.iter().map(|floor| RatingGroup::of(*floor)).collect());
    let ratings = [
        (None, false),
        (groups(&[0]), false),
        (groups(&[]), true),
        (groups(&[1600, 2000, 2500]), false),
        (groups(&[1800]), true),
    ];
    let speeds = [
        None,
        Some(vec![Speed::Blitz, Speed::Classical]),
        Some(vec![]),
    ];
    let mut all = Vec::new();
    for (since, until) in times {
        for (groups, unrated) in &ratings {
            for speeds in &speeds {
                all.push(Filters {
                    since,
                    until,
                    groups: groups.clone(),
                    unrated: *unrated,
                    speeds: speeds.clone(),
                    ..Filters::default()
                });
            }
        }
    }
    all
}

/// Writes games of the engine to `target`, each three times, with different tags.
fn tagged_games(target: &Path) {
    let text = fs::read_to_string("data/selfplay.pgn").unwrap();
    let movetexts = text
        .split("\n\n")
        .filter(|part| part.starts_with("1. "))
        .take(200);
    let movetexts: Vec<&str> = movetexts.collect();
    let mut tagged = String::new();
    for number in 0..3 * movetexts.len() {
        let movetext = movetexts[number % movetexts.len()];
        let rating = |number: usize| match number % 5 {
            0 => "?".to_owned(),
            _ => (700 + number * 337 % 2300).to_string(),
        };
        let date = match number % 11 {
            0 => "????.??.??".to_owned(),
            1 => "2022.??.??".to_owned(),
            _ => format!("{}.{:02}.07", 2020 + number % 5, 1 + number % 12),
        };
        let control = ["60+0", "180+2", "-", "600+5", "?"][number * number % 5];
        let (white, black) = (rating(number), rating(number / 2));
        tagged += &format!(
            "[Date \"{date}\"]\n[WhiteElo \"{white}\"]\n[BlackElo \"{black}\"]\n[TimeControl \"{control}\"]\n\n{movetext}\n\n"
        );
    }
    fs::write(target, tagged).unwrap();
}

#[test]
fn counts_answer_as_the_games_do() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    tagged_games(&at("tagged.pgn"));
    for (name, pgn) in [
        ("famous", "data/famous.pgn".into()),
        ("tagged", at("tagged.pgn")),
    ] {
        let games = at(&format!("{name}.games"));
        MakeBook::new([Input::file(pgn)])
            .explorer(&games)
            .run()
            .unwrap();
        let games = Explorer::open([("games".to_owned(), games)]).unwrap();
        let (rows, positions) = counted(&games);
        let path = at(&format!("{name}.counts"));
        write(&rows, &path, 0);
        let verified = verify(&path, &Meter::default()).unwrap();
        assert_eq!(verified.faults, []);
        assert_eq!(verified.positions, rows.len() as u64);
        let counts = Explorer::open([("counts".to_owned(), path)]).unwrap();
        // Test the positions with the most rows, and some others.
        let mut lines: Vec<(usize, Line)> = rows
            .iter()
            .map(|(subject, rows)| {
                (
                    rows.len(),
                    Line::at(Variant::Standard, positions[&subject.0].clone()),
                )
            })
            .collect();
        lines.sort_by_key(|(rows, _)| usize::MAX - rows);
        for (number, filters) in combinations().into_iter().enumerate() {
            for (_, line) in lines.iter().take(20) {
                compare(&games, &counts, line, &filters, number);
            }
            for (_, line) in lines.iter().skip(20 + number).step_by(997) {
                compare(&games, &counts, line, &filters, number);
            }
        }
    }
}

fn compare(games: &Explorer, counts: &Explorer, line: &Line, filters: &Filters, number: usize) {
    for view in [View::Lichess, View::Masters] {
        let mut query = Query::new(line.clone(), view);
        query.filters = filters.clone();
        query.top_games = 0;
        query.recent_games = Some(0);
        query.moves = None;
        query.history = number % 3 == 1;
        query.years = number % 3 == 2;
        let mut wanted = games.answer(&query).unwrap();
        for mv in &mut wanted.moves {
            mv.game = None;
        }
        assert_eq!(counts.answer(&query).unwrap(), wanted, "{filters:?}");
    }
    let facets = |explorer: &Explorer| Facets {
        variants: None,
        ..explorer.facets(line, filters).unwrap()
    };
    assert_eq!(facets(counts), facets(games), "{filters:?}");
    assert_eq!(
        counts.scores(line, filters).unwrap(),
        games.scores(line, filters).unwrap()
    );
}

#[test]
fn indexes_of_ranges_of_keys_answer_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let input = Input::file("data/famous.pgn");
    let run = MakeBook::new([input]).explorer(path("games"));
    run.run().unwrap();
    let open = |names: &[&str]| {
        let sources = names.iter().map(|name| ((*name).to_owned(), path(name)));
        Explorer::open(sources).unwrap()
    };
    let (mut low, positions) = counted(&open(&["games"]));
    write(&low, &path("all"), 0);
    let high = low.split_off(&ListKey(u64::MAX / 3));
    write(&low, &path("low"), 0);
    write(&high, &path("high"), 0);
    let (whole, ranges) = (open(&["all"]), open(&["low", "high"]));
    for pos in positions.into_values() {
        let query = Query::new(Line::at(Variant::Standard, pos), View::Lichess);
        assert_eq!(
            ranges.answer(&query).unwrap(),
            whole.answer(&query).unwrap()
        );
    }
}

#[test]
fn sources_of_both_kinds_answer_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    MakeBook::new([Input::file("data/famous.pgn")])
        .explorer(path("games"))
        .run()
        .unwrap();
    let open = |names: &[&str]| {
        Explorer::open(names.iter().map(|name| ((*name).to_owned(), path(name)))).unwrap()
    };
    write(&counted(&open(&["games"])).0, &path("counts"), 5);
    let both = open(&["counts", "games"]);
    let query = Query::new(Line::start(Variant::Standard), View::Lichess);
    let (one, two) = (
        open(&["games"]).answer(&query).unwrap(),
        both.answer(&query).unwrap(),
    );
    assert_eq!(two.games(), 2 * one.games());
    assert_eq!(two.top_games, one.top_games);
    // An answer names the game of a move only if a single game played it. Here each source has one.
    assert!(two.moves.iter().all(|mv| mv.game.is_none()));

    let of = |source: Option<&str>| Filters {
        source: source.map(str::to_owned),
        ..Filters::default()
    };
    assert_eq!(both.min_game(&of(None)), Some(5));
    assert_eq!(both.min_game(&of(Some("games"))), None);
    assert_eq!(both.max_ply(&of(None)), Some(30));
    let line = |source| both.lacking_line(&of(source)).unwrap_or_default();
    assert!(line(None).starts_with(
        "some of these counts contain only positions up to half-move 30 in which at least 5"
    ));
    assert!(line(Some("counts")).starts_with("these counts contain only"));
    assert_eq!(line(Some("games")), "");
    assert_eq!(both.about().sources[0].games, Some(7));
    // Counts do not state how many games pass filters.
    let line = Line::start(Variant::Standard);
    let variants = |filters: &Filters| both.facets(&line, filters).unwrap().variants;
    assert!(variants(&of(None)).is_some());
    let some = |source| Filters {
        speeds: Some(vec![Speed::Blitz]),
        ..of(source)
    };
    assert_eq!(variants(&some(None)), None);
    assert!(variants(&some(Some("games"))).is_some());
    for source in [None, Some("counts")] {
        let asked = Filters {
            players: vec!["tal".to_owned()],
            ..of(source)
        };
        let needs = both.needs_games(&asked).unwrap().to_string();
        assert!(
            needs.contains("needed for the filter player") && needs.contains("counts"),
            "{needs}"
        );
        let query = Query {
            filters: asked,
            ..query.clone()
        };
        assert!(
            both.answer(&query)
                .unwrap_err()
                .to_string()
                .contains("games are needed for the filter player")
        );
    }
    assert!(
        both.needs_games(&Filters {
            min_plies: 9,
            ..of(Some("games"))
        })
        .is_none()
    );
    assert!(
        both.lacks_games(None, "x").is_none() && both.lacks_games(Some("counts"), "x").is_some()
    );
    assert!(both.files(&of(None)).is_err() && both.files(&of(Some("games"))).is_ok());
}

#[test]
fn a_search_for_unknown_names_reads_the_names_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games");
    MakeBook::new([Input::file("data/famous.pgn")])
        .explorer(&path)
        .run()
        .unwrap();
    let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
    for names in [NameMatch::Part, NameMatch::Whole] {
        let filters = |players: Vec<String>| Filters {
            players,
            names,
            ..Filters::default()
        };
        let nobody = |count: usize| (0..count).map(|number| format!("nob{number}"));
        // The search calls the function each time it begins to read the names.
        let readings = |players: Vec<String>| {
            let readings = Cell::new(0);
            let unknown = explorer.unknown_name_while(&filters(players), &|| {
                readings.set(readings.get() + 1);
                true
            });
            (unknown.unwrap().map(|unknown| unknown.name), readings.get())
        };
        let one = readings(nobody(1).collect());
        assert_eq!(one.0.as_deref(), Some("nob0"));
        assert_eq!(readings(nobody(20).collect()), one);
        let known = "Fischer, Robert James".to_owned();
        let (unknown, few) = readings(nobody(19).chain([known]).collect());
        assert!(unknown.is_none() && few < one.1);
        let filters = filters(nobody(20).collect());
        let cancelled = explorer.unknown_name_while(&filters, &|| false);
        assert!(matches!(cancelled, Err(Error::Interrupted)));
        let all = explorer.unknown_names(&filters).unwrap();
        assert!(
            all.iter()
                .map(|unknown| unknown.name.clone())
                .eq(nobody(20))
        );
    }
}

#[test]
fn games_of_several_players_are_counted_like_those_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let pgn = dir.path().join("games.pgn");
    let moves = ["1. e4 *", "1. d4 *", "1. c4 *", "1. c4 *"];
    let players = [("A", "B"), ("B", "A"), ("C", "A"), ("A", "A")];
    let games = moves.iter().zip(players).map(|(moves, (white, black))| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Date \"2020.01.01\"]\n\n{moves}\n\n")
    });
    fs::write(&pgn, games.collect::<String>()).unwrap();
    let paths = ["one", "two"].map(|name| (name.to_owned(), dir.path().join(name)));
    for (_, path) in &paths {
        let run = MakeBook::new([Input::file(&pgn)]).explorer(path);
        run.run().unwrap();
    }
    let explorer = Explorer::open(paths).unwrap();
    let names = ["A", "B", "C", "D", "a"].map(str::to_owned);
    for (once, opponents, expected) in [
        (true, vec![], [4, 2, 1, 0, 4]),
        (false, vec![], [8, 4, 2, 0, 8]),
        (true, vec!["B".to_owned()], [2, 0, 0, 0, 2]),
        (true, vec!["A".to_owned()], [1, 2, 1, 0, 1]),
    ] {
        let count = |players: &[String]| {
            let filters = Filters {
                players: players.to_vec(),
                opponents: opponents.clone(),
                fold_duplicates: once,
                ..Filters::default()
            };
            explorer.count_games_of_players(&filters).unwrap()
        };
        assert_eq!(count(&names), expected, "{once} {opponents:?}");
        let each = names
            .iter()
            .map(|name| count(std::slice::from_ref(name))[0]);
        assert_eq!(each.collect::<Vec<_>>(), expected, "{once} {opponents:?}");
    }
}

#[test]
fn the_search_for_duplicates_can_be_cancelled_at_any_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games.idx");
    let run = MakeBook::new([
        Input::file("data/famous.pgn"),
        Input::file("data/famous.pgn"),
    ]);
    run.explorer(&path).run().unwrap();
    let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
    let calls = Cell::new(0);
    let mut most = 0;
    // Each search ends one check later than the one before.
    while let Err(err) = explorer.find_duplicates_while(&|| {
        calls.set(calls.get() + 1);
        calls.get() <= most
    }) {
        assert!(matches!(err, Error::Interrupted), "{err}");
        assert_eq!(calls.replace(0), most + 1);
        most += 1;
    }
    assert!(most > explorer.game_count() as usize / 2, "{most}");
    let filters = Filters {
        fold_duplicates: true,
        ..Filters::default()
    };
    let all: u64 = explorer.variants(&filters).unwrap().unwrap().values().sum();
    assert_eq!(2 * all, explorer.game_count());
}

#[test]
fn a_preparation_can_be_cancelled_at_each_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("games.idx");
    let run = MakeBook::new([Input::file("data/famous.pgn")]);
    run.explorer(&path).run().unwrap();
    let explorer = Explorer::open([("games".to_owned(), path)]).unwrap();
    explorer.find_duplicates_while(&|| true).unwrap();
    let calls = AtomicUsize::new(0);
    let prepared = |most: usize| {
        calls.store(0, Ordering::Relaxed);
        explorer.prepare(&PrepareQuery {
            line: Line::parse(Variant::Standard, None, "").unwrap(),
            filters: Filters {
                players: vec!["a".to_owned()],
                opponents: vec!["e".to_owned()],
                names: NameMatch::Part,
                fold_duplicates: true,
                ..Filters::default()
            },
            color: shakmaty::Color::White,
            repertoire: None,
            lines: 7,
            should_continue: &|| calls.fetch_add(1, Ordering::Relaxed) < most,
        })
    };
    let whole = prepared(usize::MAX).unwrap();
    let all = calls.load(Ordering::Relaxed);
    assert!(all > 10, "{all}");
    for most in [0, 1, 5, all - 1] {
        let err = prepared(most).unwrap_err();
        assert!(matches!(err, Error::Interrupted), "{most}: {err}");
    }
    assert_eq!(prepared(all).unwrap(), whole);
}
