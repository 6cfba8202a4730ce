//! An index with damaged files: every answer is the right one or an error.

use std::{path::Path, sync::OnceLock};

use polybook::{
    MakeBook,
    explorer::{Explorer, Line, Page, Query, Sort, View},
    index::{Index, MergeIndexes},
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

/// The files of a small index, by name, and all its answers.
struct Sound {
    files: Files,
    answers: Vec<String>,
}

/// The PGN stands where it stood, so that the index finds it.
fn sound() -> &'static Sound {
    static SOUND: OnceLock<Sound> = OnceLock::new();
    SOUND.get_or_init(|| {
        let room = Room::new();
        let pgn = room.file("games.pgn", GAMES.as_bytes());
        let dir = room.path("index");
        MakeBook::new([Input::file(&pgn)])
            .leveldb(&dir)
            .index_stats(true)
            .explorer(true)
            .run()
            .unwrap();
        let answers = answers(&dir).into_iter().map(Result::unwrap).collect();
        Sound {
            files: files_of(&dir),
            answers,
        }
    })
}

/// All that an index answers about its games, or the error that says why not.
fn answers(dir: &Path) -> Vec<Result<String, String>> {
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
    answers.extend(explored_answers(dir));
    answers
}

/// All that the explorer answers.
fn explored_answers(dir: &Path) -> Vec<Result<String, String>> {
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
        query.transpositions = true;
        let answer = explorer.answer(&query);
        answers.push(answer.map(|answer| format!("{answer:?}")).map_err(text));
        query.filters.player = Some("three".to_owned());
        let page = Page {
            skip: 0,
            limit: 5,
            sort: Sort::Rating,
        };
        let games = explorer.games(&query, &page);
        answers.push(games.map(|games| format!("{games:?}")).map_err(text));
    }
    answers
}

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let room = Room::new();
    if kind % 2 == 0 {
        edited(&room, rest);
    } else {
        replaced(&room, usize::from(kind / 2), rest);
    }
}

/// Bytes changed here and there: each four bytes say in which file, where, and to what.
fn edited(room: &Room, edits: &[u8]) {
    let sound = sound();
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

/// A file that is anything.
fn replaced(room: &Room, number: usize, bytes: &[u8]) {
    let mut files = sound().files.clone();
    let number = number % files.len();
    files[number].1 = bytes.to_vec();
    let dir = write(room, &files);
    let _ = answers(&dir);
    if let Ok(index) = Index::open(&dir) {
        let start = key(&Variant::Standard.start());
        let _ = index.games(start).map(|ids| ids.iter().take(1000).count());
        let _ = MergeIndexes::new([dir.clone(), dir]).run(&room.path("merged"));
    }
}

fn write(room: &Room, files: &Files) -> std::path::PathBuf {
    let dir = room.path("index");
    write_files(&dir, files);
    dir
}
