use std::{collections::BTreeMap, fs};

use chrono::Days;
use proptest::prelude::*;
use shakmaty::{Color, san::SanPlus};

use super::*;
use crate::{
    chess::position::{Keyed, Variant, read_move},
    error::{Error, ErrorKind},
    explore::repertoire::{MoveComments, OpenOptions, OpenedSource},
    progress::Meter,
    storage::{output::AtomicFile, sort::Memory},
};

/// A repertoire in a temporary directory.
struct Opened {
    directory: tempfile::TempDir,
    repertoire: OpenedSource,
}

fn opened(pgn: &str) -> Opened {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pgn");
    fs::write(&path, pgn).unwrap();
    let repertoire = OpenedSource::repertoire(
        &path,
        &OpenOptions::new(directory.path(), Memory::default()),
    )
    .unwrap();
    Opened {
        directory,
        repertoire,
    }
}

impl Opened {
    fn deck(&self, color: Color) -> Deck {
        let variant = self.repertoire.variant();
        Deck::new(
            &self.repertoire,
            variant,
            color,
            &Memory::default(),
            &Meter::default(),
        )
        .unwrap()
    }
}

fn deck(pgn: &str, color: Color) -> Deck {
    opened(pgn).deck(color)
}

fn day(number: u64) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 1).unwrap() + Days::new(number)
}

/// Practises on one day until nothing is left to ask. `knows` decides, by the line and the number of the answer in this
/// position on this day, whether the player answers correctly. Returns the lines of all questions.
fn practise(
    deck: &Deck,
    schedule: &mut Schedule,
    today: NaiveDate,
    mut new_left: u64,
    knows: &dyn Fn(&str, usize) -> bool,
) -> Vec<String> {
    let mut random = Random::new(7);
    let (mut asked, mut line) = (Vec::new(), None);
    loop {
        let practice = Practice {
            deck,
            schedule,
            replies: None,
            skipped: &[],
            today,
        };
        let Some(question) = practice
            .question(line.as_ref(), new_left, &mut random)
            .unwrap()
        else {
            return asked;
        };
        let text = question.line.text();
        let before = asked.iter().filter(|line| **line == text).count();
        let expected = deck.find(&question.position).unwrap();
        let right = deck.moves(expected)[0].mv.to_move(&question.position);
        let answer = right.filter(|_| knows(&text, before));
        let graded = grade(deck, schedule, &question.position, answer, today).unwrap();
        assert_eq!(graded.is_right, answer.is_some());
        new_left -= u64::from(question.is_new);
        asked.push(text);
        let mut continued = question.line;
        continued.moves.push(graded.played);
        line = Some(continued);
        assert!(asked.len() < 1000);
    }
}

/// A repertoire for White with six cards.
const WHITE: &str = "1. e4 e5 (1... c5 2. Nf3 d6 3. d4) (1... e6 2. d4) 2. Nf3 Nc6 3. Bb5 *\n";

#[test]
fn a_week_of_practice_repeats_wrong_answers_sooner() {
    let deck = deck(WHITE, Color::White);
    assert_eq!(deck.cards(), 6);
    let mut schedule = Schedule::default();
    let mut asked: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for number in 0..7 {
        // On the first two days, the player forgets one move at the first attempt.
        let knows = |line: &str, before: usize| line != "1. e4 c5" || number > 1 || before > 0;
        for line in practise(&deck, &mut schedule, day(number), 10, &knows) {
            asked.entry(line).or_default().push(number);
        }
    }
    // The forgotten move is asked twice on these days, and then more often than the moves that the player knew.
    assert_eq!(asked["1. e4 c5"][..4], [0, 0, 1, 1], "{asked:?}");
    for (line, days) in &asked {
        if line != "1. e4 c5" {
            assert_eq!(days[..], [0, 3], "{line}");
        }
    }
    assert!(asked["1. e4 c5"].len() > 4, "{asked:?}");
    assert_eq!(asked.len(), 6);
}

#[test]
fn edits_of_the_repertoire_keep_what_was_learned() {
    let mut schedule = Schedule::default();
    let before = deck(WHITE, Color::White);
    assert_eq!(
        practise(&before, &mut schedule, day(0), 10, &|_, _| true).len(),
        6
    );
    // 2. Nf3 against the Sicilian becomes 2. Nc3, a line is added, and the games are in another order.
    let edited = "1. e4 c5 2. Nc3 *\n\n1. e4 c6 2. d4 *\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n1. e4 e6 2. d4 *\n";
    let after = deck(edited, Color::White);
    let asked = practise(&after, &mut schedule, day(1), 10, &|_, _| true);
    assert_eq!(sorted(asked), ["1. e4 c5", "1. e4 c6"]);
    // The results of the removed moves are kept.
    let asked = practise(&before, &mut schedule, day(2), 10, &|_, _| true);
    assert!(asked.is_empty(), "{asked:?}");
    // A second move in a position keeps what is known about the first one.
    let two = deck("1. e4 e5 2. Nf3 (2. Bc4) Nc6 3. Bb5 *", Color::White);
    let asked = practise(&two, &mut schedule, day(2), 10, &|_, _| true);
    assert!(asked.is_empty(), "{asked:?}");
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[test]
fn new_positions_are_limited_and_due_ones_come_first() {
    let deck = deck(WHITE, Color::White);
    let mut schedule = Schedule::default();
    assert_eq!(
        practise(&deck, &mut schedule, day(0), 2, &|_, _| true).len(),
        2
    );
    let practice = Practice {
        deck: &deck,
        schedule: &schedule,
        replies: None,
        skipped: &[],
        today: day(3),
    };
    let askable = Askable {
        due: 2,
        again: 0,
        new: 4,
    };
    assert_eq!(practice.askable(), askable);
    let asked = practise(&deck, &mut schedule, day(3), 0, &|_, _| true);
    assert_eq!(asked.len(), 2);
    let asked = practise(&deck, &mut schedule, day(6), 10, &|_, _| true);
    assert_eq!(asked.len(), 4);
}

#[test]
fn a_wrong_answer_stays_due_until_a_right_one() {
    let deck = deck("1. e4 *", Color::White);
    let mut schedule = Schedule::default();
    let start = Variant::Standard.start();
    let mut answer = |text: &str, number| {
        let mv = read_move(&start, text.as_bytes()).ok();
        grade(&deck, &mut schedule, &start, mv, day(number)).unwrap()
    };
    assert_eq!(answer("d4", 0).due, day(0));
    assert_eq!(answer("?", 0).due, day(0));
    let graded = answer("e4", 0);
    assert!(graded.is_right && graded.due == day(1), "{graded:?}");
    // Another answer on this day is not recorded.
    assert_eq!(answer("d4", 0).due, day(1));
    let graded = answer("d4", 4);
    assert!(!graded.is_right && graded.due == day(4), "{graded:?}");
    assert_eq!(graded.moves, [graded.played]);
    let unknown = Variant::Standard
        .parse_position("8/8/8/8/8/4k3/8/4K3 w - - 0 1")
        .unwrap();
    assert_eq!(grade(&deck, &mut schedule, &unknown, None, day(5)), None);
}

#[test]
fn all_moves_of_the_repertoire_are_right() {
    let deck = deck("1. e4 (1. d4 d5 2. c4) e5 2. Nf3 *", Color::White);
    let mut schedule = Schedule::default();
    let start = Variant::Standard.start();
    let d4 = read_move(&start, b"d4").unwrap();
    let graded = grade(&deck, &mut schedule, &start, Some(d4), day(0)).unwrap();
    assert!(graded.is_right && graded.played == d4 && graded.moves.len() == 2);
    // The position is learned, whichever of its moves was answered.
    let practice = Practice {
        deck: &deck,
        schedule: &schedule,
        replies: None,
        skipped: &[],
        today: day(0),
    };
    assert_eq!(practice.askable().new, 2);
}

#[test]
fn opponents_play_their_moves_by_frequency() {
    let games = "1. e4 e5 2. Nf3 *\n\n".repeat(9) + "1. e4 c5 2. Nf3 *\n\n";
    let opened = opened(&games);
    let deck = opened.deck(Color::White);
    // In the second source, 1... c5 is three times as frequent as 1... e5.
    let path = opened.directory.path().join("b.pgn");
    fs::write(
        &path,
        "1. e4 e5 *\n\n".to_owned() + &"1. e4 c5 *\n\n".repeat(3),
    )
    .unwrap();
    let replies = OpenedSource::repertoire(
        &path,
        &OpenOptions::new(opened.directory.path(), Memory::default()),
    )
    .unwrap();
    for (replies, expected) in [(None, 0.9), (Some(&replies as &dyn MoveSource), 0.25)] {
        let schedule = Schedule::default();
        let practice = Practice {
            deck: &deck,
            schedule: &schedule,
            replies,
            skipped: &[],
            today: day(0),
        };
        let mut random = Random::new(5);
        let mut first = practice
            .question(None, 9, &mut random)
            .unwrap()
            .unwrap()
            .line;
        first.moves.push(read_move(&first.start, b"e4").unwrap());
        let mut played = 0.0;
        for _ in 0..1000 {
            let question = practice
                .question(Some(&first), 9, &mut random)
                .unwrap()
                .unwrap();
            assert_eq!((question.kept, question.line.moves.len()), (1, 2));
            played += f64::from(u8::from(question.line.text() == "1. e4 e5")) / 1000.0;
        }
        assert!(
            (played - expected).abs() < 0.05,
            "{played} instead of {expected}"
        );
    }
}

#[test]
fn lines_that_return_to_a_position_end() {
    let pgn = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 (3... d5 4. d4) 4. Ng1 Ng8 5. e4 *";
    let deck = deck(pgn, Color::White);
    let mut schedule = Schedule::default();
    let asked = practise(&deck, &mut schedule, day(0), 100, &|_, before| before > 1);
    // The first two answers in each line are wrong, and some positions are at the ends of two lines.
    assert!(asked.len() as u64 >= 3 * deck.cards(), "{asked:?}");
    let practice = Practice {
        deck: &deck,
        schedule: &schedule,
        replies: None,
        skipped: &[],
        today: day(0),
    };
    assert_eq!(practice.askable(), Askable::default());
}

#[test]
fn lines_begin_in_the_positions_of_games_with_a_fen() {
    let pgn =
        "[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 Kd7 2. e5 *\n\n1. d4 d5 2. c4 *\n";
    let deck = deck(pgn, Color::White);
    assert_eq!(deck.cards(), 4);
    let mut schedule = Schedule::default();
    assert_eq!(
        practise(&deck, &mut schedule, day(0), 9, &|_, _| true).len(),
        4
    );
}

#[test]
fn a_repertoire_for_black_starts_with_a_move_of_white() {
    let deck = deck(
        "1. e4 c5 2. Nf3 d6 (2... Nc6) *\n\n1. d4 Nf6 *",
        Color::Black,
    );
    let mut schedule = Schedule::default();
    let asked = practise(&deck, &mut schedule, day(0), 9, &|_, _| true);
    assert_eq!(sorted(asked), ["1. d4", "1. e4", "1. e4 c5 2. Nf3"]);
}

#[test]
fn a_line_that_left_the_repertoire_is_replaced_by_a_new_one() {
    let deck = deck(WHITE, Color::White);
    let schedule = Schedule::default();
    let practice = Practice {
        deck: &deck,
        schedule: &schedule,
        replies: None,
        skipped: &[],
        today: day(0),
    };
    let start = Variant::Standard.start();
    let line = PracticeLine {
        moves: vec![read_move(&start, b"a4").unwrap()],
        start,
    };
    let question = practice
        .question(Some(&line), 9, &mut Random::new(1))
        .unwrap()
        .unwrap();
    assert_eq!((question.kept, question.line.moves.len()), (0, 0));
    assert_eq!(
        practice.question(None, 0, &mut Random::new(1)).unwrap(),
        None
    );
}

#[test]
fn cards_contain_boards_moves_and_comments() {
    let pgn = "1. e4 {best [%cal Ge2e4] by test} e5 {<b>} (1... c5 2. Nf3 (2. Nc3 {=HYPERLINK(\"x\")})) 2. Nf3 {a & b} *";
    let opened = opened(pgn);
    let deck = opened.deck(Color::White);
    let options = OpenOptions::new(opened.directory.path(), Memory::default());
    let comments = MoveComments::of(opened.repertoire.pgn().unwrap(), &options).unwrap();
    let mut table = Vec::new();
    let comment = |pos: &_, mv| comments.of_move(pos, mv).map(str::to_owned);
    assert_eq!(
        write_cards(&deck, &comment, &mut table, "x.csv".as_ref()).unwrap(),
        3
    );
    let table = String::from_utf8(table).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        ["#separator:Comma", "#html:true", "#columns:Front,Back"]
    );
    assert!(
        lines[3].starts_with("<pre>8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜<br>7 ♟"),
        "{table}"
    );
    assert!(
        lines[3].ends_with("</pre>1. ?,e4<br>best by test"),
        "{table}"
    );
    assert!(
        table.contains("</pre>1. e4 e5 2. ?,Nf3<br>a &amp; b\n"),
        "{table}"
    );
    assert!(
        table.contains("</pre>1. e4 c5 2. ?,\"Nc3<br>=HYPERLINK(\"\"x\"\")<br>Nf3\"\n"),
        "{table}"
    );
}

#[test]
fn a_board_is_seen_from_the_side_of_the_player() {
    let pos = Variant::Standard
        .parse_position("8/8/8/8/8/4k3/8/4K2R w K - 0 1")
        .unwrap();
    let white = board_text(&pos, Color::White);
    assert_eq!(white.lines().nth(7), Some("1 · · · · ♔ · · ♖"));
    let black = board_text(&pos, Color::Black);
    assert_eq!(black.lines().next(), Some("1 ♖ · · ♔ · · · ·"));
    assert_eq!(black.lines().last(), Some("  h g f e d c b a"));
    let zh = "rnbqkbnr/pppp1ppp/8/8/8/8/PPPP1PPP/RNBQKBNR[PPpn] w KQkq - 0 3";
    let zh = board_text(
        &Variant::Crazyhouse.parse_position(zh).unwrap(),
        Color::White,
    );
    assert!(
        zh.ends_with("black in hand: NP\nwhite in hand: PP\n")
            || zh.ends_with("white in hand: PP\nblack in hand: NP\n"),
        "{zh}"
    );
}

#[test]
fn a_stored_schedule_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = Schedule::path_of(&dir.path().join("white.pgn"));
    assert_eq!(Schedule::read(&path).unwrap(), Schedule::default());
    let deck = deck(WHITE, Color::White);
    let mut schedule = Schedule::default();
    practise(&deck, &mut schedule, day(0), 9, &|line, before| {
        line.len() % 2 == 0 || before > 0
    });
    schedule.write(&path).unwrap();
    let read = Schedule::read(&path).unwrap();
    assert_eq!(read.moves(), 6);
    read.write(&path).unwrap();
    assert_eq!(Schedule::read(&path).unwrap(), read);
    // Numbers have six decimal places, which do not change the days.
    let later =
        |schedule: &Schedule| practise(&deck, &mut schedule.clone(), day(40), 0, &|_, _| true);
    assert_eq!(later(&read), later(&schedule));
}

#[test]
fn an_update_keeps_the_answers_of_other_programs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.practice.json");
    let recall = Recall::after(None, true, day(0));
    let e4 = read_move(&Variant::Standard.start(), b"e4").unwrap();
    let record = |schedule: &mut Schedule, position: &str| {
        schedule.record(position, e4.into(), recall);
        Ok::<_, Error>(schedule.moves())
    };
    // An answer may have to wait for longer than an update waits.
    let update = |position: &str| loop {
        match Schedule::update(&path, |schedule| record(schedule, position)) {
            Err(err) => assert_eq!(err.kind(), ErrorKind::Busy, "{err}"),
            Ok(updated) => return updated,
        }
    };
    // A program whose answer comes after another one has read the schedule waits for the new schedule.
    std::thread::scope(|scope| {
        let first = Schedule::update(&path, |schedule| {
            let moves = record(schedule, "first")?;
            let err = schedule.write(&path).unwrap_err();
            assert_eq!(err.kind(), ErrorKind::Busy, "{err}");
            Ok::<_, Error>((moves, scope.spawn(|| update("second"))))
        });
        let (_, (moves, second)) = first.unwrap();
        assert_eq!((moves, second.join().unwrap().1), (1, 2));
    });
    // A program whose answer comes while another one writes the schedule reads the new schedule.
    let mut other = Schedule::read(&path).unwrap();
    record(&mut other, "third").unwrap();
    let file = AtomicFile::create(&path).unwrap();
    std::thread::scope(|scope| {
        let fourth = scope.spawn(|| update("fourth"));
        other.write_to(file).unwrap();
        assert_eq!(fourth.join().unwrap().1, 4);
    });
    assert_eq!(Schedule::read(&path).unwrap().moves(), 4);
}

#[test]
fn an_update_that_fails_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.practice.json");
    let failed = || {
        let failed = Schedule::update(&path, |schedule| {
            *schedule = schedule_of(&Recall::after(None, true, day(0)));
            Err::<(), _>(Error::file("x", "refused"))
        });
        failed.unwrap_err().to_string()
    };
    assert_eq!(failed(), "x: refused");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fs::create_dir(&path).unwrap();
    assert!(failed().contains("it is not a file: rename it"));
}

#[test]
fn other_files_are_no_schedules() {
    let card = r#"{"position":"x","move":"e2e4","stability":3.0,"difficulty":5.0,"last":"2026-03-01","due":"2026-03-04","answers":1,"wrong":0}"#;
    let document = |version: u32, card: &str| {
        format!(r#"{{"format":"polybook practice","version":{version},"cards":[{card}]}}"#)
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    fs::write(&path, document(1, card)).unwrap();
    assert_eq!(Schedule::read(&path).unwrap().moves(), 1);
    let changed = |from: &str, to: &str| document(1, &card.replace(from, to));
    for (text, problem) in [
        (String::new(), "does not contain results of practice"),
        ("1. e4 *".to_owned(), "does not contain results of practice"),
        ("[".repeat(100_000), "does not contain results of practice"),
        (
            r#"{"format":"other","version":1,"cards":[]}"#.to_owned(),
            "has another format",
        ),
        (
            document(2, card),
            "another version of polybook, with the format 2: use this version",
        ),
        (document(1, &format!("{card},{{}}")), "missing field"),
        (changed("3.0", "0"), "out of range"),
        (changed("3.0", "-1"), "out of range"),
        (changed("3.0", "1e300"), "out of range"),
        (
            changed("3.0", "null"),
            "does not contain results of practice",
        ),
        (changed("5.0", "11"), "out of range"),
        (changed("2026-03-04", "+262142-12-31"), "out of range"),
        (changed("2026-03-01", "-262142-01-01"), "out of range"),
        (
            changed("2026-03-01", "2026-02-30"),
            "does not contain results of practice",
        ),
        (
            changed("\"answers\":1", "\"answers\":-1"),
            "does not contain results of practice",
        ),
        (
            changed("\"wrong\":0", "\"wrong\":4294967296"),
            "does not contain results of practice",
        ),
    ] {
        fs::write(&path, &text).unwrap();
        let error = Schedule::read(&path).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(error.contains("a.json") && !error.contains('\n'), "{error}");
    }
    let large = fs::File::create(&path).unwrap();
    large.set_len(33 << 20).unwrap();
    let error = Schedule::read(&path).unwrap_err().to_string();
    assert!(error.contains("larger than 32 MiB"), "{error}");
    let error = Schedule::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("it is not a file: rename it"), "{error}");
}

proptest! {
    /// FSRS never panics, days never lie in the past, and a wrong answer never returns later than a right one.
    #[test]
    fn right_answers_return_later_than_wrong_ones(answers in prop::collection::vec((any::<bool>(), 0..400_u64), 1..40)) {
        let (mut recall, mut today): (Option<Recall>, _) = (None, day(0));
        for (is_right, late) in answers {
            let [wrong, right] = [false, true].map(|is_right| Recall::after(recall.as_ref(), is_right, today));
            prop_assert_eq!(wrong.due, today);
            prop_assert!(right.due > today);
            let repeated = Recall::after(Some(&wrong), true, today);
            prop_assert!(repeated.due > today && repeated.due <= right.due);
            prop_assert!(wrong.stability <= right.stability && wrong.difficulty >= right.difficulty);
            if let Some(before) = recall.filter(|before| before.last < today) {
                prop_assert!(right.stability >= before.stability);
            }
            let next = if is_right { right } else { repeated };
            prop_assert!(next.answers > recall.map_or(0, |before| before.answers));
            today = next.due + Days::new(late);
            recall = Some(next);
        }
    }

    /// A move that is always known is asked after ever longer intervals.
    #[test]
    fn intervals_of_known_moves_grow(reviews in 2..30_usize) {
        let (mut recall, mut today, mut interval) = (None, day(0), 0);
        for _ in 0..reviews {
            let next = Recall::after(recall.as_ref(), true, today);
            let days = (next.due - today).num_days();
            prop_assert!(days > interval || days == 36_500, "{} after {}", days, interval);
            (recall, today, interval) = (Some(next), next.due, days);
            if today > day(0) + Days::new(1_000_000) {
                break;
            }
        }
    }
}

#[test]
fn days_are_those_of_the_published_scheduler() {
    // The first intervals of FSRS-5 with its default parameters, as the tests of rs-fsrs compute them day by day.
    let (mut recall, mut today, mut days) = (None, day(0), Vec::new());
    for is_right in [true, true, true, false, true] {
        let mut next = Recall::after(recall.as_ref(), is_right, today);
        if !is_right {
            next = Recall::after(Some(&next), true, today);
        }
        days.push((next.due - today).num_days());
        (recall, today) = (Some(next), next.due);
    }
    assert_eq!(days[0], 3);
    assert!(
        days[1] > 9 && days[2] > 3 * days[1] && days[3] < days[1],
        "{days:?}"
    );
    assert_eq!(
        recall.map(|recall| (recall.answers, recall.wrong)),
        Some((6, 1))
    );
}

#[test]
fn a_clock_that_was_set_back_is_no_problem() {
    let late = Recall::after(None, true, day(10));
    let early = Recall::after(Some(&late), true, day(2));
    assert!(early.due > day(2) && early.last == day(2));
}

/// Records the answer `text`, a move in SAN, in the starting position.
fn answered(deck: &Deck, schedule: &mut Schedule, text: &str, today: NaiveDate) {
    let start = Variant::Standard.start();
    let mv = read_move(&start, text.as_bytes()).ok();
    grade(deck, schedule, &start, mv, today).unwrap();
}

fn practice_on<'a>(deck: &'a Deck, schedule: &'a Schedule, today: NaiveDate) -> Practice<'a> {
    Practice {
        deck,
        schedule,
        replies: None,
        skipped: &[],
        today,
    }
}

/// The server and the command line can be in different time zones.
#[test]
fn an_answer_of_the_next_day_counts_as_one_of_today() {
    let deck = deck("1. e4 (1. d4) *", Color::White);
    let mut schedule = Schedule::default();
    let mut answer = |text: &str, today| {
        answered(&deck, &mut schedule, text, today);
        schedule.clone()
    };
    let askable = |schedule: &Schedule, today| {
        let practice = practice_on(&deck, schedule, today);
        let Askable { due, again, new } = practice.askable();
        (due, again, new)
    };
    let wrong = answer("?", day(1));
    assert_eq!(askable(&wrong, day(0)), (0, 1, 0));
    assert_eq!(askable(&wrong, day(1)), (0, 1, 0));
    let right = answer("e4", day(1));
    assert_eq!(askable(&right, day(0)), (0, 0, 0));
    // A repeated answer is not recorded, even if it is the other move of the repertoire.
    assert_eq!(answer("d4", day(0)), right);
    // When the move is due in one time zone, an answer with the other move counts in both.
    let other = answer("d4", day(10));
    assert_ne!(other, right);
    assert_eq!(askable(&other, day(9)), (0, 0, 0));
}

#[test]
fn an_answer_of_a_later_day_is_asked_again() {
    let deck = deck("1. e4 (1. d4) *", Color::White);
    let mut schedule = Schedule::default();
    let mut answer = |text: &str, today| {
        answered(&deck, &mut schedule, text, today);
        schedule.clone()
    };
    let askable = |schedule: &Schedule, today| {
        let practice = practice_on(&deck, schedule, today);
        (practice.askable().due, practice.next_due().is_some())
    };
    let wrong_clock = day(27_000);
    for text in ["e4", "d4"] {
        let late = answer("e4", wrong_clock);
        assert_eq!(askable(&late, day(0)), (1, false));
        // The answer with the right clock counts, even if it is the other move of the repertoire.
        let right = answer(text, day(0));
        assert_eq!(askable(&right, day(0)), (0, true));
    }
}

#[test]
fn every_clock_makes_a_schedule_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.practice.json");
    let deck = deck("1. e4 *", Color::White);
    let start = Variant::Standard.start();
    let of_year = |year| NaiveDate::from_ymd_opt(year, 12, 31).unwrap();
    let days = [-1, 1969, 1970, 2026, 9999, 10_000].map(of_year);
    for today in days.into_iter().chain([NaiveDate::MIN, NaiveDate::MAX]) {
        let mut schedule = Schedule::default();
        for answer in ["d4", "e4"] {
            let mv = read_move(&start, answer.as_bytes()).ok();
            grade(&deck, &mut schedule, &start, mv, today).unwrap();
            schedule.write(&path).unwrap();
            assert_eq!(Schedule::read(&path).unwrap().moves(), 1, "{today}");
        }
    }
    // The intervals of a move that the user always knows grow to the longest ones.
    let (mut recall, mut today) = (None, day(0));
    for _ in 0..300 {
        let next = Recall::after(recall.as_ref(), true, today);
        schedule_of(&next).write(&path).unwrap();
        Schedule::read(&path).unwrap();
        (recall, today) = (Some(next), next.due);
    }
}

fn schedule_of(recall: &Recall) -> Schedule {
    let start = Keyed::new(Variant::Standard.start());
    let mv = read_move(start.position(), b"e4").unwrap();
    let mut schedule = Schedule::default();
    schedule.record("x", mv.into(), *recall);
    schedule
}

/// Thousands of games can begin in positions of their own. Positions that differ only in the numbers of their moves are
/// one start.
#[test]
fn each_position_is_one_start() {
    let games = ["1", "2", "40"].map(|number| {
        let games = ["P7", "1P6", "2P5", "5P2", "6P1", "7P"].map(|rank| {
            let fen = format!("4k3/8/8/8/8/8/{rank}/4K3 w - - 0 {number}");
            format!("[FEN \"{fen}\"]\n\n1. Kd1 Kd8 2. Ke1 *\n\n")
        });
        games.concat()
    });
    let deck = deck(&games.concat(), Color::White);
    assert_eq!(deck.starts().count(), 6);
    assert_eq!(deck.lines().count(), 12);
    for (id, line) in deck.lines() {
        assert_eq!(deck.path_of(&line).unwrap().end(), id);
    }
}

#[test]
fn the_text_of_a_line_has_move_numbers() {
    let start = Keyed::new(Variant::Standard.start());
    let mv = read_move(start.position(), b"e4").unwrap();
    assert_eq!(
        SanPlus::from_move(start.position().clone(), mv).to_string(),
        "e4"
    );
    let line = PracticeLine {
        start: start.position().clone(),
        moves: vec![mv],
    };
    assert_eq!(line.text(), "1. e4");
}
