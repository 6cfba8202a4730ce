//! Compares counts with those of a second reader: `pgn-reader` reads the games and `shakmaty` plays them.
//!
//! The two readers differ for text that is not PGN. So the bytes choose moves, and the games are written in a form that both
//! accept: legal moves in SAN, with move numbers, comments, glyphs and variations between them.

use std::{collections::BTreeMap, fmt::Write as _, ops::ControlFlow};

use pgn_reader::{RawComment, RawTag, Reader, SanPlus, Skip, Visitor};
use polybook::{
    MakeBook,
    obs::Obs,
    pgn::Input,
    position::{uci, write_epd},
    results::Wdl,
};
use shakmaty::{Chess, Color, Position};

use super::Room;

type Counts = BTreeMap<(String, String), Wdl>;

pub fn run(data: &[u8]) {
    let pgn = written(data);
    let room = Room::new();
    let path = room.file("games.pgn", pgn.as_bytes());
    let obs = room.path("games.obs.db3");
    let made = MakeBook::new([Input::file(&path)])
        .min_game(1)
        .threads(1)
        .obs(&obs)
        .run();
    let expected = counted(&pgn);
    if expected.is_empty() {
        return;
    }
    let report = made.unwrap();
    assert_eq!(report.totals.games.rejected, 0, "{:?}", report.rejected);
    let rows = Obs::open(&obs).unwrap().rows().unwrap();
    let found: Counts = rows
        .map(Result::unwrap)
        .map(|row| ((row.epd, row.mv), row.stats))
        .collect();
    assert_eq!(found, expected, "{pgn}");
}

/// Returns games whose moves the bytes choose.
fn written(data: &[u8]) -> String {
    let mut pgn = String::new();
    for game in data.split(|&byte| byte == 0xff).take(16) {
        let mut bytes = game.iter();
        let result = ["1-0", "0-1", "1/2-1/2", "*"][usize::from(bytes.next().unwrap_or(&0) % 4)];
        writeln!(pgn, "[Event \"fuzz\"]\n[Result \"{result}\"]\n").unwrap();
        let mut pos = Chess::default();
        while let Some(&chosen) = bytes.next() {
            let legal = pos.legal_moves();
            let Some(&mv) = legal.get(usize::from(chosen) % legal.len().max(1)) else {
                break;
            };
            let ornament = if chosen > 200 {
                bytes.next().copied()
            } else {
                None
            };
            write_move(&mut pgn, &pos, mv, chosen, ornament.unwrap_or(0));
            pos.play_unchecked(mv);
        }
        writeln!(pgn, "{result}\n").unwrap();
    }
    pgn
}

fn write_move(pgn: &mut String, pos: &Chess, mv: shakmaty::Move, chosen: u8, ornament: u8) {
    if pos.turn() == Color::White || chosen.is_multiple_of(3) {
        let dots = if pos.turn() == Color::White {
            "."
        } else {
            "..."
        };
        write!(pgn, "{}{dots} ", pos.fullmoves()).unwrap();
    }
    write!(pgn, "{}", SanPlus::from_move(pos.clone(), mv)).unwrap();
    pgn.push_str(match ornament % 8 {
        1 => " $14 ",
        2 => " {a comment (with) 1. e4 in it} ",
        3 => " (1. Nonsense {deep} (2. e4) e5) ",
        4 => "\n",
        5 => "!? ",
        6 => " ; to the end of the line 1-0\n",
        7 => " {[%clk 0:01:02]}\n",
        _ => " ",
    });
}

/// Returns the counts according to `pgn-reader` and `shakmaty`.
fn counted(pgn: &str) -> Counts {
    let mut counter = Counter::default();
    let mut reader = Reader::new(pgn.as_bytes());
    while reader.read_game(&mut counter).unwrap().is_some() {}
    counter.counts
}

#[derive(Default)]
struct Counter {
    counts: Counts,
}

struct Movetext {
    pos: Chess,
    winner: Option<Color>,
}

impl Visitor for Counter {
    type Tags = Option<Color>;
    type Movetext = Movetext;
    type Output = ();

    fn begin_tags(&mut self) -> ControlFlow<(), Option<Color>> {
        ControlFlow::Continue(None)
    }

    fn tag(
        &mut self,
        winner: &mut Option<Color>,
        name: &[u8],
        value: RawTag<'_>,
    ) -> ControlFlow<()> {
        if name == b"Result" {
            *winner = match value.as_bytes() {
                b"1-0" => Some(Color::White),
                b"0-1" => Some(Color::Black),
                _ => None,
            };
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, winner: Option<Color>) -> ControlFlow<(), Movetext> {
        ControlFlow::Continue(Movetext {
            pos: Chess::default(),
            winner,
        })
    }

    fn san(&mut self, text: &mut Movetext, san: SanPlus) -> ControlFlow<()> {
        let mv = san.san.to_move(&text.pos).expect("the moves are legal");
        let mut epd = Vec::new();
        write_epd(&text.pos, &mut epd);
        let epd = String::from_utf8(epd).unwrap();
        let stats = Wdl::of_game(text.winner, text.pos.turn());
        *self.counts.entry((epd, uci(&text.pos, mv))).or_default() += stats;
        text.pos.play_unchecked(mv);
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Movetext) -> ControlFlow<(), Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn comment(&mut self, _: &mut Movetext, _: RawComment<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, _: Movetext) {}
}
