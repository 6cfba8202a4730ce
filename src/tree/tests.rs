use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use proptest::prelude::*;
use shakmaty::{Chess, Position};

use super::*;
use crate::{
    MakeBook,
    book::{self, Book},
    explorer::Explorer,
    index::Index,
    pgn::Input,
    position::{BookMove, Keyed, Variant},
    progress::Meter,
    walk::Source,
};

/// Returns a book of the moves that `choices` select, in lines from the start, and the keys and moves of its records.
fn book(choices: &[Vec<u8>]) -> (Book, BTreeSet<(u64, u16)>) {
    let mut records = BTreeSet::new();
    for line in choices {
        let mut pos = Keyed::new(Chess::default());
        for choice in line {
            let moves = pos.position().legal_moves();
            let Some(mv) = moves.get(usize::from(*choice) % moves.len().max(1)) else {
                break;
            };
            records.insert((pos.key(), BookMove::from(*mv).0));
            pos.play(*mv);
        }
    }
    let entry = |(key, mv): &(u64, u16)| book::Entry {
        key: *key,
        mv: BookMove(*mv),
        weight: 1,
        learn: 0,
    };
    let bytes = records.iter().flat_map(|record| entry(record).to_bytes());
    (Book::from_bytes(bytes.collect()).unwrap(), records)
}

/// Generates choices for [`book`]. Most are small numbers, so that different lines often reach the same position.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line = proptest::collection::vec(prop_oneof![0..4u8, any::<u8>()], 0..20);
    proptest::collection::vec(line, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_move_is_met_once_in_every_order(
        choices in lines(),
        deepest in 0..3usize,
        longest in 1..9u64,
    ) {
        let (book, records) = book(&choices);
        let meter = Meter::default();
        let tree = Tree::new(&book, Variant::Standard.start(), Limits::default(), &meter);
        for order in [Order::Lines, Order::Positions, Order::Variations { deepest, longest }] {
            let mut met: BTreeMap<(u64, u16), u32> = BTreeMap::new();
            let mut open = 0;
            tree.walk(order, &mut |event| {
                match event {
                    TreeEvent::Move(branch) => {
                        let mv = BookMove::from(branch.mv.mv).0;
                        *met.entry((branch.pos.key(), mv)).or_default() += 1;
                    }
                    TreeEvent::Open => open += 1,
                    TreeEvent::Close => open -= 1,
                    TreeEvent::Game(_) => assert_eq!(open, 0),
                    TreeEvent::Position { .. } => {}
                }
                assert!((0..=deepest as i32).contains(&open));
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(open, 0);
            prop_assert!(met.values().all(|times| *times == 1));
            let met: BTreeSet<(u64, u16)> = met.into_keys().collect();
            prop_assert_eq!(&met, &records);
        }
    }

    #[test]
    fn a_limit_of_plies_leaves_out_what_takes_longer_and_nothing_else(
        choices in lines(),
        max_ply in 0..9usize,
        deepest in 0..3usize,
        longest in 1..9u64,
    ) {
        let (book, records) = book(&choices);
        let meter = Meter::default();
        let limits = Limits { max_ply: Some(max_ply), ..Limits::default() };
        let tree = Tree::new(&book, Variant::Standard.start(), limits, &meter);
        let plies = soonest(&records);
        let within: BTreeSet<(u64, u16)> = records
            .iter()
            .copied()
            .filter(|(key, _)| plies.get(key).is_some_and(|ply| *ply < max_ply))
            .collect();
        for order in [Order::Lines, Order::Positions, Order::Variations { deepest, longest }] {
            let mut met = BTreeSet::new();
            tree.walk(order, &mut |event| {
                if let TreeEvent::Move(branch) = event {
                    let key = branch.pos.key();
                    assert_eq!(plies[&key], branch.ply);
                    assert!(met.insert((key, BookMove::from(branch.mv.mv).0)));
                    let mut after = branch.pos.clone();
                    after.play(branch.mv.mv);
                    let elsewhere = plies.get(&after.key()).is_some_and(|ply| *ply < branch.ply + 1);
                    assert!(branch.is_transposition || !elsewhere);
                }
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(&met, &within);
        }
        prop_assert_eq!(meter.fraction(), Some(1.0));
    }

    #[test]
    fn a_limit_of_moves_holds(choices in lines(), most in 0..20u64) {
        let (book, records) = book(&choices);
        let meter = Meter::default();
        let limits = Limits { moves: Some(most), ..Limits::default() };
        let tree = Tree::new(&book, Variant::Standard.start(), limits, &meter);
        for order in [Order::Lines, Order::Positions, Order::Variations { deepest: 9, longest: 7 }] {
            let mut met = 0;
            tree.walk(order, &mut |event| {
                met += u64::from(matches!(event, TreeEvent::Move(_)));
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(met, most.min(records.len() as u64));
        }
    }
}

/// Returns the minimum number of half-moves in which the records lead to each position, by its key.
fn soonest(records: &BTreeSet<(u64, u16)>) -> BTreeMap<u64, usize> {
    let mut plies = BTreeMap::new();
    let mut level = vec![Keyed::new(Chess::default())];
    for ply in 0.. {
        level.retain(|pos| match plies.entry(pos.key()) {
            Entry::Vacant(place) => {
                place.insert(ply);
                true
            }
            Entry::Occupied(_) => false,
        });
        if level.is_empty() {
            break;
        }
        let after = |pos: &Keyed<Chess>| -> Vec<Keyed<Chess>> {
            let moves = pos.position().legal_moves().into_iter();
            let known = moves.filter(|mv| records.contains(&(pos.key(), BookMove::from(*mv).0)));
            known
                .map(|mv| {
                    let mut after = pos.clone();
                    after.play(mv);
                    after
                })
                .collect()
        };
        level = level.iter().flat_map(after).collect();
    }
    plies
}

#[test]
fn an_explorers_index_says_how_to_get_its_moves() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("idx");
    let input = Input::file("data/famous.pgn");
    let run = MakeBook::new([input]).explorer(&path);
    run.run().unwrap();
    let start = Keyed::new(Variant::Standard.start());
    let index = Index::open(&path).unwrap();
    let error = index.moves(&start).unwrap_err().to_string();
    assert!(error.contains("open it with Explorer::open"), "{error}");
    assert!(error.contains("tree::Explored"), "{error}");
    let explorer = Explorer::open([(String::new(), path)]).unwrap();
    let moves = Explored(explorer, Variant::Standard).moves(&start).unwrap();
    assert!(moves.len() > 1);
}
