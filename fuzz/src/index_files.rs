//! An index with damaged files: every answer must be correct or an error.

use std::{path::Path, sync::OnceLock};

use polybook::{
    MakeBook,
    counts::Grouping,
    explorer::{Explorer, Line, Page, Query, Selection, Sort, Speed, View},
    index::{Index, IndexKind},
    pgn::Input,
    position::{Variant, from_text, key},
};

use super::{
    Room, choice,
    damage::{Files, edit, files_of, write_files},
};

const GAMES: &str = "\
[Event \"a\"]\n[White \"One\"]\n[Black \"Two\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n\n\
[Event \"b\"]\n[White \"Three\"]\n[Result \"0-1\"]\n\n1. e4 c5 2. Nf3 d6 0-1\n\n\
[Event \"c\"]\n[Date \"2024.01.02\"]\n[Result \"1/2-1/2\"]\n\n1. d4 d5 1/2-1/2\n";

/// The number of games for which the starting position gets sums and lists of its best games.
const SUMMED: usize = 33_000;

type Answers = Vec<Result<String, String>>;

/// The files of an undamaged index by name, with all its answers.
struct Sound {
    files: Files,
    answers: Vec<String>,
}

impl Sound {
    fn new(dir: &Path, answers: fn(&Path) -> Answers) -> Sound {
        Sound {
            files: files_of(dir),
            answers: answers(dir).into_iter().map(Result::unwrap).collect(),
        }
    }
}

/// Returns an undamaged index of the fork. Its PGN file stays in place, so that the index finds it.
fn sound() -> &'static Sound {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    SOUND.get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", GAMES.as_bytes());
        let dir = room.path("index");
        MakeBook::new([Input::file(&pgn)])
            .leveldb(&dir)
            .index_stats(true)
            .run()
            .unwrap();
        Sound::new(&dir, answers)
    })
}

/// Returns an undamaged explorer's index of the same games.
fn explored() -> &'static Sound {
    static EXPLORED: OnceLock<Sound> = OnceLock::new();
    EXPLORED.get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", GAMES.as_bytes());
        let dir = room.path("index");
        MakeBook::new([Input::file(&pgn)])
            .explorer(&dir)
            .run()
            .unwrap();
        Sound::new(&dir, answers)
    })
}

/// Returns an index whose starting position has sums.
fn summed() -> &'static Sound {
    static SUMMED_INDEX: OnceLock<Sound> = OnceLock::new();
    SUMMED_INDEX.get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", many_games().as_bytes());
        let dir = room.path("index");
        MakeBook::new([Input::file(&pgn)])
            .explorer(&dir)
            .run()
            .unwrap();
        Sound::new(&dir, summed_answers)
    })
}

/// Returns an index of counts. The counts of its starting position are in its page or, if it is large, in periods.
fn counted(is_large: bool) -> &'static Sound {
    static COUNTED: [OnceLock<Sound>; 2] = [const { OnceLock::new() }; 2];
    COUNTED[usize::from(is_large)].get_or_init(|| {
        let room = Room::new();
        let games = if is_large {
            many_games()
        } else {
            GAMES.to_owned()
        };
        let pgn = room.file("games.pgn", games.as_bytes());
        let (counts, dir) = (room.path("counts"), room.path("index"));
        let by = Grouping {
            speed: true,
            rating: true,
            month: true,
        };
        MakeBook::new([Input::file(&pgn)])
            .counts(&counts)
            .by(by)
            .run()
            .unwrap();
        MakeBook::new([Input::file(&counts)])
            .explorer(&dir)
            .run()
            .unwrap();
        Sound::new(&dir, counted_answers)
    })
}

/// Returns many games of one move each, in many months, speeds and rating groups.
fn many_games() -> String {
    let game = |number: usize| {
        let (month, year, rating) = (1 + number % 12, 2010 + number % 3, 900 + number * 7 % 1700);
        let control = ["60+0", "180+2", "-"][number % 3];
        let (mv, result) = (
            ["e4", "d4", "Nf3"][number / 5 % 3],
            ["1-0", "0-1", "*"][number / 3 % 3],
        );
        format!(
            "[Date \"{year}.{month:02}.01\"]\n[WhiteElo \"{rating}\"]\n[TimeControl \"{control}\"]\n\n1. {mv} {result}\n\n"
        )
    };
    (0..SUMMED).map(game).collect()
}

/// Returns all answers of an index of counts.
fn counted_answers(dir: &Path) -> Answers {
    let mut answers = summed_answers(dir);
    let Ok(explorer) = Explorer::open([("counts".to_owned(), dir.to_owned())]) else {
        return answers;
    };
    let text = |err: polybook::Error| err.to_string();
    for line in ["", "e2e4", "e2e4,e7e5", "d2d4,d7d5", "a2a3"] {
        let line = Line::parse(Variant::Standard, None, line).unwrap();
        let facets = explorer.facets(&line, &Selection::default());
        answers.push(facets.map(|facets| format!("{facets:?}")).map_err(text));
        let mut query = Query::new(line, View::Lichess);
        query.resulting = true;
        let answer = explorer.answer(&query);
        answers.push(answer.map(|answer| format!("{answer:?}")).map_err(text));
    }
    answers
}

/// Returns the answers that come from sums of all games, of years and of months.
fn summed_answers(dir: &Path) -> Answers {
    let text = |err: polybook::Error| err.to_string();
    let explorer = match Explorer::open([("games".to_owned(), dir.to_owned())]) {
        Ok(explorer) => explorer,
        Err(err) => return vec![Err(text(err))],
    };
    let mut query = Query::new(Line::start(Variant::Standard), View::Lichess);
    let mut answers = Vec::new();
    for since in ["", "2011", "2011.05"] {
        query.filters.since = since.parse().ok();
        for speed in [None, Some(Speed::Bullet)] {
            query.filters.speed = speed.map(|speed| vec![speed]);
            query.history = speed.is_some();
            let answer = explorer.answer(&query);
            answers.push(answer.map(|answer| format!("{answer:?}")).map_err(text));
        }
    }
    answers
}

/// Returns all answers of an index about its games, or the error.
fn answers(dir: &Path) -> Answers {
    let text = |err: polybook::Error| err.to_string();
    let index = match Index::open(dir) {
        Ok(index) => index,
        Err(err) => return vec![Err(text(err))],
    };
    let mut answers = vec![Ok(format!("{} {:?}", index.game_count(), index.variant()))];
    for id in 0..3 {
        answers.push(
            index
                .header(id)
                .map(|header| format!("{header:?}"))
                .map_err(text),
        );
    }
    if index.kind() != IndexKind::Leveldb {
        answers.extend(explored_answers(dir));
        return answers;
    }
    for line in ["", "e4", "e4 e5", "d4 d5", "a3"] {
        let key = key(&from_text(None, Some(line)).unwrap());
        answers.push(index.games(key).map(|ids| format!("{ids:?}")).map_err(text));
        answers.push(
            index
                .stats(key)
                .map(|stats| format!("{stats:?}"))
                .map_err(text),
        );
    }
    answers
}

/// Returns all answers of the explorer.
fn explored_answers(dir: &Path) -> Answers {
    let text = |err: polybook::Error| err.to_string();
    let explorer = match Explorer::open([("games".to_owned(), dir.to_owned())]) {
        Ok(explorer) => explorer,
        Err(err) => return vec![Err(text(err))],
    };
    let mut answers = vec![Ok(format!("{:?}", explorer.about()))];
    for line in ["", "e2e4", "e2e4,e7e5", "d2d4,d7d5", "a2a3"] {
        let line = Line::parse(Variant::Standard, None, line).unwrap();
        let mut query = Query::new(line, View::Lichess);
        query.history = true;
        query.resulting = true;
        let answer = explorer.answer(&query);
        answers.push(answer.map(|answer| format!("{answer:?}")).map_err(text));
        query.filters.player = vec!["three".to_owned()];
        let page = Page {
            skip: 0,
            limit: 5,
            sort: Sort::Rating,
            fold_matches: false,
        };
        let games = explorer.games(&query, &page);
        answers.push(games.map(|games| format!("{games:?}")).map_err(text));
    }
    answers
}

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let room = Room::new();
    match kind % 4 {
        0 => edited(&room, sound(), answers, rest),
        1 => edited(&room, explored(), answers, rest),
        2 if kind / 4 % 4 == 2 => edited(&room, counted(false), counted_answers, rest),
        2 if kind / 4 % 4 == 3 => edited(&room, counted(true), counted_answers, rest),
        2 => edited(&room, summed(), summed_answers, rest),
        _ => replaced(&room, usize::from(kind / 2), rest),
    }
}

/// Checks the answers of an index with modified bytes. Each group of four bytes gives a file, an offset and a new value.
fn edited(room: &Room, sound: &Sound, answers: fn(&Path) -> Answers, edits: &[u8]) {
    let mut files = sound.files.clone();
    edit(&mut files, edits);
    let dir = write(room, &files);
    let found = answers(&dir);
    if let [Err(_)] = &*found {
        return;
    }
    for (found, right) in found.iter().zip(&sound.answers) {
        if let Ok(found) = found {
            assert_eq!(found, right);
        }
    }
}

/// Checks the answers of an index in which a file has arbitrary contents.
fn replaced(room: &Room, number: usize, bytes: &[u8]) {
    let mut files = sound().files.clone();
    let number = number % files.len();
    files[number].1 = bytes.to_vec().into();
    let dir = write(room, &files);
    let _ = answers(&dir);
    if let Ok(index) = Index::open(&dir) {
        let start = key(&Variant::Standard.start());
        let _ = index.games(start).map(|ids| ids.iter().take(1000).count());
    }
}

fn write(room: &Room, files: &Files) -> std::path::PathBuf {
    let dir = room.path("index");
    write_files(&dir, files);
    dir
}
