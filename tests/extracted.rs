//! Games that were extracted, read again: they have the tags, moves, comments and results of the games that were
//! selected.

use std::{collections::BTreeMap, fs, ops::ControlFlow, path::Path};

use pgn_reader::{Nag, RawComment, RawTag, SanPlus, Skip, Visitor};
use polybook::{
    MakeBook,
    make_book::{Extract, ExtractForm},
    pgn::{ExportFormat, GameReader, Input},
    position::VariantChoice,
    selection::Selection,
};
use proptest::{collection::vec, prelude::*};
use shakmaty::{CastlingMode, Chess, Color, Move, Position, fen::Fen, uci::UciMove};

use crate::common::{fed, ok, program, sample, temp, temp_in_memory};

/// A part of the movetext of a game.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Move(String),
    Nag(u8),
    Comment(String),
    Open,
    Close,
}

/// The tags, the movetext and the result of a game.
type Contents = (Vec<(String, String)>, Vec<Part>, String);

/// A generated game.
#[derive(Debug)]
struct Game {
    /// The game in PGN, without blanks at its ends.
    text: String,
    tags: Vec<(String, String)>,
    parts: Vec<Part>,
    /// The termination marker, if there is one.
    marker: Option<&'static str>,
    /// The number of half-moves in the main line.
    plies: usize,
    has_capture: bool,
    is_broken: bool,
}

impl Game {
    fn tag(&self, name: &str) -> Option<&str> {
        let mut tags = self.tags.iter().rev();
        tags.find(|tag| tag.0 == name).map(|tag| tag.1.as_str())
    }

    fn result(&self) -> &str {
        self.tag("Result").or(self.marker).unwrap_or("*")
    }

    /// Returns what a reader finds in the game after it was written in `format`, without the tags of the opening.
    fn exported(&self, format: ExportFormat) -> Contents {
        const ROSTER: [&str; 7] = ["Event", "Site", "Date", "Round", "White", "Black", "Result"];
        let mut tags: Vec<(String, String)> = ROSTER
            .iter()
            .map(|name| {
                let unknown = if *name == "Date" { "????.??.??" } else { "?" };
                let value = match *name {
                    "Result" => self.result(),
                    name => self
                        .tag(name)
                        .filter(|it| !it.trim().is_empty())
                        .unwrap_or(unknown),
                };
                ((*name).to_owned(), value.to_owned())
            })
            .collect();
        let mut others: BTreeMap<String, String> = self
            .tags
            .iter()
            .filter(|(name, _)| !ROSTER.contains(&&**name))
            .filter(|(name, _)| !format.roster_only || name == "FEN" || name == "SetUp")
            .cloned()
            .collect();
        if format.add_ply_count {
            others.insert("PlyCount".to_owned(), self.plies.to_string());
        }
        tags.extend(others);
        let mut parts = Vec::new();
        let mut depth = 0;
        for part in &self.parts {
            match part {
                Part::Open => depth += 1,
                Part::Close => depth -= 1,
                _ => {}
            }
            let is_kept = match part {
                _ if format.no_variations && (depth > 0 || *part == Part::Close) => false,
                Part::Nag(_) => !format.no_nags,
                Part::Comment(_) => !format.no_comments,
                _ => true,
            };
            if !is_kept {
                continue;
            }
            let Part::Comment(comment) = part else {
                parts.push(part.clone());
                continue;
            };
            let mut comment = comment.replace('{', "(").replace('}', ")");
            for (is_left_out, command) in [
                (format.no_clocks, CLOCK),
                (format.no_clocks, ELAPSED),
                (format.no_evals, EVAL),
            ] {
                if is_left_out {
                    comment = comment.replace(command, " ");
                }
            }
            let words: Vec<&str> = comment.split_whitespace().collect();
            if !words.is_empty() {
                parts.push(Part::Comment(words.join(" ")));
            }
        }
        (tags, parts, self.result().to_owned())
    }
}

const CLOCK: &str = "[%clk 0:01:00]";
const ELAPSED: &str = "[%emt 0:00:05.5]";
const EVAL: &str = "[%eval #-3,20]";

const STARTS: [&str; 3] = [
    "rnbqkb1r/pppp1ppp/5n2/4p3/4P3/2N5/PPPP1PPP/R1BQKBNR w KQkq - 2 3",
    "4k2r/P5p1/8/8/5p2/8/4P1PP/R3K3 b Qk - 0 31",
    "8/1P4k1/8/3pP3/8/8/6pK/8 w - d6 0 70",
];

/// Makes games from bytes, each of which chooses what comes next.
struct Maker<'a> {
    bytes: std::slice::Iter<'a, u8>,
    game: Game,
}

impl Maker<'_> {
    fn next(&mut self, choices: usize) -> usize {
        self.bytes
            .next()
            .map_or(0, |byte| usize::from(*byte) % choices)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next(of.len())]
    }

    fn put(&mut self, text: &str) {
        self.game.text += text;
    }

    fn blank(&mut self) {
        let blank = self.one(&[" ", " ", " ", "\n", "\r\n", "  ", "\t"]);
        self.put(blank);
    }

    /// Makes the next game. `may_lack_tags` is `true` if the game before it ends with a result.
    fn make(&mut self, may_lack_tags: bool) -> Game {
        let pos = self.tags(may_lack_tags);
        let has_tags = !self.game.tags.is_empty();
        self.line(pos, 0, has_tags);
        let marker = self.one(&[Some("1-0"), Some("0-1"), Some("1/2-1/2"), Some("*"), None]);
        self.game.is_broken = self.next(9) == 8;
        if self.game.is_broken {
            self.put(" Kh5-a1");
        }
        self.game.marker = marker;
        if let Some(marker) = marker {
            self.blank();
            self.put(marker);
        }
        self.game.text.truncate(self.game.text.trim_end().len());
        std::mem::replace(&mut self.game, new_game())
    }

    fn tag(&mut self, name: &str, value: &str) {
        let written = value.replace('\\', "\\\\").replace('"', "\\\"");
        self.put(&format!("[{name} \"{written}\"]\n"));
        self.game.tags.push((name.to_owned(), value.to_owned()));
    }

    /// Writes tags, and returns the position in which the game begins.
    fn tags(&mut self, may_be_none: bool) -> Chess {
        if may_be_none && self.next(4) == 3 {
            return Chess::default();
        }
        self.tag("Event", "E");
        let names = [
            "Tal",
            "Tal, M",
            "A \"b\" c",
            "",
            "?",
            "\u{e9}\u{dc}",
            "a\\",
            "\\\"",
            "x]",
            "[y] {",
            "1. e4 *",
            "; %",
            "two  blanks",
        ];
        for tag in [
            "Site",
            "White",
            "Black",
            "Round",
            "Annotator",
            "X-Y",
            "Source_1",
            "Annotator",
            "Opening",
        ] {
            if self.next(2) == 1 {
                let value = self.one(&names);
                self.tag(tag, value);
            }
        }
        if self.next(2) == 1 {
            let result = self.one(&["1-0", "0-1", "1/2-1/2", "*"]);
            self.tag("Result", result);
        }
        let mut pos = Chess::default();
        if self.next(4) == 3 {
            let fen = self.one(&STARTS);
            self.tag("SetUp", "1");
            self.tag("FEN", fen);
            let fen: Fen = fen.parse().unwrap();
            pos = fen.into_position(CastlingMode::Standard).unwrap();
        }
        self.put("\n");
        pos
    }

    /// Writes comments.
    fn comments(&mut self) {
        while self.next(8) == 7 {
            let is_rest_of_line = self.next(4) == 3;
            let blank = if is_rest_of_line {
                " "
            } else {
                self.one(&[" ", "\n", "  "])
            };
            // A comment that contains an opening brace must not look as if another game began in it.
            let last = self.one(&["", "", "", "{", "}", "[Event \"x\"]"]);
            let last = if last == "}" && !is_rest_of_line || last == "{" && blank == "\n" {
                ""
            } else {
                last
            };
            let mut words = Vec::new();
            for _ in 0..self.next(9) {
                words.push(self.one(&[
                    "good",
                    ":(",
                    "(",
                    ")",
                    CLOCK,
                    ELAPSED,
                    EVAL,
                    "[%csl Gd4]",
                    "1-0",
                    "1.",
                    "e4",
                    "\u{e9}",
                    "%x",
                    "$3",
                    "--",
                    "averylongwordthatisnotbrokenintoseverallines",
                    "!?",
                    "\\",
                    "[",
                    "]",
                    "*",
                ]));
            }
            words.push(last);
            let comment = words.join(blank);
            if is_rest_of_line {
                self.put(&format!(" ; {comment}\n"));
            } else {
                self.put(&format!("{{{comment}}}"));
            }
            self.blank();
            self.game.parts.push(Part::Comment(comment));
        }
    }

    /// Writes the moves of the main line, or of a variation at `depth`.
    fn line(&mut self, mut pos: Chess, depth: usize, may_begin_with_comment: bool) {
        if may_begin_with_comment {
            self.comments();
        }
        let mut needs_number = depth == 0;
        let plies = self.next(if depth == 0 { 14 } else { 5 });
        // A game that has no tags must have moves.
        let plies = plies.max(usize::from(!may_begin_with_comment));
        for _ in 0..plies {
            let legal = pos.legal_moves();
            if legal.is_empty() {
                break;
            }
            if depth > 0 && self.next(12) == 11 {
                self.null_move();
                return;
            }
            let mv = legal[self.next(legal.len())];
            let mark = self.number_and_move(&pos, mv, needs_number);
            needs_number = false;
            let san = SanPlus::from_move(pos.clone(), mv).to_string();
            self.game.parts.push(Part::Move(san));
            if depth == 0 {
                self.game.plies += 1;
                self.game.has_capture |= mv.is_capture();
            }
            self.game.parts.extend(mark.map(Part::Nag));
            self.blank();
            while self.next(8) == 7 {
                let nag = self.one(&[1, 6, 14, 255]);
                self.put(&format!("${nag}"));
                self.blank();
                self.game.parts.push(Part::Nag(nag));
            }
            self.comments();
            while depth < 4 && self.next(9) == 8 {
                self.put("(");
                self.game.parts.push(Part::Open);
                self.line(pos.clone(), depth + 1, true);
                self.put(")");
                self.game.parts.push(Part::Close);
                self.blank();
                self.comments();
            }
            pos.play_unchecked(mv);
        }
    }

    /// Writes a null move, after which the moves of a variation cannot be played.
    fn null_move(&mut self) {
        let after = self.one(&[
            None,
            Some("Nf3"),
            Some("O-O"),
            Some("Qxh7+"),
            Some("exd8=Q"),
        ]);
        for mv in [Some("--"), after].into_iter().flatten() {
            self.put(mv);
            self.game.parts.push(Part::Move(mv.to_owned()));
            self.blank();
        }
    }

    /// Writes a move in one of many spellings, perhaps with its number. Returns the annotation of its mark.
    fn number_and_move(&mut self, pos: &Chess, mv: Move, needs_number: bool) -> Option<u8> {
        let number = pos.fullmoves();
        let is_white = pos.turn() == Color::White;
        if needs_number || self.next(3) > 0 {
            let dots = if is_white { "." } else { "..." };
            let blank = self.one(&["", " ", "\n"]);
            self.put(&format!("{number}{dots}{blank}"));
        }
        let plus = SanPlus::from_move(pos.clone(), mv);
        let text = match self.next(5) {
            0 => plus.san.to_string(),
            1 if mv.is_castle() => plus.san.to_string().replace('O', "0"),
            1 => UciMove::from_standard(mv).to_string(),
            2 if !mv.is_castle() && mv.promotion().is_none() => {
                let letter = mv.role().upper_char();
                let letter = if letter == 'P' {
                    String::new()
                } else {
                    letter.to_string()
                };
                let sign = if mv.is_capture() { 'x' } else { '-' };
                format!("{letter}{}{sign}{}", mv.from().unwrap(), mv.to())
            }
            _ => plus.to_string(),
        };
        self.put(&text);
        let marks = [
            (None, ""),
            (None, ""),
            (None, ""),
            (Some(1), "!"),
            (Some(2), "?"),
            (Some(3), "!!"),
            (Some(4), "??"),
            (Some(5), "!?"),
            (Some(6), "?!"),
        ];
        let (nag, mark) = self.one(&marks);
        self.put(mark);
        nag
    }
}

fn new_game() -> Game {
    Game {
        text: String::new(),
        tags: Vec::new(),
        parts: Vec::new(),
        marker: None,
        plies: 0,
        has_capture: false,
        is_broken: false,
    }
}

/// Makes games from bytes.
fn games_of(bytes: &[u8]) -> Vec<Game> {
    let mut maker = Maker {
        bytes: bytes.iter(),
        game: new_game(),
    };
    let mut games: Vec<Game> = Vec::new();
    while games.is_empty() || !maker.bytes.as_slice().is_empty() {
        let may_lack_tags = games.last().is_none_or(|game| game.marker.is_some());
        games.push(maker.make(may_lack_tags));
    }
    games
}

/// A visitor that collects the contents of a game.
struct Collector;

impl Visitor for Collector {
    type Tags = Vec<(String, String)>;
    type Movetext = Contents;
    type Output = Contents;

    fn begin_tags(&mut self) -> ControlFlow<Contents, Self::Tags> {
        ControlFlow::Continue(Vec::new())
    }

    fn tag(
        &mut self,
        tags: &mut Self::Tags,
        name: &[u8],
        value: RawTag<'_>,
    ) -> ControlFlow<Contents> {
        let name = String::from_utf8(name.to_vec()).unwrap();
        tags.push((name, unescaped(value.as_bytes())));
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Self::Tags) -> ControlFlow<Contents, Contents> {
        ControlFlow::Continue((tags, Vec::new(), "*".to_owned()))
    }

    fn san(&mut self, game: &mut Contents, san: SanPlus) -> ControlFlow<Contents> {
        game.1.push(Part::Move(san.to_string()));
        ControlFlow::Continue(())
    }

    fn nag(&mut self, game: &mut Contents, Nag(nag): Nag) -> ControlFlow<Contents> {
        game.1.push(Part::Nag(nag));
        ControlFlow::Continue(())
    }

    fn comment(&mut self, game: &mut Contents, comment: RawComment<'_>) -> ControlFlow<Contents> {
        let comment = String::from_utf8(comment.0.to_vec()).unwrap();
        // The lines of a comment are broken at blanks.
        game.1.push(Part::Comment(comment.replace('\n', " ")));
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, game: &mut Contents) -> ControlFlow<Contents, Skip> {
        game.1.push(Part::Open);
        ControlFlow::Continue(Skip(false))
    }

    fn end_variation(&mut self, game: &mut Contents) -> ControlFlow<Contents> {
        game.1.push(Part::Close);
        ControlFlow::Continue(())
    }

    fn outcome(
        &mut self,
        game: &mut Contents,
        outcome: shakmaty::Outcome,
    ) -> ControlFlow<Contents> {
        game.2 = outcome.to_string();
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, game: Contents) -> Contents {
        game
    }
}

/// Removes the backslashes before quotes and backslashes. `RawTag::decode` fails if both follow each other.
fn unescaped(value: &[u8]) -> String {
    let text = str::from_utf8(value).unwrap();
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(char) = chars.next() {
        plain.push(if char == '\\' {
            chars.next().unwrap()
        } else {
            char
        });
    }
    plain
}

fn contents(text: &str) -> Vec<Contents> {
    let mut games = GameReader::new(text.as_bytes());
    let mut all = Vec::new();
    while let Some(game) = games.visit_game(&mut Collector) {
        all.push(game.unwrap());
    }
    all
}

/// Extracts games from a text, and returns the output.
fn extracted(
    dir: &Path,
    text: &str,
    selection: &Selection,
    form: ExtractForm,
    keep_broken: bool,
) -> String {
    let (input, out) = (dir.join("games.pgn"), dir.join("out.pgn"));
    fs::write(&input, text).unwrap();
    let run = MakeBook::new([Input::file(input)])
        .variant(VariantChoice::Auto)
        .selection(selection.clone())
        .max_ply(usize::MAX)
        .allow_empty(true)
        .force(true)
        .threads(1)
        .extract(Extract::new(&out).form(form).keep_broken(keep_broken));
    run.run().unwrap();
    fs::read_to_string(out).unwrap()
}

fn format_of(bits: u16) -> ExportFormat {
    let bit = |number: u16| bits >> number & 1 == 1;
    ExportFormat {
        no_comments: bit(0) && bit(1),
        no_variations: bit(2) && bit(3),
        no_nags: bit(4),
        no_clocks: bit(5),
        no_evals: bit(6),
        roster_only: bit(7),
        add_eco: bit(8),
        add_opening: bit(9),
        add_ply_count: bit(10),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_read_again_output_has_the_selected_games(
        bytes in vec(any::<u8>(), 0..600),
        format: u16,
        condition in prop_oneof![
            Just(("", "")), Just(("white", "Tal")), Just(("result", "1-0")), Just(("position", "move[x]")),
        ],
        keep_broken: bool,
    ) {
        let games = games_of(&bytes);
        let mut text = String::new();
        for game in &games {
            text += &game.text;
            text += if game.marker.is_some() { "\n\n" } else { "\r\n\r\n\n" };
        }
        let (name, value) = condition;
        let mut selection = Selection::default();
        if !name.is_empty() {
            selection.set(name, value).unwrap();
        }
        let is_selected = |game: &&Game| match name {
            "white" => game.tag("White").is_some_and(|white| white.contains("Tal")),
            "result" => game.result() == value,
            "position" => game.has_capture,
            _ => true,
        };
        let selected: Vec<&Game> = games.iter().filter(is_selected).collect();
        let whole = selected.iter().filter(|game| !game.is_broken);
        let format = format_of(format);
        let form = ExtractForm::Export(format);
        let dir = temp_in_memory();
        let dir = dir.path();
        let all = Selection::default();

        let cleaned = extracted(dir, &text, &selection, form, false);
        let mut found = contents(&cleaned);
        let mut expected: Vec<Contents> = whole.map(|game| game.exported(format)).collect();
        let of_opening = |(name, _): &(String, String)| match &**name {
            "ECO" => format.add_eco,
            "Opening" | "Variation" => format.add_opening,
            _ => false,
        };
        for (tags, ..) in found.iter_mut().chain(&mut expected) {
            tags.retain(|tag| !of_opening(tag));
        }
        prop_assert_eq!(&found, &expected, "{}\n{}", text, cleaned);
        let is_short = |line: &str| line.len() < 80 || line.starts_with('[') || !line.contains(' ');
        prop_assert!(cleaned.lines().all(is_short), "{}", cleaned);
        prop_assert_eq!(&extracted(dir, &cleaned, &all, form, false), &cleaned);
        prop_assert_eq!(&extracted(dir, &cleaned, &all, ExtractForm::Text, false), &cleaned);

        // Games are copied byte by byte. Where neither a result nor tags separate two games, the result is added.
        let copied = extracted(dir, &text, &selection, ExtractForm::Text, keep_broken);
        let mut expected = String::new();
        let mut open_result = None;
        for game in selected.iter().filter(|game| keep_broken || !game.is_broken) {
            if let Some(result) = open_result && game.tags.is_empty() {
                expected += &format!("{result}\n\n");
            }
            open_result = game.marker.is_none().then(|| if game.is_broken { "*" } else { game.result() });
            expected += &format!("{}\n\n", game.text);
        }
        prop_assert_eq!(&copied, &expected);
        prop_assert_eq!(&extracted(dir, &copied, &all, ExtractForm::Text, keep_broken), &copied);
        prop_assert_eq!(&extracted(dir, &copied, &all, form, false), &cleaned);
    }
}

/// Extracts games with pgn-extract and with polybook, and compares the games in the export format.
#[test]
fn the_options_that_pgn_extract_has_select_and_change_the_same_games() {
    let Some(pgn_extract) = program(&["pgn-extract"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let annotated = "[Event \"A\"]\n[White \"B\"]\n[WhiteElo \"2500\"]\n[Result \"1-0\"]\n\n{first} 1. e4 $1 e5 {a ( b} (1... e6 \
        (1... c6 2. Nc3!?) 2. Nf3) 2. Qh5?! Ke7 3. Qxe5# 1-0\n\n";
    let setup = "[Event \"S\"]\n[SetUp \"1\"]\n[FEN \"7k/5K2/8/6Q1/8/8/8/8 w - - 0 1\"]\n[Result \"1/2-1/2\"]\n\n1. Qg6 1/2-1/2\n\n";
    let mut games = fs::read_to_string(sample("famous.pgn")).unwrap();
    let selfplay = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let (end, _) = selfplay.match_indices("[Event ").nth(200).unwrap();
    games += &selfplay[..end];
    games = games + "\n" + annotated + setup + annotated;
    fs::write(dir.join("games.pgn"), games).unwrap();
    for (name, text) in [
        ("endings", "2 rp2 rp\n"),
        ("lasting", "10 R2P+ R=P*\n"),
        ("bishops", "2 q*r*b2n0p* q=r=b0n2p=\n"),
        ("white", "3 rp2 rp\n"),
        (
            "fen",
            "FEN \"rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq c6 0 2\"\n",
        ),
        ("center", "FENPattern \"*/*/*/*/???PP???/*/*/*\"\n"),
        ("either", "FENPatternI \"*/*/*/*/???PP???/*/*/*\"\n"),
        (
            "castled",
            "FENPattern \"?????rk?/?????[pb]aa/*/*/*/8/P[BP]P*/*\"\n",
        ),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    let castled = "board[5rk1/8/8/8/8/8/8/8] and p[f7] + b[f7] and black[g7,h7] = 2 and white[3] + black[3] = 0 and \
        board[8/8/8/8/8/8/P1P5/8] and B[b2] + P[b2]";
    for (theirs, ours) in [
        ("", vec!["--clean"]),
        ("-C", vec!["--strip", "comments"]),
        ("-N", vec!["--strip", "nags"]),
        ("-V", vec!["--strip", "variations"]),
        ("-C -N -V", vec!["--strip", "comments,nags,variations"]),
        ("-7", vec!["--tags", "roster"]),
        ("-D", vec!["--duplicates", "once"]),
        ("--plycount", vec!["--add", "plycount"]),
        ("--stopafter 3", vec!["--limit", "3"]),
        ("-TpMorphy", vec!["--player", "Morphy"]),
        ("-TwMorphy", vec!["--white", "Morphy"]),
        ("-TbMorphy", vec!["--black", "Morphy"]),
        ("-TeC3", vec!["--eco", "C3"]),
        ("-Tr1-0 -Tr0-1", vec!["--result", "1-0", "--result", "0-1"]),
        ("-Tdb1900", vec!["--until", "1899", "--require-date"]),
        ("-Tda1900", vec!["--since", "1901", "--require-date"]),
        (
            "-Td1858",
            vec!["--since", "1858", "--until", "1858", "--require-date"],
        ),
        ("-pl60", vec!["--min-plies", "60"]),
        ("-bl30", vec!["--min-plies", "59"]),
        ("--onlysetuptags", vec!["--tag", "SetUp=1"]),
        ("--nosetuptags", vec!["--not-tag", "SetUp=1"]),
        ("-M", vec!["--position", "mate"]),
        ("--stalemate", vec!["--position", "stalemate"]),
        ("--underpromotion", vec!["--position", "move[=N, =B, =R]"]),
        (
            "-tfen",
            vec![
                "--position",
                "fen[rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR]",
            ],
        ),
        ("-tcenter", vec!["--position", "board[8/8/8/8/3PP3/8/8/8]"]),
        (
            "-Tf*/*/*/*/???PP???/*/*/*",
            vec!["--position", "board[8/8/8/8/3PP3/8/8/8]"],
        ),
        (
            "-teither",
            vec!["--position", "either(board[8/8/8/8/3PP3/8/8/8])"],
        ),
        ("-tcastled", vec!["--position", castled]),
        (
            "-zendings",
            vec!["--position", "either(material[KRPPvKRP] for 3)"],
        ),
        ("-ywhite", vec!["--position", "material[KRPPvKRP] for 4"]),
        (
            "-zlasting",
            vec![
                "--position",
                "either(R = 2 and r = 2 and P and Q+q+B+b+N+n = 0 for 11)",
            ],
        ),
        (
            "-zbishops",
            vec![
                "--position",
                "either(B = 2 and n = 2 and b+N = 0 and Q=q and R=r and P=p for 3)",
            ],
        ),
    ] {
        let output = std::process::Command::new(&pgn_extract)
            .current_dir(dir)
            .arg("-s")
            .args(theirs.split_whitespace())
            .arg("games.pgn")
            .output()
            .unwrap();
        let cleaned = |games: &[u8]| {
            let output = fed(dir, "extract - -q --clean", games);
            String::from_utf8(output.stdout).unwrap()
        };
        let expected = cleaned(&output.stdout);
        let found = ok(dir, &[&["extract", "-q", "games.pgn"][..], &ours].concat());
        assert!(!expected.is_empty(), "{theirs}");
        assert_eq!(cleaned(found.as_bytes()), expected, "{theirs}: {ours:?}");
    }
}
