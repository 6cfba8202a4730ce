//! Games with nested variations: which of their moves count, in books, trees and repertoires. Each test compares with a
//! brute force that knows how a random game was made, and never parses its text.

use std::{collections::BTreeSet, fs, path::Path};

use polybook::{
    MakeBook,
    counts::Memory,
    pgn::Input,
    position::{BookMove, Keyed, Variant, read_move, uci},
    progress::Meter,
    repertoire::{FileOrder, OpenOptions, OpenedSource, RemovedMoves, without_moves},
    tree::{Limits, MoveSource, Order, Tree, TreeEvent},
};
use proptest::prelude::*;
use shakmaty::{Move, Position, san::SanPlus, variant::VariantPosition};

use crate::common::{ok, temp};

/// A move of a random line, with the variations after it.
#[derive(Clone, Debug)]
struct Item {
    what: What,
    /// Text after the move, such as a comment.
    remark: &'static str,
    variations: Vec<RandomLine>,
}

#[derive(Clone, Debug)]
enum What {
    /// A legal move, chosen by a number. After a move that cannot be played, it is any move.
    Move(u8),
    Null(&'static str),
    Illegal,
}

/// A random main line or variation.
#[derive(Clone, Debug)]
struct RandomLine {
    /// Variations before the first move, which have no move to replace.
    first: Vec<RandomLine>,
    items: Vec<Item>,
}

fn line(depth: u32) -> BoxedStrategy<RandomLine> {
    let variations = move |most| match depth {
        0 => Just(Vec::new()).boxed(),
        _ => proptest::collection::vec(line(depth - 1), 0..=most).boxed(),
    };
    let what = prop_oneof![
        8 => any::<u8>().prop_map(What::Move),
        1 => proptest::sample::select(&["--", "Z0", "@@@@", "null", "0000"][..]).prop_map(What::Null),
        1 => Just(What::Illegal),
    ];
    const REMARKS: [&str; 7] = [
        "",
        "",
        " {x}",
        " $1",
        "!?",
        " ; (\n",
        " {1. a3 (1. a4)} {y}",
    ];
    let item = (what, proptest::sample::select(&REMARKS[..]), variations(2));
    let item = item.prop_map(|(what, remark, variations)| Item {
        what,
        remark,
        variations,
    });
    let first = prop_oneof![5 => Just(Vec::new()).boxed(), 1 => variations(1)];
    (first, proptest::collection::vec(item, 0..5))
        .prop_map(|(first, items)| RandomLine { first, items })
        .boxed()
}

/// A move that counts: the position before it, and the move.
type CountedMove = (Keyed<VariantPosition>, Move);

/// The text of random games, and the moves that count in them.
#[derive(Default)]
struct Games {
    text: String,
    counted: Vec<CountedMove>,
    /// The number of lines that end early because of a null move, and the number of variations that end early because
    /// of an illegal move.
    null: u64,
    illegal: u64,
    max_ply: usize,
    /// A move that is removed with all moves after it, by the identity of its position.
    removed: Option<(u64, Move)>,
}

/// Where a line begins.
#[derive(Clone)]
struct Begin {
    /// The position, or `None` if it is unknown.
    pos: Option<VariantPosition>,
    ply: usize,
    is_removed: bool,
    is_variation: bool,
}

impl Games {
    fn of(games: &[RandomLine], max_ply: usize, removed: Option<(u64, Move)>) -> Games {
        let mut all = Games {
            max_ply,
            removed,
            ..Games::default()
        };
        let other = RandomLine {
            first: Vec::new(),
            items: Vec::from([Item {
                what: What::Move(0),
                remark: "",
                variations: Vec::new(),
            }]),
        };
        // The first game has a legal move, so that the file is never without moves.
        for game in std::iter::once(&other).chain(games) {
            all.text += "[Event \"x\"]\n\n1. ";
            let begin = Begin {
                pos: Some(Variant::Standard.start()),
                ply: 0,
                is_removed: false,
                is_variation: false,
            };
            all.line(game, begin);
            all.text += "*\n\n";
        }
        all
    }

    fn line(&mut self, line: &RandomLine, mut at: Begin) {
        let unknown = Begin {
            pos: None,
            is_variation: true,
            ..at.clone()
        };
        for variation in &line.first {
            self.variation(variation, unknown.clone());
        }
        for item in &line.items {
            let before = Begin {
                is_variation: true,
                ..at.clone()
            };
            let pos = at.pos.take();
            let counts = pos.is_some() && at.ply < self.max_ply;
            let text = match (&item.what, pos) {
                (What::Null(text), _) => {
                    self.null += u64::from(counts);
                    (*text).to_owned()
                }
                (What::Illegal, pos) => {
                    self.illegal += u64::from(counts && at.is_variation);
                    let texts = ["Kd6", "Ra5", "Qxh8+", "e9"];
                    let is_illegal = |text: &&&str| {
                        pos.as_ref()
                            .is_none_or(|pos| read_move(pos, text.as_bytes()).is_err())
                    };
                    (*texts.iter().find(is_illegal).unwrap()).to_owned()
                }
                (What::Move(_), None) => "Nc3".to_owned(),
                (What::Move(choice), Some(mut pos)) => {
                    let legal = pos.legal_moves();
                    let mv = legal[usize::from(*choice) % legal.len().min(7)];
                    let keyed = Keyed::new(pos.clone());
                    at.is_removed |= self.removed == Some((keyed.identity(), mv));
                    if counts && !at.is_removed {
                        self.counted.push((keyed, mv));
                    }
                    let text = match choice % 2 {
                        0 => uci(&pos, mv),
                        _ => SanPlus::from_move(pos.clone(), mv).to_string(),
                    };
                    pos.play_unchecked(mv);
                    at.pos = Some(pos);
                    text
                }
            };
            at.ply += 1;
            self.text += &format!("{text}{} ", item.remark);
            for variation in &item.variations {
                self.variation(variation, before.clone());
            }
        }
    }

    fn variation(&mut self, line: &RandomLine, begin: Begin) {
        self.text += "(";
        self.line(line, begin);
        self.text += ") ";
    }

    /// Returns the moves that count, each with the identity of its position, without duplicates and in their order.
    fn in_order(&self) -> Vec<(u64, String)> {
        let mut known = BTreeSet::new();
        let moves = self.counted.iter();
        let moves = moves.map(|(pos, mv)| (pos.identity(), BookMove::from(*mv).to_string()));
        moves.filter(|mv| known.insert(mv.clone())).collect()
    }
}

/// Calls `test` with the moves of the repertoire `path` in the order of the file, and with the repertoire.
fn with_repertoire<T>(path: &Path, test: impl FnOnce(OpenedSource, &OpenOptions<'_>) -> T) -> T {
    let directory = temp();
    let options = OpenOptions::new(directory.path(), Memory::default());
    test(OpenedSource::repertoire(path, &options).unwrap(), &options)
}

/// Returns all moves of a source, each with the identity of its position, sorted by position. The moves of a position
/// are in the order of the source.
fn moves_of(source: &impl MoveSource) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let meter = Meter::default();
    let tree = Tree::new(source, Variant::Standard.start(), Limits::default(), &meter);
    tree.walk(Order::Positions, &mut |event| {
        if let TreeEvent::Move(branch) = event {
            let mv = BookMove::from(branch.mv.mv).to_string();
            found.push((branch.pos.identity(), mv));
        }
        Ok(())
    })
    .unwrap();
    found.sort_by_key(|(pos, _)| *pos);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn books_contain_the_moves_that_can_be_played_and_no_others(
        games in proptest::collection::vec(line(3), 1..3),
        max_ply in prop_oneof![2 => 0..7usize, 1 => Just(usize::MAX)],
        drop_duplicates: bool,
    ) {
        let expected = Games::of(&games, max_ply, None);
        let dir = temp();
        let (pgn, bin) = (dir.path().join("games.pgn"), dir.path().join("book.bin"));
        fs::write(&pgn, &expected.text).unwrap();
        let run = MakeBook::new([Input::file(&pgn)])
            .variations(true)
            .keep_prefix(true)
            .selection(polybook::selection::Selection {
                duplicates: drop_duplicates.then_some(polybook::selection::Duplicates::Once),
                ..Default::default()
            })
            .allow_empty(true)
            .max_ply(max_ply)
            .min_game(1)
            .with_header(false)
            .threads(1)
            .bin(&bin);
        let report = run.run().unwrap();
        let records = fs::read(&bin).unwrap();
        let (records, _) = records.as_chunks::<16>();
        let mut found = Vec::from_iter(records.iter().map(|record| {
            let (key, rest) = record.split_first_chunk().unwrap();
            let mv = rest.first_chunk().unwrap();
            (u64::from_be_bytes(*key), u16::from_be_bytes(*mv))
        }));
        found.sort_unstable();
        let moves = expected.counted.iter().map(|(pos, mv)| (pos.key(), BookMove::from(*mv).0));
        let moves: BTreeSet<_> = moves.collect();
        prop_assert_eq!(found, Vec::from_iter(moves), "{}", expected.text);
        prop_assert_eq!(report.totals.plies, expected.counted.len() as u64, "{}", expected.text);
        let stopped = (report.totals.null_moves, report.totals.unplayable_variations);
        prop_assert_eq!(stopped, (expected.null, expected.illegal), "{}", expected.text);
    }

    #[test]
    fn repertoires_contain_the_same_moves_in_the_order_of_the_file(games in proptest::collection::vec(line(3), 1..3)) {
        let expected = Games::of(&games, usize::MAX, None);
        let dir = temp();
        let pgn = dir.path().join("repertoire.pgn");
        fs::write(&pgn, &expected.text).unwrap();
        let found = with_repertoire(&pgn, |repertoire, options| {
            let order = FileOrder::of(repertoire.pgn().unwrap(), options).unwrap();
            moves_of(&order.applied_to(repertoire))
        });
        let mut moves = expected.in_order();
        moves.sort_by_key(|(pos, _)| *pos);
        prop_assert_eq!(found, moves, "{}", expected.text);
    }

    #[test]
    fn a_removed_move_takes_its_continuations_along_and_nothing_else(
        games in proptest::collection::vec(line(3), 1..3),
        choice: u8,
    ) {
        let all = Games::of(&games, usize::MAX, None);
        let (pos, mv) = &all.counted[usize::from(choice) % all.counted.len()];
        let mut removed = RemovedMoves::default();
        removed.insert(pos, *mv);
        let expected = Games::of(&games, usize::MAX, Some((pos.identity(), *mv)));
        let dir = temp();
        let pgn = dir.path().join("repertoire.pgn");
        fs::write(&pgn, &all.text).unwrap();
        let (found, text) = with_repertoire(&pgn, |repertoire, options| {
            let left = without_moves(&repertoire, &removed, options).unwrap();
            let text = fs::read_to_string(options.directory.join("edited.pgn")).unwrap();
            let mut found = moves_of(&left);
            found.sort();
            (found, text)
        });
        let mut moves = expected.in_order();
        moves.sort();
        prop_assert_eq!(found, moves, "{} without {:?}: {}", all.text, mv, text);
    }
}

/// Returns the moves of a repertoire, as text without numbers and weights, one line for each move.
fn tree_of(text: &str) -> String {
    let dir = temp();
    fs::write(dir.path().join("a.pgn"), text).unwrap();
    let tree = ok(dir.path(), "tree a.pgn -q");
    let moves = tree
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    moves.collect::<Vec<_>>().join(" ")
}

#[test]
fn nothing_follows_a_move_that_is_not_played() {
    for (text, moves) in [
        (
            "1. e4 c5 (1... d6 2. Nc3 -- 3. d4 (3. f4)) *",
            "e4 c5 d6 Nc3",
        ),
        (
            "1. e4 c5 (1... d6 2. Nc3 Ra5 3. d4 (3. f4 g6)) 2. Nf3 *",
            "e4 c5 Nf3 d6 Nc3",
        ),
        // An alternative to the move that is not played replaces it.
        ("1. e4 -- (1... c5 2. Nf3) 2. d4 (2. c4) *", "e4 c5 Nf3"),
        (
            "1. e4 Z0 ({x} 1... c5 2. @@@@ (2. Nf3) 2... d6 (2... e6)) *",
            "e4 c5 Nf3",
        ),
        ("1. e4 (1. d4 Ke4 (1... d5 2. c4)) *", "e4 d4 d5 c4"),
        ("1. -- (1. e4) (1. d4) *", "e4 d4"),
        // A variation at the start of a line replaces nothing.
        ("1. e4 e5 ((1... c5) 1... a6 (1... b6)) *", "e4 e5 a6 b6"),
    ] {
        assert_eq!(
            tree_of(&format!("[Event \"x\"]\n\n{text}\n")),
            moves,
            "{text}"
        );
    }
}

#[test]
fn variations_past_the_last_counted_half_move_do_not_count() {
    let dir = temp();
    let text = "1. e4 c5 (1... d6 2. Nc3 Nf6 3. d4 (3. f4)) *\n";
    fs::write(dir.path().join("a.pgn"), text).unwrap();
    let line = "make-book a.pgn --variations --max-ply 3 --min-game 1 --uniform --bin a.bin --json";
    let report: serde_json::Value = serde_json::from_str(&ok(dir.path(), line)).unwrap();
    assert_eq!(report["plies"], 4, "{report}");
    assert!(report["null_moves"].is_null() && report["unplayable_variations"].is_null());
}

/// Variations that are nested too deep are left out, and the rest of the game is read.
#[test]
fn very_deep_variations_are_left_out() {
    let nested = |depth| {
        let (open, close) = ("(1. d4 ".repeat(depth), ")".repeat(depth));
        tree_of(&format!("1. e4 {open}(1. c4){close} e5 *\n"))
    };
    assert_eq!(nested(63), "e4 e5 d4 c4");
    assert_eq!(nested(64), "e4 e5 d4");
    assert_eq!(nested(100_000), "e4 e5 d4");
}
