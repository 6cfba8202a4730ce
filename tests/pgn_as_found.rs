//! PGN as it occurs in practice: one test for each peculiarity.

use std::fs;

use crate::common::{ok, temp};

use polybook::{MakeBook, Report, book::Book, pgn::Input, position::from_text};

/// The result of a run over a text: its report, and the book of every move that was played.
struct Made {
    report: Report,
    book: Book,
}

fn make_with(text: &[u8], options: impl Fn(MakeBook) -> MakeBook) -> polybook::Result<Made> {
    let dir = crate::common::temp();
    let (pgn, bin) = (dir.path().join("games.pgn"), dir.path().join("book.bin"));
    fs::write(&pgn, text).unwrap();
    let run = MakeBook::new([Input::file(&pgn)])
        .min_game(1)
        .allow_empty(true)
        .bin(&bin);
    let report = options(run).run()?;
    Ok(Made {
        report,
        book: Book::open(&bin)?,
    })
}

#[track_caller]
fn make(text: impl AsRef<[u8]>) -> Made {
    make_with(text.as_ref(), |run| run).unwrap()
}

impl Made {
    /// Checks the numbers of counted and rejected games.
    #[track_caller]
    fn games(&self, counted: u64, rejected: u64) -> &Made {
        let games = self.report.totals.games;
        assert_eq!(
            (games.counted, games.rejected),
            (counted, rejected),
            "{:?}",
            self.report
        );
        assert_eq!(games.read, counted + rejected);
        self
    }

    /// Checks that the book contains every move of a line, the last one with this weight.
    #[track_caller]
    fn plies(&self, plies: u64) -> &Made {
        assert_eq!(self.report.totals.plies, plies, "{:?}", self.report);
        self
    }

    #[track_caller]
    fn line(&self, line: &str, weight: u16) -> &Made {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = from_text(None, Some(&words[..words.len() - 1].join(" "))).unwrap();
        let last =
            polybook::position::read_move(&before, words[words.len() - 1].as_bytes()).unwrap();
        let found = self
            .book
            .moves_of(&before)
            .unwrap()
            .into_iter()
            .find(|entry| entry.mv == last.into())
            .map(|entry| entry.weight);
        assert_eq!(found, Some(weight), "{line}");
        self
    }
}

const TWO: &str = "[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[White \"B\"]\n[Result \"1-0\"]\n\n1. e4 c5 2. Nf3 1-0\n";

#[test]
fn a_comment_in_a_variation_may_end_with_a_result() {
    let dir = temp();
    let dir = dir.path();
    for comment in [
        "; good *",
        "; see 1-0 ",
        "; a draw 1/2-1/2",
        "{ *}",
        "{1-0}",
    ] {
        let game =
            format!("[White \"T\"]\n\n1. Na3 d6 (1... h6 {comment}\n\n2. g4) 2. g3 g6 0-1\n");
        fs::write(dir.join("a.pgn"), game).unwrap();
        let cleaned = ok(dir, "extract a.pgn -q --clean");
        assert!(
            cleaned.contains("2. g4) 2. g3 g6 0-1"),
            "{comment}: {cleaned}"
        );
    }
    // The parenthesis is missing here.
    let game = "[White \"T\"]\n\n1. Na3 d6 (1... h6 0-1\n\n[White \"U\"]\n\n1. e4 1-0\n";
    fs::write(dir.join("a.pgn"), game).unwrap();
    assert_eq!(ok(dir, "extract a.pgn -q --count"), "1\n");
}

#[test]
fn line_ends_of_all_systems() {
    for text in [
        TWO.to_owned(),
        TWO.replace('\n', "\r\n"),
        TWO.replace('\n', "\r"),
    ] {
        make(text).games(2, 0).line("e4", 4).line("e4 c5 Nf3", 2);
    }
}

#[test]
fn a_byte_order_mark() {
    make(format!("\u{feff}{TWO}")).games(2, 0);
    make(format!("\u{feff}{TWO}\u{feff}{TWO}")).games(4, 0);
}

#[test]
fn tags_of_any_length_and_content() {
    let long = "x".repeat(100_000);
    make(format!(
        "[White \"{long}\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n"
    ))
    .games(1, 0)
    .line("e4", 2);
    let utf8 = "[White \"Żółć \u{1F600}\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n";
    make(utf8).games(1, 0).line("e4", 2);
    make(b"[White \"M\xfcller\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n")
        .games(1, 0)
        .line("e4", 2);
    make("[White \"\"]\n[Result \"1-0\"]\n[Odd \"a \\\"b\\\" ] [ { c\"]\n\n1. e4 1-0\n")
        .games(1, 0)
        .line("e4", 2);
    make(TWO.replace("A\"]", "A\"]\n[Event \"The \"Big\" one\"]")).games(2, 0);
}

#[test]
fn tags_out_of_order_missing_or_on_one_line() {
    make("[Result \"1-0\"][White \"A\"] 1. e4 1-0 [Black \"B\"] 1. d4 0-1")
        .games(2, 0)
        .line("e4", 2);
    make("[White \"A\"]\n\n1. e4 1-0\n")
        .games(1, 0)
        .line("e4", 2);
    make("[White \"A\"]\n; a remark\n[Result \"1-0\"]\n{ another\n}\n[Black \"B\"]\n\n1. e4 *\n")
        .games(1, 0)
        .line("e4", 2);
}

#[test]
fn comments_of_all_kinds() {
    make("{ first of all } 1. e4 { best\n\nby [test] (see\n[Event \"x\"]\n1. d4 0-1) } e5 ; and {\n 2. Nf3 1-0")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    let long = "a [%clk 0:00:01] ".repeat(200_000);
    make(format!("1. e4 {{{long}}} e5 1-0\n\n{TWO}"))
        .games(3, 0)
        .line("e4", 6);
}

#[test]
fn escaped_lines() {
    make("% escaped [Event \"x\"] {\n1. e4\n%1. d4 {\n e5 1-0\n%\n")
        .games(1, 0)
        .line("e4", 2);
    make("[White \"A\"]\n% escaped\n[Result \"1-0\"]\n\n1. e4 *")
        .games(1, 0)
        .line("e4", 2);
}

#[test]
fn variations_nags_and_marks() {
    make("1. e4! $1 (1. d4 d5 (1... Nf6 {)} 2. c4) 2. c4) e5?! $14 2. Nf3!! (2. f4) 1-0")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    make("1. e4 +- e5 = 2. Nf3 N ± 1-0")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
}

#[test]
fn castling_with_zeros_and_moves_as_programs_write_them() {
    let castled = "e4 e5 Nf3 Nc6 Bc4 Bc5 O-O";
    for text in [
        "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. 0-0 1-0",
        "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1 1-0",
        "1.e2-e4 e7-e5 2.Ng1-f3 Nb8-c6 3.Bf1-c4 Bf8-c5 4.O-O 1-0",
    ] {
        make(text).games(1, 0).line(castled, 2);
    }
}

#[test]
fn move_numbers_missing_or_stuck_to_moves() {
    for text in [
        "e4 e5 Nf3 1-0",
        "1.e4 e5 2.Nf3 1-0",
        "1 e4 e5 2 Nf3 1-0",
        "1. e4 1... e5 2. Nf3 1-0",
    ] {
        make(text).games(1, 0).line("e4 e5 Nf3", 2);
    }
}

#[test]
fn blank_lines_anywhere() {
    make("[White \"A\"]\n\n\n[Result \"1-0\"]\n\n\n1. e4\n\ne5\n\n\n2. Nf3\n\n1-0\n\n\n\n")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    make(TWO.replace("\n\n", "\n\n\n")).games(2, 0);
    make(TWO.replace("\n\n", "\n")).games(2, 0);
}

#[test]
fn games_without_tags() {
    make("1. e4 e5 1-0\n\n1. d4 d5 0-1\n1. c4 * 1. Nf3 1/2-1/2")
        .games(4, 0)
        .line("e4", 2)
        .line("c4", 1);
    for null_move in [
        "--",
        "\u{2013}\u{2013}",
        "--!?",
        "Z0",
        "@@@@",
        "null",
        "0000",
    ] {
        make(format!("{null_move} e5 1-0\n\n1. e4 e5 1-0")).games(2, 0);
    }
    make("[Event \"x\"]\n\n1. 0000 -- 1-0\n\n1. e4 e5 1-0").games(2, 0);
    make("-----\n--\nPlayed at home\n-- \n1. e4 e5 1-0").games(1, 0);
}

#[test]
fn games_without_moves() {
    let text = "[Event \"1\"]\n[Result \"1-0\"]\n\n[Event \"2\"]\n[Result \"0-1\"]\n\n*\n\n[Event \"3\"]\n\n1. e4 1-0";
    let made = make(text);
    made.games(3, 0).line("e4", 2);
}

#[test]
fn an_unclosed_comment_costs_its_own_game() {
    make(format!("1. e4 {{ oops 1-0\n\n{TWO}"))
        .games(2, 1)
        .line("e4", 4);
    make(format!(
        "[White \"x\"]\n\n1. e4 {{ oops\n\n{}",
        TWO.replace("e5", "e5 {fine}")
    ))
    .games(2, 1)
    .line("e4", 4);
    make("1. d4 { oops 1-0\n\n1. e4 e5 1-0\n")
        .games(1, 1)
        .line("e4", 2);
    make(format!("{TWO}\n1. e4 {{ oops")).games(2, 1);
}

#[test]
fn an_unclosed_variation_costs_its_own_game() {
    make(format!("[White \"x\"]\n\n1. e4 (1. d4 d5 1-0\n\n{TWO}"))
        .games(2, 1)
        .line("e4", 4);
    make("1. d4 (1. c4 1-0\n\n1. e4 e5 1-0\n")
        .games(1, 1)
        .line("e4", 2);
}

#[test]
fn damaged_variations_do_not_change_the_main_line() {
    for variation in [
        "(1. d4\n[x)",
        "(1. d4\n[x)\n[y",
        "(1. d4 [url=)] d5) e5",
        "(1. d4 [url=(] d5) e5",
        "(1. d4 (1. c4 [url=)] d5) d5) e5",
        "(1. d4 (1. c4 <a href=\")\"> d5) d5) e5",
        "(1. d4 (\n[x) d5) e5",
        "(1. d4 {)} ;)\n d5) e5",
        "(1. d4",
    ] {
        let text = format!("[Event \"x\"]\n\n1. e4 {variation}\n[Event \"y\"]\n\n1. d4 *\n");
        let [with, without] = [true, false].map(|variations| {
            let made = make_with(text.as_bytes(), |run| run.variations(variations)).unwrap();
            let rejected = &made.report.rejected;
            let rejected: Vec<_> = rejected
                .iter()
                .map(|it| (it.game, it.reason.clone()))
                .collect();
            (made.report.totals.games.counted, rejected)
        });
        assert_eq!(with, without, "{text}");
        assert_eq!(with.0 + with.1.len() as u64, 2, "{text}");
    }
}

#[test]
fn an_unclosed_tag_costs_at_most_its_own_game() {
    for tag in [
        "[White \"x",
        "[White \"x]",
        "[White \"x\"",
        "[White x",
        "[White",
        "[",
    ] {
        let made = make(format!("{tag}\n[Result \"1-0\"]\n\n1. e4 1-0\n\n{TWO}"));
        let games = made.report.totals.games;
        assert!(games.counted >= 2 && games.read <= 3, "{tag}: {games:?}");
        made.line("e4 c5 Nf3", 2);
    }
}

#[test]
fn a_tag_value_broken_over_lines_keeps_its_game_whole() {
    for broken in [
        "the\nlong one",
        "the\r\nlong\r\n\"big\" one",
        "a [b]\nc; {d",
    ] {
        let text = format!("[Event \"{broken}\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n{TWO}");
        make(text).games(3, 0).line("e4", 6);
    }
    let fen = "[FEN \"4k3/8/8/8/8/8/4P3/4K3\nw - - 0 1\"]\n[Result \"1-0\"]\n\n1. e4 Kd7 1-0\n";
    make(format!("{fen}\n{TWO}")).games(3, 0);
}

#[test]
fn results_by_tag_then_by_marker() {
    make("[Result \"1-0\"]\n\n1. e4 0-1")
        .games(1, 0)
        .line("e4", 2);
    make("[Result \"1/2\"]\n\n1. e4 1-0")
        .games(1, 0)
        .line("e4", 1);
    make("[Result \"?\"]\n\n1. e4").games(1, 0).line("e4", 1);
    make("1. e4 1/2-1/2").games(1, 0).line("e4", 1);
    make("1. e4").games(1, 0).line("e4", 1);
}

#[test]
fn text_between_and_after_games() {
    let made = make(format!(
        "Games of the week\n\n{TWO}\nThat is all.\nGood bye!\n"
    ));
    made.games(2, 0);
    assert_eq!(made.report.warnings.len(), 1, "{:?}", made.report.warnings);
    assert!(
        made.report.warnings[0].contains("byte 0"),
        "{:?}",
        made.report.warnings
    );
}

#[test]
fn an_empty_file() {
    for text in ["", "\n\n", "\u{feff}"] {
        let made = make(text);
        made.games(0, 0);
    }
}

#[test]
fn files_that_are_not_pgn_are_refused() {
    let noise: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let utf16: Vec<u8> = TWO.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [
        &noise[..],
        b"hello, world\n",
        &[&b"\xff\xfe"[..], &utf16].concat(),
    ] {
        let err = make_with(text, |run| run)
            .err()
            .expect("refused")
            .to_string();
        assert!(err.contains("games.pgn"), "{err}");
    }
}

#[test]
fn an_illegal_move_costs_its_game_and_is_described() {
    let text = format!("{TWO}\n1. e4 e5 2. Ke3 Nc6 1-0\n\n1. d4 1-0\n");
    let made = make(&text);
    made.games(3, 1).line("d4", 2);
    let rejection = &made.report.rejected[0];
    assert_eq!(
        (rejection.game, rejection.ply, rejection.mv.as_str()),
        (2, 2, "Ke3")
    );
    assert_eq!(rejection.offset, text.find("Ke3").unwrap() as u64);
    assert_eq!(rejection.reason, "illegal move");

    let kept = make_with(text.as_bytes(), |run| run.keep_prefix(true)).unwrap();
    kept.games(3, 1).line("e4", 6);
    let err = make_with(text.as_bytes(), |run| run.strict(true))
        .err()
        .expect("strict")
        .to_string();
    assert!(err.contains("game 3") && err.contains("Ke3"), "{err}");
}

#[test]
fn words_that_are_no_moves_cost_the_game_too() {
    for word in ["Zf3", "hello", "\u{265e}f5", "e9", "<x>", "[x]"] {
        make(format!("1. e4 {word} 2. Nf3 1-0\n\n1. d4 1-0"))
            .games(1, 1)
            .line("d4", 2);
    }
}

#[test]
fn moves_past_max_ply_do_not_matter() {
    let text = format!("1. e4 e5 2. Ke3 {{ 1-0 }} (1. x *) O-O e2-e4 1-0\n\n{TWO}");
    let made = make_with(text.as_bytes(), |run| run.max_ply(2)).unwrap();
    made.games(3, 0).line("e4", 6);
    assert_eq!(made.report.totals.plies, 6);
}

#[test]
fn games_from_a_position() {
    let text = "[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n[Result \"1-0\"]\n\n1. e4 Kd7 1-0\n";
    let made = make(text);
    made.games(1, 0);
    let pos = from_text(Some("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"), None).unwrap();
    assert_eq!(made.book.moves_of(&pos).unwrap()[0].weight, 2);
    make("[FEN \"nonsense\"]\n\n1. e4 1-0\n\n1. d4 1-0").games(1, 1);
    make("[FEN \"\"]\n\n1. e4 1-0").games(1, 0).line("e4", 2);
}

#[test]
fn games_of_other_variants_are_not_standard_chess() {
    let text = "[Variant \"Atomic\"]\n\n1. e4 1-0\n\n[Variant \"Standard\"]\n\n1. d4 1-0";
    let made = make(text);
    assert_eq!(
        (
            made.report.totals.games.counted,
            made.report.totals.games.filtered
        ),
        (1, 1)
    );
}

#[test]
fn castling_rights_that_cannot_be_are_dropped() {
    let text =
        "[FEN \"r3k3/8/8/8/8/8/8/1R2K3 w KQkq - 0 1\"]\n[Result \"1-0\"]\n\n1. Ke2 O-O-O 1-0\n";
    let made = make(text);
    made.games(1, 0);
    let warnings = &made.report.warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("castling rights"),
        "{warnings:?}"
    );
    let start = from_text(Some("r3k3/8/8/8/8/8/8/1R2K3 w q - 0 1"), None).unwrap();
    assert_eq!(made.book.moves_of(&start).unwrap().len(), 1);
    // Chess960 games without the tag are rejected.
    let text = "[FEN \"1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgb - 0 1\"]\n\n1. O-O *\n";
    let made = make(text);
    made.games(0, 1);
    let reason = &made.report.rejected[0].reason;
    assert!(reason.contains("fischerandom"), "{reason}");
}

#[test]
fn unfinished_games() {
    let text = "1. e4 *\n\n1. d4 1-0";
    make(text).games(2, 0).line("e4", 1);
    let made = make_with(text.as_bytes(), |run| {
        run.unfinished(polybook::make_book::Unfinished::Skip)
    })
    .unwrap();
    assert_eq!(
        (
            made.report.totals.games.counted,
            made.report.totals.games.filtered
        ),
        (1, 1)
    );
}

/// Lines that occur among tags, but are not tag pairs.
const BAD_TAGS: [&str; 15] = [
    "[White Elo \"2400\"]",
    "[Board 3]",
    "[]",
    "[[Site \"x\"]",
    "[Évent \"x\"]",
    "[Annotator me]",
    "[Original fen \"8/8/8/8/8/8/8/8 w - -\"]",
    "[Event",
    "[ECO: B20]",
    "[\"White\"]",
    "[Round 3] ",
    "[{x]",
    "[;",
    "played in the park",
    "[Source club']",
];

#[test]
fn a_line_among_the_tags_that_is_no_tag_costs_nothing() {
    let tags = [
        "[Event \"a\"]\n",
        "[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]\n",
        "[Result \"1-0\"]\n",
    ];
    for bad in BAD_TAGS {
        for at in 1..tags.len() {
            let mut lines = tags.map(str::to_owned);
            lines[at].insert_str(0, &format!("{bad}\n"));
            let text = format!("{}\n1. e4 e5 1-0\n\n", lines.concat());
            let made = make(text.repeat(2));
            made.games(2, 0);
            let start = "4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1";
            let pos = polybook::position::parse_fen(start).unwrap();
            let entries = made.book.moves_of(&pos).unwrap();
            assert_eq!(entries.first().map(|entry| entry.weight), Some(4), "{bad}");
            let offset = lines[..at].concat().len();
            let warning = format!("not a tag pair was skipped, the first time at byte {offset}");
            assert!(
                made.report.warnings.iter().any(|it| it.contains(&warning)),
                "{bad}: {:?}",
                made.report.warnings
            );
        }
    }
    // Two and three such lines in a row, and text after a tag on its line.
    let fen = "[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]";
    for bad in [
        "\nplayed in the park\nat night",
        "\n[Board 3]\nat night\n[]",
        "\n1. e4\n1-0",
        "\nfoo\n% escaped\n; remark\nbar",
        " (est.)",
        " (est.)\nfoo",
        "] x",
        " - unrated",
        " = 2000 [Site \"x\"]",
    ] {
        for variant in ["", "\n[Variant \"Standard\"]"] {
            let text = format!(
                "[Event \"a\"]\n[WhiteElo \"2000\"]{bad}\n{fen}{variant}\n\n1. e4 e5 1-0\n\n"
            );
            let made = make(text.repeat(2));
            made.games(2, 0);
            let pos = polybook::position::parse_fen("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1").unwrap();
            let entries = made.book.moves_of(&pos).unwrap();
            assert_eq!(entries.first().map(|entry| entry.weight), Some(4), "{bad}");
            assert_eq!(
                made.report.warnings.len(),
                1,
                "{bad}: {:?}",
                made.report.warnings
            );
        }
    }
    // After the last tag, too.
    for end in [" (est.)", " est.", "] - x"] {
        make(format!("[Result \"1-0\"]{end}\n\n1. e4 e5\n\n").repeat(2))
            .games(2, 0)
            .line("e4", 4);
    }
    // Moves on the line of a tag are no such text.
    make("[White \"A\"] 1. e4 e5 1-0\n[White \"B\"] e4 c5 1-0\n[White \"C\"]\n\n1. e4 1-0\n")
        .games(3, 0)
        .line("e4", 6);
    // The first and the last line of the tags, and a line with another tag.
    for bad in ["[Board 3]", "[Évent \"x\"]", "[[Site \"x\"]"] {
        let text = format!("{bad}\n[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 e5\n\n");
        make(text.repeat(3)).games(3, 0).line("e4", 6);
        make(format!("[Result \"1-0\"]\n{bad}\n\n1. e4 e5 1-0")).games(1, 0);
        let made = make(format!("[White \"A\"]\n{bad}[Result \"1-0\"]\n\n1. e4 e5"));
        made.games(1, 0).line("e4", 2);
    }
}

/// A game is not played from the starting position because its FEN or its variant is written with other quotation
/// marks.
#[test]
fn damaged_tags_of_the_start_are_read_or_the_game_is_rejected() {
    let start = "4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1";
    let pos = polybook::position::parse_fen(start).unwrap();
    for tag in [
        format!("[FEN “{start}”]"),
        format!("[fen '{start}']"),
        format!("[FEN {start}]"),
        format!("[ FEN „{start}“"),
    ] {
        let made = make(format!(
            "[White \"A\"]\n{tag}\n[Result \"1-0\"]\n\n1. e4 e5\n"
        ));
        made.games(1, 0);
        let entries = made.book.moves_of(&pos).unwrap();
        assert_eq!(entries.first().map(|entry| entry.weight), Some(2), "{tag}");
        // A value without a quotation mark is damaged.
        assert_eq!(
            made.report.warnings.len(),
            usize::from(tag.starts_with("[FEN 4k3")),
            "{tag}: {:?}",
            made.report.warnings
        );
    }
    let with = |tag: &str| {
        format!("[White \"A\"]\n{tag}\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n1. d4 d5 1-0\n")
    };
    make(with("[FEN “nonsense”]")).games(1, 1).line("d4", 2);
    make(with("[FENS “nonsense”]")).games(2, 0);
    make(with("[FEN]")).games(2, 0);
    let made = make(with("[Variant “Atomic”]"));
    assert_eq!(
        (
            made.report.totals.games.counted,
            made.report.totals.games.filtered
        ),
        (1, 1)
    );
}

/// Brackets among the moves, and a repeated `Result`, do not make a second game that starts from another position.
#[test]
fn brackets_among_moves_and_a_repeated_result_are_no_new_game() {
    let text = "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 e5\n[foo]\n[bar]\n2. Nf3 Nc6 1-0\n\n[Event \"b\"]\n\n1. d4 *\n";
    make(text).games(1, 1).line("d4", 1);
    let start = "4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1";
    let text = format!(
        "[Event \"Casual\"]\n[White \"A\"]\n[Result \"*\"]\n[FEN \"{start}\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n"
    );
    let made = make(text);
    made.games(1, 0);
    let pos = polybook::position::parse_fen(start).unwrap();
    assert_eq!(made.book.moves_of(&pos).unwrap()[0].weight, 2);
}

/// The rest of a game is not played from the starting position.
#[test]
fn a_game_that_begins_later_without_a_fen_is_rejected() {
    for (game, number) in [
        ("12. Nf3 Nf6 1-0", "12"),
        ("12.Nf3 Nf6", "12"),
        ("12 Nf3 Nf6 *", "12"),
        ("12Nf3 Nf6 *", "12"),
        ("12\u{a0}Nf3 Nf6 *", "12"),
        ("2.\n\nNf3 Nc6 1-0", "2"),
        ("[White \"A\"]\n\n{c} 7. {d} Nf3 Nc6 1-0", "7"),
        ("[FEN \"?\"]\n\n$1 3. Nf3 (3. c4) 1-0", "3"),
        ("[Variant \"Chess960\"]\n\n3. Nf3 1-0", "3"),
        ("[White \"A\"]\n\n(1. d4) 3. Nf3 1-0", "3"),
        ("[White \"A\"]\n\n[3] Nf3 Nc6 1-0", "3"),
        ("99999999999 Nf3 1-0", "4294967295"),
        ("1... Nf3 2. d3 1-0", "1..."),
        ("1\u{2026} Nf3 1-0", "1..."),
        ("1. ... Nf3 1-0", "1..."),
        ("34... a6 35. h3 1-0", "34..."),
        ("[White \"A\"]\n\n5) e4 e5 1-0", "5"),
        ("[White \"A\"]\n\n5\\. e4 e5 1-0", "5"),
        ("[White \"A\"]\n\n5.- e4 1-0", "5"),
        ("[White \"A\"]\n\n(5) e4 e5 1-0", "5"),
        ("[White \"A\"]\n\n{c} (12.) Nf3 1-0", "12"),
        ("[White \"A\"]\n\n[1] 5. e4 e5 1-0", "5"),
        ("[White \"A\"]\n[1] 5. e4 e5 1-0", "5"),
        ("(3) 5. e4 e5 1-0", "5"),
        ("(5) e4 e5 1-0", "5"),
    ] {
        let text = format!("{game}\n\n[White \"B\"]\n\n1. d4 d5 1-0\n");
        let made = make_with(text.as_bytes(), |run| {
            run.variant(polybook::position::VariantChoice::Auto)
        })
        .unwrap();
        made.games(1, 1).line("d4", 2);
        assert_eq!(
            made.book
                .moves_of(&from_text(None, None).unwrap())
                .unwrap()
                .len(),
            1,
            "{game}"
        );
        let reason = &made.report.rejected[0].reason;
        let expected =
            format!("the game begins at move {number}, but no FEN tag says in which position");
        assert!(reason.contains(&expected), "{game}: {reason}");
    }
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 12";
    for game in [
        "0. e4 e5 1. Nf3 Nc6 1-0",
        "1. e4 e5 7. Nf3 3. Nc6 1-0",
        "e4 e5 2. Nf3 1-0",
        "1. e4 2. e5 3. Nf3 1-0",
        "1 e4 e5 20 Nf3 1-0",
        &format!("[FEN \"{start}\"]\n\n12. e4 e5 13. Nf3 1-0"),
        &format!("[FEN \"{start}\"]\n\n3. e4 e5 Nf3 1-0"),
        "[FEN \"startpos\"]\n\n5. e4 e5 Nf3 1-0",
        // The numbers of games.
        "[White \"A\"]\n\n[7] 1. e4 e5 2. Nf3 1-0",
        "[White \"A\"]\n[1] 1. e4 e5 [2] Nf3 1-0",
        "[White \"A\"]\n\n(7) 1. e4 e5 (2) Nf3 1-0",
        "[White \"A\"]\n\n(1) e4 e5 Nf3 1-0",
        "(1) e4 e5 Nf3 1-0",
        "(7.) 1. e4 e5 Nf3 1-0",
    ] {
        make(game).games(1, 0).line("e4 e5 Nf3", 2);
    }
    // The filters and limits of a run do not matter.
    let text = "5. e4 e5 1-0\n\n1. d4 d5 1-0\n";
    make_with(text.as_bytes(), |run| run.max_ply(1))
        .unwrap()
        .games(1, 1);
    // Two games on one line, and a line that is skipped.
    make("1. e4 e5 1-0 2. Nf3 Nc6 0-1\n").games(1, 1);
}

/// Without a result between two games, the moves of the second one are not played after those of the first one.
#[test]
fn the_number_of_a_first_move_after_other_moves() {
    for (first, second) in [
        ("1. e4 e5", "1. d4 d5"),
        ("1.e4 e5 2.Nf3", "1.d4 d5"),
        ("1 e4 e5", "1 d4 d5"),
        ("[1] e4 e5", "[1] d4 d5"),
        ("[White \"A\"]\n\n1. e4 e5 {x} (1... c5 2. Nf3)", "1. d4 d5"),
        ("1. e4 e5 $1", "1. \u{265f}d4 d5"),
    ] {
        for between in ["\n\n", "\r\n\r\n", "\r\r", "\n \t\n\n"] {
            let text = format!("{first}{between}{second}{between}");
            make(text.repeat(2)).games(4, 0).line("e4", 2).line("d4", 2);
        }
        // Another game may begin here, or the numbers may be wrong.
        for between in ["\n", " ", "\r\n", " | ", "\n{x} ", "%0A", "\\n"] {
            let text = format!("{first}{between}{second}{between}d6 *\n\n1. c4 c5 *\n");
            let made = make(text);
            made.games(1, 1).line("c4", 1).plies(2);
            let reason = &made.report.rejected[0].reason;
            assert!(
                reason.contains("put a result such as * or a blank line before it"),
                "{reason}"
            );
        }
    }
    make("e4 e5\n\n1. d4 d5").games(2, 0).plies(4);
    for game in [
        "1. e4 1. e5 2. Nf3 2. Nc6 1-0",
        "0. e4 e5 1. Nf3 Nc6 1-0",
        "1. e4 1... e5 1... 2. Nf3 Nc6 1-0",
        "1. e4 e5 (1. d4 d5 1. c4) 2. Nf3 Nc6 1-0",
        "1. e4 e5 2. Nf3 {1. d4\n\n1. d4} Nc6 1-0",
        "1. e4 e5 2. Nf3 Nc6 1 - 0",
        "1. e4 e5 2. Nf3 Nc6\n\n1:0",
    ] {
        make(game).games(1, 0).line("e4 e5 Nf3", 2).plies(4);
    }
    // The rest of a game that is rejected for another reason does not hide the next game.
    make("5. e4 e5 6. d4\n1. d4 d5\n\n1. c4 c5 1-0")
        .games(1, 1)
        .line("c4", 2);
}

#[test]
fn a_tag_between_moves_begins_no_game_if_the_moves_go_on() {
    let text = |tag: &str, number: &str| {
        format!(
            "[Event \"A\"]\n[Result \"1-0\"]\n\n1. e4 e5{tag}{number} Nf3 Nc6 1-0\n\n[Event \"B\"]\n[Result \"1-0\"]\n\n\
             1. d4 d5 1-0\n\n"
        )
    };
    for tag in [
        "\n[White \"Ann\"]\n",
        "\n\n[White \"Ann\"]\n\n",
        "\r\n[Round \"3\"]\r\n[Annotator \"{-\"]\r\n",
        "\n[Event \"A\"]\n",
        " [Site 'x']\n",
        "\n[Board 3]\n[Source \"x\"]\n",
    ] {
        let made = make(text(tag, "2.").repeat(3));
        made.games(6, 0).line("e4 e5 Nf3", 6).line("d4", 6);
        assert!(
            made.report.warnings[0].contains("belongs to no game"),
            "{:?}",
            made.report.warnings
        );
        make_with(text(tag, "2.").repeat(3).as_bytes(), |run| run.max_ply(1))
            .unwrap()
            .games(6, 0);
        // Other numbers, and a new position, belong to another game.
        make(text(tag, "3.")).games(2, 1).line("e4", 2);
        make(text(&format!("{tag}[FEN \"8/8 w\"]\n"), "2.")).games(2, 1);
    }
    make("1. e4\n[White \"x\"]\n1... e5 2. Nf3 1-0")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    let fen = "[FEN \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 7\"]\n\n";
    make(format!("{fen}7... e5\n[White \"x\"]\n8. Nf3 1-0"))
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    make(format!("{fen}7... e5\n[White \"x\"]\n2. Nf3 1-0")).games(1, 1);
    make("1. e4 e5\n\n[Event \"B\"]\n\n2. Nf3 Nc6 1-0").games(1, 1);
}

#[test]
fn text_before_the_first_tag_on_its_line() {
    let start = "4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1";
    let pos = polybook::position::parse_fen(start).unwrap();
    for before in [
        "<pre>",
        "<div class=\"x\">",
        "[pgn]",
        "Study: ",
        "\x1a",
        "\0\0",
        "\"",
        "'",
        "• ",
        "- ",
        "1. ",
        "* ",
        "> ",
        "# ",
        "Chapter 3: ",
        "\x1b[0m",
        "(",
        ") ",
        "== ",
        "&nbsp;",
        "\u{feff}",
        "| ",
        "é ",
    ] {
        let text = format!("{before}[FEN \"{start}\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n");
        let made = make(text.repeat(2));
        made.games(2, 0);
        let entries = made.book.moves_of(&pos).unwrap();
        assert_eq!(
            entries.first().map(|entry| entry.weight),
            Some(4),
            "{before}"
        );
        let is_blank = ["\x1a", "\0\0", "\u{feff}"].contains(&before);
        let is_reported = made
            .report
            .warnings
            .iter()
            .any(|it| it.contains("was skipped, the first time at byte"));
        assert_eq!(
            is_reported, !is_blank,
            "{before}: {:?}",
            made.report.warnings
        );
        let text = format!("{before}[Variant \"Atomic\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n");
        assert_eq!(make(text).report.totals.games.filtered, 1, "{before}");
    }
}

#[test]
fn tags_in_other_quotation_marks_are_filtered_by() {
    for (open, close) in [
        ("“", "”"),
        ("'", "'"),
        ("&quot;", "&quot;"),
        ("«", "»"),
        ("\\\"", "\\\""),
        ("‹", "›"),
        ("『", "』"),
        ("《", "》"),
        ("〝", "〟"),
        ("❝", "❞"),
        ("״", "״"),
        ("ʺ", "ʺ"),
        ("＇", "＇"),
        ("&#8220;", "&#8221;"),
        ("&lsquo;", "&rsquo;"),
        ("&#034;", "&#034;"),
        ("''", "''"),
        ("``", "''"),
        // Blanks and signs between the name and the value.
        ("\u{a0}\"", "\""),
        ("\u{3000}“", "”"),
        ("\u{200b}\"", "\""),
        ("\u{b}\"", "\""),
        ("= \"", "\""),
        (": “", "”"),
    ] {
        let game = |white: &str, first: &str| {
            format!(
                "[Event {open}Zonal{close}]\n[White {open}{white}{close}]\n[Result {open}1-0{close}]\n\n1.{first} c5\n\n"
            )
        };
        let text = game("Paulus, K", "e4") + &game("Rosa, Q", "d4");
        let filter = polybook::selection::Selection {
            white: vec!["Rosa, Q".to_owned()],
            ..Default::default()
        };
        let made = make_with(text.as_bytes(), |run| run.selection(filter.clone())).unwrap();
        assert_eq!(made.report.totals.games.counted, 1, "{open}");
        made.line("d4", 2);
        assert_eq!(made.report.warnings, Vec::<String>::new(), "{open}");
    }
}

/// Markdown escapes brackets.
#[test]
fn escaped_brackets_around_tags() {
    for (open, close) in [("\"", "\""), ("“", "”"), ("'", "'")] {
        let tag = |name: &str, value: &str| format!("\\[{name} {open}{value}{close}\\]\n");
        let game = |white: &str| {
            tag("White", white)
                + &tag("Date", "2020.01.02")
                + &tag("Result", "0-1")
                + "\n1. e4 e5\n\n"
        };
        let filter = polybook::selection::Selection {
            white: vec!["Rosa, Q".to_owned()],
            ..Default::default()
        };
        let text = game("Paulus, K") + &game("Rosa, Q");
        let made = make_with(text.as_bytes(), |run| run.selection(filter.clone())).unwrap();
        assert_eq!(made.report.totals.games.counted, 1, "{open}");
        assert_eq!(made.report.totals.unreadable_results, 0, "{open}");
        made.line("e4 e5", 2);
    }
}

/// Moves after the tags on a single line of markup belong to their game.
#[test]
fn games_on_one_line_of_a_web_page() {
    for end in [
        "<br>", "<br />", "</p><p>", "&nbsp;", "&#10;", "[br]", "\u{b}", "\u{c}", " ", "\u{2028}",
    ] {
        let game = "[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n".replace('\n', end);
        let made = make(game.repeat(3));
        made.games(3, 0).plies(9).line("e4 e5 Nf3", 6);
        let is_markup = end.starts_with(['<', '&', '[']);
        let warnings = &made.report.warnings;
        assert_eq!(
            warnings.len(),
            usize::from(is_markup),
            "{end}: {warnings:?}"
        );
    }
}

/// Signs between games and tags on a single line neither end games nor hide moves.
#[test]
fn games_on_one_line_with_signs_between_them() {
    for separator in [
        " | ",
        "|",
        " || ",
        " * ",
        ", ",
        " / ",
        " = ",
        " - ",
        " ~ ",
        " > ",
        " \u{2022} ",
        "%0A",
        "%0d%0a",
        "%20",
        "\\n",
        "\\r\\n",
        "\\t",
        " \\\\n ",
    ] {
        let game = [
            "[Event \"A\"]",
            "[White \"A\"]",
            "[Result \"1-0\"]",
            "1. e4 e5 2. Nf3 1-0",
            "",
        ];
        let made = make(game.join(separator).repeat(3));
        made.games(3, 0).plies(9).line("e4 e5 Nf3", 6);
    }
    for separator in [
        " | ", "|", " * ", ", ", " / ", " - ", "%0A", "\\n", "\n| ", "\n- ",
    ] {
        let games = ["1. e4 e5 2. Nf3 1-0", "1. d4 d5 0-1", "1. c4 c5 *"];
        let made = make(games.join(separator));
        made.games(3, 0).plies(7).line("e4 e5 Nf3", 2).line("c4", 1);
    }
    make("| 1. e4 | e5 |\n| 2. Nf3 | Nc6 |\n| 1-0 |\n")
        .games(1, 0)
        .plies(4)
        .line("e4 e5 Nf3", 2);
    // Text that contains a move may stand between the tags of a game.
    make("[White \"A\"] (after 1. e4 e5) [Black \"B\"]\n\n1. d4 d5 1-0")
        .games(1, 0)
        .plies(2)
        .line("d4", 2);
}

/// Tags after an unclosed comment are not left out without a word.
#[test]
fn an_unclosed_comment_before_tags_is_reported() {
    for before in ["{{", "{ ", "{x [White \"A\"] "] {
        let made = make(format!(
            "{before}[White \"B\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n"
        ));
        let warnings = &made.report.warnings;
        assert!(
            warnings[0].contains("was skipped, the first time at byte 0"),
            "{before}: {warnings:?}"
        );
    }
}

#[test]
fn a_blank_after_the_letter_of_a_piece() {
    for game in [
        "1. e4 e5 2. N f3 N c6 1-0",
        "1. e4 e5 2. N\nf3 N\r\nc6 1-0",
        "1. e4 e5 2. N\u{200b}f3 N\u{a0}c6 1-0",
        "1. e4 e5 2. ♘ f3 ♞ c6 1-0",
        "1. e4 e5 2. N 1f3! N xc6+ 1-0",
        "1. e4 N 1... e5 N 2. Nf3 N Nc6 1-0",
    ] {
        make(game).games(1, 0).line("e4 e5 Nf3", 2).plies(4);
    }
    let made = make("1. e4 e5 2. B c4 B c5 3. Q h5 N c6 4. Q xf7 1-0");
    made.games(1, 0).line("e4 e5 Bc4 Bc5 Qh5 Nc6 Qxf7", 2);
    for game in [
        "1. e4 e5 2. N {x} f3 1-0",
        "1. e4 N f6 1-0",
        "1. e4 D f6 1-0",
        "1. e4 e5 2. N. f3 1-0",
        "1. e4 e5 2. <b>N</b>f3 1-0",
        "1. e4 e5 2. n f3 1-0",
        "1. e4 e5 2. S f3 1-0",
    ] {
        make(game).games(0, 1);
    }
    let made = make_with(b"1. e4 e5 2. S f3 S c6 1-0", |run| {
        run.piece_letters("de".parse().unwrap())
    });
    made.unwrap().games(1, 0).line("e4 e5 Nf3", 2).plies(4);
}

#[test]
fn signs_glued_to_moves_and_results() {
    for result in [
        "1-0#",
        "\u{2018}1-0\u{2019}",
        "<1-0>",
        "=1-0",
        "\u{201c}1-0\u{201d}",
        "_1-0_",
        "1-0\u{2206}",
        "[1-0]",
        "\"1-0\"",
        "1-0<br>",
        "1-0\x1a",
        "\u{25a1}1:0",
        "~1-0",
        "1\u{2013}0#",
        "&nbsp;1-0&nbsp;",
        "1-0\0\0",
        "+-1-0",
    ] {
        make(format!(
            "1. e4 e5 2. Nf3 Nc6 {result}\n\n[White \"x\"]\n\n1. e4 e5 2. Nf3 {result}\n"
        ))
        .games(2, 0)
        .line("e4 e5 Nf3", 4)
        .plies(7);
    }
    make("1. e4 e5 2. Nf3 \u{bd}-\u{bd}\u{2206}\n\n1. e4 e5 2. Nf3 \u{ab}\u{bd}-\u{bd}\u{bb}")
        .games(2, 0)
        .line("e4 e5 Nf3", 2);
    for game in [
        "1. e4 \\$1 e5 2. Nf3 \\$14 Nc6\\! 1-0",
        "1. e4\u{2206} e5\u{2206} 2. Nf3\u{2206} Nc6\u{2206} 1-0",
        "1. e4<br />e5<br/>2. Nf3&nbsp;<b>Nc6</b> 1-0",
        "[White \"x\"]\n\n1. e4\x1a e5\0 2. Nf3 Nc6 1-0\x1a",
    ] {
        make(game).games(1, 0).line("e4 e5 Nf3", 2).plies(4);
    }
    make("[Result \"1-0\"]\n\n1. e4 e5 2. Nf3\x1a")
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    for promotion in ["=♕", "♕", "(♕)", "=(♕)", "/♕", "=♛", "=\u{2655}\u{fe0e}"] {
        make(format!(
            "1. h4 g5 2. hxg5 h6 3. gxh6 Nf6 4. h7 Rg8 5. hxg8{promotion} Nxg8 1-0"
        ))
        .games(1, 0)
        .line("h4 g5 hxg5 h6 gxh6 Nf6 h7 Rg8 hxg8=Q", 2);
    }
}

#[test]
fn games_are_read_from_forums_and_web_pages() {
    for game in [
        "[pgn]1. e4 e5 2. Nf3 Nc6 1-0[/pgn]",
        "[pgn]1. e4 e5\n2. Nf3 Nc6 1-0[/pgn]",
        "[PGN]\n[Event \"x\"]\n\n1. e4 e5\n2. Nf3 Nc6 1-0\n[/PGN]",
        "[Result \"1-0\"]\n\n[1] e4 e5 [2] Nf3 Nc6 1-0",
        "[1.] e4 e5 [2.]Nf3 Nc6 1-0",
        "[b]1. e4[/b] e5 [color=red]2. Nf3[/color] Nc6 1-0",
        "[Event \"Club\"]<br />\n[Result \"1-0\"]<br />\n<br />\n1. e4 e5<br />\n2. Nf3 Nc6 1-0<br />\n<br />",
        "<p>[Event &quot;Club&quot;]</p>\n<p>[Result &quot;1-0&quot;]</p>\n\n<p>1. e4&nbsp;e5 2. <i>Nf3</i> Nc6 1-0</p>",
        "[code]\n1. e4 e5 2. Nf3 Nc6 1-0\n[/code]",
    ] {
        let made = make(format!("{game}\n\n").repeat(2));
        made.games(2, 0).line("e4 e5 Nf3", 4).plies(8);
    }
}

#[test]
fn a_move_number_in_brackets_above_tags_begins_a_game() {
    for number in ["[1]", "[1.] "] {
        let made = make(format!("{number}e4 e5\n[Event \"x\"]\n\n1. e4 e5 1-0\n"));
        made.games(2, 0).plies(4);
    }
}

#[test]
fn fens_of_other_variants_in_untagged_games() {
    use polybook::position::{Variant, VariantChoice};
    let board = "rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR";
    for (fen, variant) in [
        (format!("{board}[Pp] w KQkq - 0 3"), Variant::Crazyhouse),
        (format!("{board}/Pp w KQkq - 0 3"), Variant::Crazyhouse),
        (format!("{board} w KQkq - 0 3 +0+0"), Variant::ThreeCheck),
        (format!("{board} w KQkq - 3+3 0 3"), Variant::ThreeCheck),
    ] {
        let text = format!("[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n3. Nc3 1-0\n");
        let made = make(&text);
        made.games(0, 1);
        let reason = &made.report.rejected[0].reason;
        assert!(
            reason.contains(&format!("give the variant {variant}")),
            "{reason}"
        );
        for choice in [VariantChoice::Only(variant), VariantChoice::Auto] {
            let made = make_with(text.as_bytes(), |run| run.variant(choice)).unwrap();
            made.games(1, 0);
            assert_eq!(made.report.totals.variants.get(&variant), Some(&1), "{fen}");
        }
    }
}

/// A start position of Chess960 is recognized even if its king is on the e-file. Only the 18 positions whose king
/// and rooks are on the squares of standard chess are not recognized.
#[test]
fn all_start_positions_of_chess960_are_recognized() {
    let mut ranks = std::collections::BTreeSet::new();
    let mut seen = vec![[b' '; 8]];
    for piece in *b"RKRBBNNQ" {
        let grown = seen.iter().flat_map(|rank| {
            (0..8).filter(|at| rank[*at] == b' ').map(|at| {
                let mut rank = *rank;
                rank[at] = piece;
                rank
            })
        });
        let grown: std::collections::BTreeSet<[u8; 8]> = grown.collect();
        seen = grown.into_iter().collect();
    }
    for rank in seen {
        let at = |piece: u8| Vec::from_iter((0..8).filter(|at| rank[*at] == piece));
        let (rooks, bishops, king) = (at(b'R'), at(b'B'), at(b'K')[0]);
        if rooks[0] < king && king < rooks[1] && (bishops[0] + bishops[1]) % 2 == 1 {
            ranks.insert(String::from_utf8(rank.to_vec()).unwrap());
        }
    }
    assert_eq!(ranks.len(), 960);
    let mut standard = 0;
    for rank in &ranks {
        let fen = format!(
            "{}/pppppppp/8/8/8/8/PPPPPPPP/{rank} w KQkq - 0 1",
            rank.to_ascii_lowercase()
        );
        let text = format!("[FEN \"{fen}\"]\n\n1. e3 e6 1-0\n");
        let mut reader = polybook::pgn::GameReader::new(text.as_bytes());
        assert!(reader.next_game());
        let variant = reader.tags().variant().unwrap();
        standard += u32::from(variant == polybook::position::Variant::Standard);
    }
    assert_eq!(standard, 18);
}

#[test]
fn a_torn_header_is_a_game_of_its_own() {
    let text = "[Event \"11\"]\n[White \"A\"]\n[Result \"1-0\"]\n[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\
        [TimeControl \"66.6+0.6[Event \"10\"]\n[White \"B\"]\n[Result \"1-0\"]\n\n1. d4 d5 1-0\n";
    make(text).games(2, 0).line("d4", 2);
    for name in ["Site", "Date", "Round", "Black"] {
        let text = format!(
            "[{name} \"1\"]\n[FEN \"4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\"]\n[{name} \"2\"]\n\n1. d4 d5 1-0\n"
        );
        make(text).games(2, 0).line("d4", 2);
    }
    // A repeated tag belongs to the same game.
    make("[Date \"2024\"]\n[Result \"1-0\"]\n[Date \"2024\"]\n\n1. d4 d5\n")
        .games(1, 0)
        .line("d4", 2);
}

#[test]
fn results_in_the_spellings_of_people() {
    for (marker, weight) in [
        ("1:0", 2),
        ("1–0", 2),
        ("0.5-0.5", 1),
        ("0,5:0,5", 1),
        ("½:½", 1),
        ("1/2", 1),
        ("+--", 2),
        ("1-0 ", 2),
        ("1 - 0", 2),
        ("1 : 0", 2),
        ("1 \u{2013} 0", 2),
        ("1/2 - 1/2", 1),
        ("1/2 : 1/2", 1),
        ("½ - ½", 1),
        ("0.5 - 0.5", 1),
        ("0,5 : 0,5", 1),
        ("1 -\n0", 2),
        ("1- 0", 2),
        ("1\t:\t0", 2),
    ] {
        make(format!("1. d4 d5 {marker}\n\n1. d4 d5 {marker}"))
            .games(2, 0)
            .line("d4", 2 * weight);
        make(format!("[Result \"{marker}\"]\n\n1. d4 d5\n"))
            .games(1, 0)
            .line("d4", weight);
        // The moves of a filtered game are skipped.
        let text =
            format!("[White \"A\"]\n\n1. e4 e5 {marker}\n\n[White \"B\"]\n\n1. d4 d5 {marker}");
        let filtered = make_with(text.as_bytes(), |run| run.max_ply(1)).unwrap();
        filtered.games(2, 0).line("d4", weight);
    }
}

#[test]
fn results_in_words() {
    for (result, weight) in [
        ("draw", 1),
        ("Drawn.", 1),
        ("Draw agreed", 1),
        ("Game drawn by repetition", 1),
        ("White wins", 2),
        ("White won on time", 2),
        ("Black resigns", 2),
        ("Black wins", 0),
        ("White resigned.", 0),
    ] {
        // A termination marker may follow the words.
        let token = ["0-1", "1/2-1/2", "1-0"][weight as usize];
        for text in [
            format!("[White \"A\"]\n\n1. d4 d5 {result}\n\n[White \"B\"]\n\n1. e4 e5 {result}"),
            format!("[Result \"{result}\"]\n\n1. d4 d5\n\n[Result \"{result}\"]\n\n1. e4 e5 *"),
            format!("1. d4 d5 2. c4 {result} {token}\n\n1. e4 e5 {{{result}}} {token}"),
        ] {
            for max_ply in [2, 1] {
                let made = make_with(text.as_bytes(), |run| run.max_ply(max_ply)).unwrap();
                made.games(2, 0);
                let totals = &made.report.totals;
                assert_eq!(
                    (totals.unfinished, totals.unreadable_results),
                    (0, 0),
                    "{text}"
                );
                if weight > 0 {
                    made.line("d4", weight).line("e4", weight);
                }
            }
        }
    }
}

/// The words may be glued to the termination marker, which decides.
#[test]
fn words_before_a_termination_marker_are_skipped() {
    for words in [
        "White wins.",
        "White wins. ",
        "White wins",
        "White wins!",
        "Draw.",
        "Black resigns.",
        "resigns ",
        "mate.",
        "Remis.",
        "draw agreed.",
        "13.",
    ] {
        for (marker, weight) in [("1-0", 2), ("1/2-1/2", 1), ("0-1", 0), ("*", 1)] {
            let text = format!(
                "[White \"A\"]\n\n1. d4 d5 {words}{marker}\n\n[White \"B\"]\n\n1. e4 e5 1-0\n"
            );
            for max_ply in [2, 1] {
                let made = make_with(text.as_bytes(), |run| run.max_ply(max_ply)).unwrap();
                made.games(2, 0);
                assert_eq!(made.report.totals.unreadable_results, 0, "{text}");
                made.line("e4", 2);
                if weight > 0 {
                    made.line("d4", weight);
                }
            }
        }
    }
}

/// A result that cannot be read counts as no result, and the summary says so. Another reading would be a guess.
#[test]
fn unreadable_results_after_the_moves_are_reported() {
    for result in [
        "2-0",
        "1-1",
        "0:2",
        "0\u{2013}2",
        "3 - 1",
        "1 - 1",
        "remis",
        "Remis.",
        "draw offered",
        "White is better",
        "mate",
        "adjourned",
    ] {
        let text = format!("[White \"A\"]\n\n1. d4 d5 {result}\n\n[White \"B\"]\n\n1. e4 e5 1-0\n");
        let made = make(&text);
        made.games(2, 0).line("d4", 1).line("e4", 2);
        let totals = &made.report.totals;
        assert_eq!(
            (totals.unfinished, totals.unreadable_results),
            (1, 1),
            "{text}"
        );
        let skipped = make_with(text.as_bytes(), |run| run.max_ply(1)).unwrap();
        skipped.games(2, 0).line("e4", 2);
        // The tag has the result.
        let tagged = make(text.replace("[White \"A\"]", "[Result \"0-1\"]"));
        assert_eq!(tagged.report.totals.unreadable_results, 0);
        assert_eq!(tagged.report.totals.unfinished, 0);
    }
    // None of these words end a game with moves.
    for text in [
        "1. e4 e5 2. remis",
        "1. e4 remis 1... e5 2. Nf3 *",
        "1. e4 e5 remis\n\n2. Nf3",
        "1. e4 e5 (2. d4 remis) 2. Nf3 Nbxd",
        "1. e4 2-0 e5",
        "remis",
    ] {
        let made = make_with(
            format!("[White \"A\"]\n\n{text}\n\n[White \"B\"]\n\n1. e4 *\n").as_bytes(),
            |run| run,
        );
        made.unwrap().games(1, 1);
    }
}

/// Each of these texts ends a game, and nothing else does.
#[test]
fn markers_with_blanks_are_whole_markers() {
    for (text, games) in [
        ("1. e4 e5 0 - 1 1. d4 d5 1 - 0", 2),
        ("1. e4 e5 1 - 0\n\n1. c4 1 : 0\n\n1. d4 1/2 - 1/2", 3),
        ("1. e4 e5 0 - 0\n\n1. d4 d5 *", 2),
        ("1. e4 e5 (2. d4 1 - 0) 2. Nf3 {0 - 1} ; 1 - 0\n 1-0", 1),
        ("1. e4 e5 2 Nf3 Nc6 3 Bc4 - 3... Bc5 1-0", 1),
    ] {
        let made = make(text);
        made.games(games, 0);
        assert_eq!(made.report.warnings, [""; 0], "{text}");
    }
    let reject = "1. e4 e5 1 -\n\n0 2. Nf3 Nc6 *";
    make(reject).games(1, 0).line("e4 e5 Nf3", 1);
}

#[test]
fn a_move_number_may_be_glued_to_its_move() {
    let castled = "e4 e5 Nf3 Nc6 Bc4 Bc5 O-O";
    for castling in [
        "4OO", "4O-O", "40-0", "4.OO", "4...O-O", "4 0-0", "4. 00", "4.00",
    ] {
        let text = format!("1.e4 e5 2.Nf3 Nc6 3Bc4 Bc5 {castling} Nf6 1-0");
        make(text).games(1, 0).line(castled, 2);
    }
    make("1Nf3 Nf6 2c4 1-0").games(1, 0).line("Nf3 Nf6 c4", 2);
    let queenside = "1.d4 d5 2.Nc3 Nc6 3.Bf4 Bf5 4.Qd2 Qd7 50-0-0 1-0";
    make(queenside)
        .games(1, 0)
        .line("d4 d5 Nc3 Nc6 Bf4 Bf5 Qd2 Qd7 O-O-O", 2);
    // Half of a result, and moves that are glued to each other, can be read in several ways.
    for text in [
        "1.e4 e5 10-0",
        "1.e4e5 2.Nf3Nc6 1-0",
        "1.e4 e5 2.Nf3Nc6 1-0",
    ] {
        let made = make_with(text.as_bytes(), |run| run.allow_empty(true));
        let counted = made.map_or(0, |made| made.report.totals.games.counted);
        assert_eq!(counted, 0, "{text}");
    }
}

/// Some programs write the time or the evaluation of a move without the braces of a comment.
#[test]
fn decimal_numbers_are_not_castling() {
    for numbers in [
        "0.24 0.00 0.18",
        "1.00 0.00 2.00",
        "0.50 0.00 3.00",
        "0.0 7.000 0.00",
    ] {
        let numbers: Vec<&str> = numbers.split(' ').collect();
        let [first, second, third] = numbers[..] else {
            unreachable!()
        };
        let text =
            format!("1. e4 {first} e5 {second} 2. Nf3 {third} Nc6 3. Bc4 {second} Bc5 {first} 1-0");
        let made = make(&text);
        made.games(1, 0).line("e4 e5 Nf3 Nc6 Bc4", 2);
        assert_eq!(made.report.totals.plies, 6, "{text}");
    }
    // Numbers in comments and variations, and in the tags of a game, are not move numbers of the game.
    let begin = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5";
    for (text, plies) in [
        ("{begin} (3... Nf6 4. Ng5 d5) 4.00 Nf6 5. d3 1-0", 9),
        ("{begin} {played in 1998.} 4.00 1-0", 7),
        ("{begin} {compare 12. Nf3} 4.00 Nf6 1-0", 8),
        ("{begin} -- 5.00 1-0", 6),
        (
            "[Date \"1998.??.??\"]\n[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n\n1.00 Ke7 1-0",
            2,
        ),
    ] {
        let text = text.replace("{begin}", begin);
        let made = make(&text);
        assert_eq!(made.report.totals.plies, plies, "{text}");
    }
}

#[test]
fn an_asterisk_ends_a_game_whatever_it_is_glued_to() {
    for sign in ["", ",", "=", "+-", "!?", "±", "e4 ", "1...", "--,"] {
        make(format!("1. c4 {sign}* 1. d4 d5 1-0")).line("d4", 2);
        let text = format!("1. c4 {sign}* 1. d4 d5 1-0");
        let skipped = make_with(text.as_bytes(), |run| run.max_ply(1)).unwrap();
        assert_eq!(skipped.report.totals.games.read, 2, "{sign}");
    }
}

/// Text after the result of a game begins a game only with tags or a move number.
#[test]
fn moves_and_results_after_a_result_are_no_game() {
    for rest in [
        " Nf3 Nc6",
        "\nNf3 would win faster",
        " Qh5 {c} 1-0 Qh4 0-1",
        "\n\nd4 d5",
        " 1-0 1-0",
        "\n\n*\n*",
        " * * *",
        "\n1/2 1/2",
        "\n---\n--- \n",
        "\n--\n-- Nf3",
        " 1 - 0",
        "\n0.5 - 0.5 1.0-0.0",
        " \u{bd}-\u{bd} \u{2018}1-0\u{2019}",
        "\n[1-0]",
        " 1-0# Nf3",
    ] {
        for next in ["\n\n[White \"B\"]\n\n1. d4 d5 1-0\n", "\n1. d4 d5 1-0\n"] {
            let text = format!("[White \"A\"]\n\n1. e4 e5 1-0{rest}{next}");
            let made = make(&text);
            made.games(2, 0).line("e4", 2).line("d4", 2);
            let start = from_text(None, None).unwrap();
            assert_eq!(made.book.moves_of(&start).unwrap().len(), 2, "{text}");
            assert_eq!(
                made.report.warnings.len(),
                1,
                "{text}: {:?}",
                made.report.warnings
            );
            // The result, not the first of its repetitions, ends the game.
            let untagged = make(text.replace("[White \"A\"]", ""));
            untagged.games(2, 0).line("e4", 2);
        }
    }
    make("1. e4 e5 1-0 * 1. d4 d5 1-0\n")
        .games(2, 0)
        .line("d4", 2);
    make("*\n1-0 1-0\n1. e4 e5 1-0").games(1, 0);
    // Games without numbers are on lines of their own.
    make("e4 e5 1-0\nd4 d5 0-1\n\nc4 *")
        .games(3, 0)
        .line("c4", 1);
    make("e4 e5 1-0 d4 d5 0-1\nc4 *").games(2, 0).line("c4", 1);
    let many = "e4 e5 1-0\n".repeat(300_000) + "{" + &"x".repeat(1 << 20) + "}\nd4 1-0 d4\n";
    make(many).games(300_001, 0);
}

#[test]
fn asterisks_of_markdown_are_no_results() {
    for text in [
        "1. e4 e5 2. *Nf3* Nc6 1-0",
        "1. *e4* e5 2. **Nf3** ***Nc6*** 1-0",
        "*1. e4* e5 *2. Nf3 Nc6* 1-0",
        "**1. e4 e5 2. Nf3 Nc6** 1-0",
        "**1.** e4 e5 **2.** Nf3 (2. *f4* exf4) Nc6 1-0",
        "1. e4! *e5?* {*} 2. Nf3 *Nc6* 1-0",
    ] {
        for tags in ["", "[White \"A\"]\n\n"] {
            make(tags.to_owned() + text)
                .games(1, 0)
                .line("e4 e5 Nf3", 2);
            let variations = make_with(text.as_bytes(), |run| run.variations(true)).unwrap();
            variations.games(1, 0).line("e4 e5 Nf3", 2);
        }
    }
    make("1. e4 *1. d4 d5* 1. c4 *").games(3, 0).line("c4", 1);
    make("1. e4 e5 *\n1. d4* 1. c4 *").games(3, 0);
}

#[test]
fn a_game_that_both_sides_lost() {
    make("[Result \"0-0\"]\n\n0-0\n").games(1, 0);
    make("1. e4 e5 0-0\n\n1. e4 c5 *").games(2, 0);
    make("[White \"A\"]\n[Result \"0-0\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. 0-0 d6 0-0 {both}\n\n[White \"B\"]\n\n*")
        .games(2, 0)
        .line("e4 e5 Nf3 Nc6 Bc4 Bc5 O-O d6", 1);
    make("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. 0-0")
        .games(1, 0)
        .line("e4 e5 Nf3 Nc6 Bc4 Bc5 O-O", 1);
    make("1. e4 e5 0-0 2. Nf3 *").games(0, 1);
}

#[test]
fn signs_spaces_and_dots_of_unicode() {
    for sign in [
        "□", "⇆", "→", "⩲", "⩱", "∓", "±", "∞", "+/-", "=/+", "!!", "⊕", "N", "D", "=", "‼", "⨀",
        "○", "⟳", "∆", "TN",
    ] {
        make(format!("1. e4 e5 {sign} 2. Nf3 Nc6 {sign}\n1-0"))
            .games(1, 0)
            .line("e4 e5 Nf3", 2);
        if sign != "TN" {
            make(format!("1. e4{sign} e5{sign} 2. Nf3{sign} Nc6 1-0"))
                .games(1, 0)
                .line("e4 e5 Nf3", 2);
        }
    }
    // Signs before moves.
    for sign in ["□", "⇆", "→", "⩲", "∓", "±", "∞", "⊕", "‼", "⨀", "○", "⟳"]
    {
        for game in [
            format!("1. {sign}e4 {sign}e5 2.{sign}Nf3! {sign}Nc6 1-0"),
            format!("1. {sign} e4 {sign} e5 {sign} {sign}{sign} 2. {sign} Nf3 Nc6 1-0"),
        ] {
            make(game).games(1, 0).line("e4 e5 Nf3", 2);
        }
    }
    // These signs mean "with the idea" or "better is". The moves after them are moves of the game if the numbers say
    // so.
    for sign in ["∆", "⌓", "△"] {
        for game in [
            format!("1. e4 e5 2. {sign} Nf3 Nc6 1-0"),
            format!("1.{sign}e4 1...{sign}e5 2.{sign}Nf3 {sign}Nc6 3. Bb5 1-0"),
            format!("1. e4 {sign} e5 2. Nf3 1-0"),
            format!("1.e4 {sign} e5 2.Nf3 Nc6 1-0"),
            format!("1. e4 e5 {sign} 2. Nf3 {sign}\n1-0"),
        ] {
            make(&game).games(1, 0).line("e4 e5 Nf3", 2);
        }
        for game in [
            format!("1. e4 e5 {sign} Nf3 1-0"),
            format!("1. e4 e5 {sign}Nf3 2. d4 1-0"),
            format!("1. e4 1... e5 {sign} Nf3 2. d4 1-0"),
            format!("1. e4 {sign} e5 1... c5 1-0"),
        ] {
            make(&game).games(0, 1);
        }
    }
    for blank in [
        "\u{a0}", "\u{200b}", "\u{feff}", "\u{2009}", "\u{3000}", "\u{202f}", "\u{2060}",
    ] {
        make(format!(
            "[White \"A\"]{blank}\n{blank}[Result \"1-0\"]\n{blank}\n1.{blank}e4{blank} e5 {blank}2. Nf3{blank}Nc6 1-0{blank}"
        ))
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    }
    make("1. e4 {good} 1… e5 2.… Nf3 1-0\n\n1… e5 *")
        .games(1, 1)
        .line("e4 e5 Nf3", 2);
}

#[test]
fn a_first_move_that_cannot_be_played_is_named() {
    let Err(err) = make_with(b"0. Ne3 c6 1. d4 d5 *", |run| run) else {
        panic!("a game was counted");
    };
    assert!(err.to_string().contains("\"Ne3\": illegal move"), "{err}");
    let Err(err) = make_with("1. Sf3 d5 *".as_bytes(), |run| run) else {
        panic!("a game was counted");
    };
    let err = err.to_string();
    assert!(
        err.ends_with("the move is legal with the piece letters de"),
        "{err}"
    );
    let letters = "de".parse().unwrap();
    let made = make_with(b"1. Sf3 d5 1-0", |run| run.piece_letters(letters)).unwrap();
    made.games(1, 0).line("Nf3", 2);
}

#[test]
fn chess960_is_recognized_by_its_castling_rights() {
    use polybook::position::{Variant, VariantChoice};
    for rights in ["FCfc", "KQkq"] {
        let fen = format!("nbrkqrbn/pppppppp/8/8/8/8/PPPPPPPP/NBRKQRBN w {rights} - 0 1");
        let text = format!("[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n1. Nb3 Nb6 2. e3 e6 1-0\n");
        for choice in [VariantChoice::Only(Variant::Chess960), VariantChoice::Auto] {
            let made = make_with(text.as_bytes(), |run| run.variant(choice)).unwrap();
            made.games(1, 0);
            assert_eq!(made.report.totals.plies, 4);
        }
        let made = make(text);
        made.games(0, 1);
        // Follow the advice in the message of the run above.
        let reason = &made.report.rejected[0].reason;
        assert!(reason.contains("give the variant fischerandom"), "{reason}");
    }
}

/// A tag in Windows-1252 has single bytes for dashes. Three-check has its checks before or after the counters.
#[test]
fn fens_of_other_encodings_and_variants() {
    let board = "4k3/8/8/8/8/8/4P3/4K3";
    let text = format!("[FEN \"{board} white \u{96} \u{97} -1 -1\"]\n\n1. e4 1-0\n");
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    make(bytes).games(1, 0);
    for fen in [
        "W - - 3+3 -1 -1",
        "white \u{2013} 3+2 0 1",
        "w - - 0 1 +0+1",
        "W - - ? ? +0+1",
    ] {
        let text = format!("[Variant \"Three-check\"]\n[FEN \"{board} {fen}\"]\n\n1. e4 1-0\n");
        let made = make_with(text.as_bytes(), |run| {
            run.variant(polybook::position::VariantChoice::Auto)
        });
        made.unwrap().games(1, 0);
    }
    // Castling rights of Chess960 are recognized with a semicolon, operations or other spellings.
    for end in [
        "w FCfc - 0 1;",
        "w FCfc - id \"x\";",
        "W FCfc - 0 1",
        "w FCfc \u{2013} -1 -1",
    ] {
        let end = end.replace('"', "\\\"");
        let text =
            format!("[FEN \"nbrkqrbn/pppppppp/8/8/8/8/PPPPPPPP/NBRKQRBN {end}\"]\n\n1. Nb3 1-0\n");
        let made = make_with(text.as_bytes(), |run| {
            run.variant(polybook::position::VariantChoice::Auto)
        });
        let made = made.unwrap();
        let variants = &made.report.totals.variants;
        assert_eq!(
            variants.get(&polybook::position::Variant::Chess960),
            Some(&1),
            "{end}"
        );
    }
}

#[test]
fn fens_of_tags_are_read_as_those_of_the_command_line() {
    let start = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -";
    for end in [
        "0 2;",
        "hmvc 0; fmvn 2;",
        "0 2 id \"x\";",
        "0 2 ;",
        "",
        "c0 \"1. d4 d5\";",
    ] {
        let text = format!("[FEN \"{start} {end}\"]\n[Result \"1-0\"]\n\n2. Nf3 1-0\n");
        make(
            text.replace("id \"x\"", "id x")
                .replace("\"1. d4 d5\"", "x"),
        )
        .games(1, 0)
        .line("e4 e5 Nf3", 2);
    }
    make(format!(
        "[FEN \"{}\"]\n[Result \"1-0\"]\n\n2. Nf3 1-0\n",
        format!("{start} 0 2").replace(' ', "_")
    ))
    .games(1, 0)
    .line("e4 e5 Nf3", 2);
    let from_start = "[FEN \"StartPos\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n";
    make(from_start).games(1, 0).line("e4", 2);
}

#[test]
fn an_unknown_variant_is_named_in_the_error() {
    for name in ["wild/0", "Xiangqi", "losers"] {
        let text = format!("[Variant \"{name}\"]\n\n1. e4 *\n");
        let Err(err) = make_with(text.as_bytes(), |run| run.allow_empty(false)) else {
            panic!("the game was counted");
        };
        let err = err.to_string();
        let advice = format!(
            "1 game of the unknown variant \"{name}\" left out; if these games are standard chess, remove the tag Variant"
        );
        assert!(err.contains(&advice), "{err}");
        let without = text.lines().skip(1).collect::<Vec<_>>().join("\n");
        make(without).games(1, 0).line("e4", 1);
    }
}

#[test]
fn games_that_pass_with_unknown_dates_and_ratings_are_reported() {
    let games = |values: &[&str], tag: &str| -> String {
        let game = |value: &&str| format!("[{tag} \"{value}\"]\n\n1. e4 *\n\n");
        values.iter().map(game).collect()
    };
    let text = games(
        &[
            "2019-02-26",
            "Sun Jul 09 2017",
            "20230517",
            "10.03.18",
            "2024.05.06",
            "3/10/18, 2:39 PM",
        ],
        "Date",
    );
    let filter = |require_date| polybook::selection::Selection {
        since: Some("2022".parse().unwrap()),
        require_date,
        ..Default::default()
    };
    let report = |require| {
        let run = |run: MakeBook| run.selection(filter(require));
        make_with(text.as_bytes(), run).unwrap().report
    };
    let (all, dated) = (report(false), report(true));
    assert_eq!((all.totals.games.counted, all.totals.undated), (4, 2));
    assert_eq!((dated.totals.games.counted, dated.totals.undated), (2, 0));
    let advice = |warning: &String| warning.starts_with("2 games without a readable date");
    assert!(all.warnings.iter().any(advice), "{:?}", all.warnings);

    let text = "[WhiteElo \"1200?\"][BlackElo \"1300P\"]\n\n1. a3 *\n\n[WhiteElo \"DWZ=1500\"][BlackElo \"2600\"]\n\n\
        1. b3 *\n\n[WhiteElo \"unrated\"][BlackElo \"2600\"]\n\n1. c3 *\n\n[WhiteElo \"2600\"][BlackElo \"2610\"]\n\n1. d3 *\n";
    let filter = polybook::selection::Selection {
        min_elo: Some(2200),
        ..Default::default()
    };
    let made = make_with(text.as_bytes(), |run| run.selection(filter.clone())).unwrap();
    let totals = made.report.totals;
    assert_eq!((totals.games.counted, totals.unrated), (2, 1));
}

#[test]
fn untagged_games_are_of_the_variant_that_is_named() {
    let dir = crate::common::temp();
    let dir = dir.path();
    // In atomic chess both pawns explode on d5, which opens the file.
    let moves = "1. e4 d5 2. exd5 Qxd2";
    let games = format!(
        "[White \"none\"]\n\n{moves} 0-1\n\n[Variant \"?\"]\n\n{moves} 0-1\n\n\
         [Variant \"Standard\"]\n\n1. e4 *\n\n[Variant \"Crazyhouse\"]\n\n1. d4 *\n"
    );
    fs::write(dir.join("a.pgn"), games).unwrap();
    let run = "make-book a.pgn --untagged-variant atomic --force --json --min-game 1";
    let counted = |options: &str| {
        let report = crate::common::ok_json(dir, &format!("{run} {options}"));
        report["variants"].to_string()
    };
    let all = r#"{"normal":1,"crazyhouse":1,"atomic":2}"#;
    assert_eq!(counted("--variant auto --bin a.bin"), all);
    assert_eq!(counted("--variant atomic --bin a.bin"), r#"{"atomic":2}"#);
    let header = crate::common::ok(dir, "pgheader -s a.bin");
    assert!(header.contains("untagged-variant atomic"), "{header}");

    // Every command that reads games reads them in the same way.
    fs::write(
        dir.join("suite.pgn"),
        format!("[Variant \"Atomic\"]\n\n{moves} *\n"),
    )
    .unwrap();
    for (command, expected) in [
        (
            "repertoire build a.pgn --color white --untagged-variant atomic --variant atomic --min-game 1 --out r.pgn",
            "",
        ),
        (
            "repertoire check r.pgn a.pgn --color white --untagged-variant atomic",
            "2 games",
        ),
        (
            "repertoire new a.pgn --reference a.pgn --untagged-variant atomic",
            "",
        ),
        (
            "suite-report suite.pgn a.pgn --untagged-variant atomic",
            "2 games",
        ),
    ] {
        let said = crate::common::ok(dir, command);
        assert!(said.contains(expected), "{command}: {said}");
        assert!(!said.contains("illegal"), "{command}: {said}");
    }
    let index = "--variant auto --explorer a.idx";
    assert_eq!(counted(index), all);
    let moves = crate::common::ok_json(
        dir,
        args![
            "show",
            "a.idx",
            "--variant",
            "atomic",
            "--moves",
            "e4 d5 exd5",
            "--json"
        ],
    );
    assert_eq!(moves["games"], 2, "{moves}");
}

#[test]
fn results_that_cannot_be_read_and_games_without_one_are_reported() {
    let tagged = |value: &str| format!("[Result \"{value}\"]\n\n1. e4 e5\n\n");
    let text: String = ["remis", "draw?", "white", "?", "", "1:0", "*"]
        .map(tagged)
        .concat();
    let made = make(&text);
    let totals = &made.report.totals;
    assert_eq!((totals.unreadable_results, totals.unfinished), (3, 6));
    let advice = |warning: &String| {
        warning.starts_with("3 games have an unreadable result")
            && warning.ends_with("use 1-0, 0-1, 1/2-1/2 or *")
    };
    assert!(
        made.report.warnings.iter().any(advice),
        "{:?}",
        made.report.warnings
    );
    // Follow the advice.
    let mended = text
        .replace("remis", "1/2-1/2")
        .replace("draw?", "1/2-1/2")
        .replace("white", "1-0");
    let totals = make(&mended).report.totals;
    assert_eq!((totals.unreadable_results, totals.unfinished), (0, 3));
    // Rejected games, and games that a filter drops, do not count.
    let dropped = "[Result \"remis\"]\n\n1. e4 Ke4 *\n\n1. d4 *\n";
    let totals = make_with(dropped.as_bytes(), |run| {
        run.unfinished(polybook::make_book::Unfinished::Skip)
    });
    let totals = totals.unwrap().report.totals;
    assert_eq!((totals.unreadable_results, totals.unfinished), (0, 0));
}

/// Text that looks like games but cannot be read is described.
#[test]
fn text_like_games_is_described() {
    for (text, said) in [
        (
            "1. P-K4 P-K4 2. N-KB3 1-0\n",
            "\"P-K4\": not a move; the move is in descriptive notation",
        ),
        (
            "1. Кf3 Кf6 1-0\n",
            "\"Кf3\": not a move; polybook does not know the piece letters",
        ),
        ("1. е4 e5 1-0\n", "does not know the piece letters"),
        ("1. Hf3 Hf6 1-0\n", "does not know the piece letters"),
        (
            "1. Sf3 Sf6 1-0\n",
            "the move is legal with the piece letters de",
        ),
        ("1. 5254 5755 2. 7163 1-0\n", "no moves such as e4 and Nf3"),
        (
            "1. Introduction\n\nTo chess.\n",
            "\"Introduction\": not a move",
        ),
    ] {
        let Err(err) = make_with(text.as_bytes(), |run| run.allow_empty(false)) else {
            panic!("{text} was counted");
        };
        let err = err.to_string();
        assert!(err.contains(said), "{text}: {err}");
    }
    // If a filter leaves out all games, they are games nevertheless.
    for (text, said) in [
        ("1. e4 e5 1-0\n\n1. d4 *\n", "2 filtered by rating"),
        ("{a} 1. Nf3 {b} 1-0\n", "1 filtered by rating"),
        ("e4 1-0\n", "1 filtered by rating"),
    ] {
        let filter = polybook::selection::Selection {
            require_elo: true,
            ..Default::default()
        };
        let run = |run: MakeBook| run.allow_empty(false).selection(filter.clone());
        let Err(err) = make_with(text.as_bytes(), run) else {
            panic!("{text} was counted");
        };
        assert!(err.to_string().contains(said), "{text}: {err}");
    }
}

/// Games that go on after the game was drawn by the fivefold repetition or the 75-move rule are read to their end, as
/// python-chess reads them.
#[test]
fn games_go_on_after_draws_by_rule() {
    let shuffle = "Nf3 Nf6 Ng1 Ng8 ";
    let made = make(format!("{}e4 1-0", shuffle.repeat(6)));
    made.games(1, 0).line("e4", 2);
    assert_eq!(made.report.totals.plies, 25);
    let fen = "4k3/8/8/8/8/8/4P3/4K2R w K - 149 100";
    let made = make(format!(
        "[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n100. Rh2 Kd8 101. Rh3 Kd7 102. e4 1-0\n"
    ));
    made.games(1, 0);
    assert_eq!(made.report.totals.plies, 5);
}

/// Positions are read by three functions: for tags, for options, and for HTTP.
#[test]
fn positions_are_read_alike_in_tags_options_and_http() {
    use polybook::{
        explorer::Line,
        position::{Variant, epd_of, game_start},
    };
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
    let castled = "r4rk1/8/8/8/8/8/8/R3K2R";
    for (text, epd) in [
        (start.to_owned(), format!("{start} w KQkq -")),
        (format!(" {start} b"), format!("{start} b KQkq -")),
        (format!("{start} w -"), format!("{start} w - -")),
        (format!("{start}_w_Kq_-_0_1"), format!("{start} w Kq -")),
        (format!("{start}_b_KQkq_-"), format!("{start} b KQkq -")),
        ("startpos".to_owned(), format!("{start} w KQkq -")),
        (" StartPos\n".to_owned(), format!("{start} w KQkq -")),
        (
            format!("{start} w KQkq - 0 1;"),
            format!("{start} w KQkq -"),
        ),
        (
            format!("{start} w KQkq - id \"a_b\";"),
            format!("{start} w KQkq -"),
        ),
        (castled.to_owned(), format!("{castled} w KQ -")),
        (format!("{start} W KQkq - 0 1"), format!("{start} w KQkq -")),
        (format!("{start} white KQkq -"), format!("{start} w KQkq -")),
        (format!("{start} B"), format!("{start} b KQkq -")),
        (
            format!("{start} Black \u{2013} \u{2014} 0 1"),
            format!("{start} b - -"),
        ),
        (
            format!("{start} b \u{2212} \u{2010} 0 1;"),
            format!("{start} b - -"),
        ),
        (format!("{start} w 0 1"), format!("{start} w KQkq -")),
        (format!("{start} w - 0 1"), format!("{start} w - -")),
        (format!("{start} w Qk 0 1"), format!("{start} w Qk -")),
        (
            format!("{start} w KQkq - -1 -1"),
            format!("{start} w KQkq -"),
        ),
        (format!("{start} w KQkq - - ?"), format!("{start} w KQkq -")),
        (
            format!("{start} w KQkq hmvc 3; fmvn 4;"),
            format!("{start} w KQkq -"),
        ),
        (
            format!("{start} White \u{2013} id \"a \u{2013} b\";"),
            format!("{start} w - -"),
        ),
        (
            "4k3/8/8/8/3Pp3/8/8/4K3 B \u{2013} D3 0 1".to_owned(),
            "4k3/8/8/8/3Pp3/8/8/4K3 b - d3".to_owned(),
        ),
        (
            "4k3/8/8/8/3Pp3/8/8/4K3 b d3 0 1".to_owned(),
            "4k3/8/8/8/3Pp3/8/8/4K3 b - d3".to_owned(),
        ),
        (
            "4k3/8/8/8/8/8/8/R3K2R w KQkq - 0 1".to_owned(),
            "4k3/8/8/8/8/8/8/R3K2R w KQ -".to_owned(),
        ),
    ] {
        assert_eq!(epd_of(&game_start(&text).unwrap().0), epd, "{text}");
        assert_eq!(
            epd_of(&from_text(Some(&text), None).unwrap()),
            epd,
            "{text}"
        );
        let line = Line::parse(Variant::Standard, Some(&text), "").unwrap();
        assert_eq!(epd_of(line.position()), epd, "{text}");
    }
    for text in [
        "",
        "8",
        "x_y",
        "startpos e4",
        &format!("{start} x KQkq - 0 1"),
        &format!("{start} KQkq - 0 1"),
        &format!("{start} White to move"),
        &format!("{start} W KQkq - 0 1 moves e2e4"),
        &format!("{start} w KQkq - 0 1 -"),
        &format!("{start} w KQkq - 0 -1 3 -1"),
        &format!("{start} w KQkq - moves"),
        &format!("{start} {}", "x ".repeat(7 << 20)),
    ] {
        let said = game_start(text).unwrap_err().to_string();
        assert!(said.len() < 300, "{said}");
        assert_eq!(from_text(Some(text), None).unwrap_err().to_string(), said);
        let line = Line::parse(Variant::Standard, Some(text), "");
        assert_eq!(line.unwrap_err().to_string(), said);
    }
}
