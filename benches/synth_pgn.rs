//! Generates any number of distinct, legal, realistic games. The same seed gives the same games:
//!
//! ```sh
//! cargo run --release --example synth_pgn -- --games 1000000 --seed 1 > synth.pgn
//! ```
//!
//! Openings are drawn from `data/openings.txt`, a tree of the moves that masters play most, with their frequencies. So early
//! positions repeat as in real games. After the opening, each side examines a few legal moves and plays the one that wins
//! most or loses least material, so late positions do not repeat. Lengths, results, ratings and tags resemble those of
//! tournament games.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, BufWriter, ErrorKind, Write},
    process::ExitCode,
};

use clap::Parser;
use polybook::position::{key, read_move};
use rayon::prelude::*;
use shakmaty::{Chess, Color, KnownOutcome, Move, Outcome, Position, Role, attacks, san::SanPlus};

/// Make games to measure with
#[derive(Parser)]
struct Args {
    /// How many games
    #[arg(long, value_name = "N", default_value_t = 1000)]
    games: u64,

    /// The seed of the random numbers: runs with the same seed make the same games
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Tags like those of a site where people play online: time controls, ids, ratings of all strengths
    #[arg(long)]
    online: bool,

    /// The most half-moves of a game, for questions about openings
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    plies: u64,
}

/// The number of games that all threads generate at a time.
const BLOCK: u64 = 4096;

fn main() -> ExitCode {
    let args = Args::parse();
    let tree = Tree::parse(include_str!("../data/openings.txt"));
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for first in (0..args.games).step_by(BLOCK as usize) {
        let last = (first + BLOCK).min(args.games);
        let texts: Vec<String> = (first..last)
            .into_par_iter()
            .map(|number| game(&tree, &args, number))
            .collect();
        for text in texts {
            match out.write_all(text.as_bytes()) {
                Ok(()) => {}
                Err(err) if err.kind() == ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
                Err(err) => {
                    eprintln!("synth_pgn: {err}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    match out.flush() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The moves of each position in the tree, with their frequencies.
struct Tree(HashMap<u64, Vec<(Move, u32)>>);

impl Tree {
    /// Parses lines with a ply, a move and a number of games. Each move is below the move that it answers.
    fn parse(text: &str) -> Tree {
        let mut moves: HashMap<u64, Vec<(Move, u32)>> = HashMap::new();
        let mut line = vec![Chess::default()];
        for row in text.lines() {
            let mut words = row.split(' ');
            let mut word = || words.next().expect("three words a line");
            let ply: usize = word().parse().expect("a ply");
            let (san, count) = (word(), word().parse().expect("a count"));
            line.truncate(ply + 1);
            let mut pos = line[ply].clone();
            let mv = read_move(&pos, san.as_bytes()).expect("a legal move");
            moves.entry(key(&pos)).or_default().push((mv, count));
            pos.play_unchecked(mv);
            line.push(pos);
        }
        Tree(moves)
    }

    fn draw(&self, pos: &Chess, random: &mut Random) -> Option<Move> {
        let moves = self.0.get(&key(pos))?;
        let total: u64 = moves.iter().map(|(_, count)| u64::from(*count)).sum();
        let mut left = random.below(total);
        for (mv, count) in moves {
            match left.checked_sub(u64::from(*count)) {
                Some(rest) => left = rest,
                None => return Some(*mv),
            }
        }
        None
    }
}

/// The random number generator SplitMix64, whose sequence is fixed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// Returns a game with its tags.
fn game(tree: &Tree, args: &Args, number: u64) -> String {
    let mut random = Random(
        args.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number.wrapping_mul(0xd134_2543_de82_ef95),
    );
    // Most games end between move 20 and move 60, some much later.
    let length = 30 + random.below(50) + random.below(50) + random.below(3) * random.below(60);
    let length = length.min(args.plies);
    let mut pos = Chess::default();
    let mut words = Vec::new();
    let mut in_tree = true;
    while (words.len() as u64) < length && !pos.is_game_over() {
        let drawn = if in_tree {
            tree.draw(&pos, &mut random)
        } else {
            None
        };
        in_tree = drawn.is_some();
        let mv = drawn.unwrap_or_else(|| plausible(&pos, &mut random));
        words.push(SanPlus::from_move_and_play_unchecked(&mut pos, mv).to_string());
    }
    let result = result(&pos, &mut random);
    let mut text = if args.online {
        online_tags(result, number, &mut random)
    } else {
        tags(&words, result, number, &mut random)
    };
    put_moves(&mut text, &words, result);
    text
}

/// Returns the best of a few legal moves, judged by the material that it wins, or loses to the next move.
fn plausible(pos: &Chess, random: &mut Random) -> Move {
    let moves = pos.legal_moves();
    (0..6)
        .map(|_| moves[random.below(moves.len() as u64) as usize])
        .max_by_key(|mv| gain(pos, *mv))
        .expect("a game that is not over has moves")
}

fn value(role: Role) -> i32 {
    match role {
        Role::Pawn => 1,
        Role::Knight | Role::Bishop => 3,
        Role::Rook => 5,
        Role::Queen => 9,
        Role::King => 20,
    }
}

fn gain(pos: &Chess, mv: Move) -> i32 {
    let won = mv.capture().map_or(0, value) + mv.promotion().map_or(0, value);
    let to = mv.to();
    let occupied = pos.board().occupied();
    let is_taken = pos.board().attacks_to(to, !pos.turn(), occupied).any();
    let by_pawn = (attacks::pawn_attacks(pos.turn(), to) & pos.their(Role::Pawn)).any();
    let lost = match mv.role() {
        Role::Pawn => 0,
        role if by_pawn || is_taken => value(role) - i32::from(!by_pawn),
        _ => 0,
    };
    3 * won - 2 * lost
}

fn result(pos: &Chess, random: &mut Random) -> &'static str {
    match pos.outcome() {
        Outcome::Known(KnownOutcome::Decisive { winner }) => winner.fold_wb("1-0", "0-1"),
        Outcome::Known(KnownOutcome::Draw) => "1/2-1/2",
        Outcome::Unknown => {
            let material = |color: Color| -> i32 {
                pos.board()
                    .material_side(color)
                    .zip_role()
                    .into_iter()
                    .map(|(role, count)| {
                        if role == Role::King {
                            0
                        } else {
                            value(role) * i32::from(count)
                        }
                    })
                    .sum()
            };
            let ahead = material(Color::White) - material(Color::Black);
            // White wins somewhat more often. A side that is far ahead nearly always wins.
            match ahead + random.below(9) as i32 - 4 {
                3.. => "1-0",
                ..=-4 => "0-1",
                _ => "1/2-1/2",
            }
        }
    }
}

/// Returns the tags of a tournament game.
fn tags(words: &[String], result: &str, number: u64, random: &mut Random) -> String {
    let mut text = String::with_capacity(1200);
    let player = |random: &mut Random| {
        let name = random.below(20_000);
        let initial = char::from(b'A' + (name % 26) as u8);
        (
            format!("Player{name:05}, {initial}"),
            1800 + (name * 7919) % 1000,
        )
    };
    let (white, white_elo) = player(random);
    let (black, black_elo) = player(random);
    let event = number / 400;
    let (year, month, day) = (1990 + event % 35, 1 + event % 12, 1 + number % 28);
    let _ = write!(
        text,
        "[Event \"Open {event}\"]\n[Site \"Synthetic\"]\n[Date \"{year}.{month:02}.{day:02}\"]\n\
         [Round \"{}.{}\"]\n[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n\
         [WhiteElo \"{white_elo}\"]\n[BlackElo \"{black_elo}\"]\n[PlyCount \"{}\"]\n\
         [EventDate \"{year}.{month:02}.??\"]\n[Source \"synth_pgn\"]\n\n",
        1 + number % 400 / 45,
        1 + number % 45,
        words.len()
    );
    text
}

/// Returns the tags of an online game, played in one of ten years.
fn online_tags(result: &str, number: u64, random: &mut Random) -> String {
    const CONTROLS: [(&str, &str); 12] = [
        ("Bullet", "60+0"),
        ("Bullet", "60+0"),
        ("Bullet", "120+1"),
        ("Blitz", "180+0"),
        ("Blitz", "180+2"),
        ("Blitz", "300+0"),
        ("Blitz", "300+3"),
        ("Rapid", "600+0"),
        ("Rapid", "600+5"),
        ("Classical", "1800+20"),
        ("UltraBullet", "15+0"),
        ("Correspondence", "-"),
    ];
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(1200);
    let (speed, control) = CONTROLS[random.below(CONTROLS.len() as u64) as usize];
    let mode = if random.below(8) == 0 {
        "Casual"
    } else {
        "Rated"
    };
    let id: String = (0..8)
        .map(|_| char::from(DIGITS[random.below(62) as usize]))
        .collect();
    let month = number / 512 % 120;
    let date = format!(
        "{}.{:02}.{:02}",
        2015 + month / 12,
        1 + month % 12,
        1 + number % 28
    );
    // Players meet opponents of similar strength.
    let strength = 700 + random.below(700) + random.below(700) + random.below(700);
    let player = |random: &mut Random| {
        let name = random.below(200_000);
        (format!("player{name:06}"), strength + random.below(200))
    };
    let (white, white_elo) = player(random);
    let (black, black_elo) = player(random);
    let _ = write!(
        text,
        "[Event \"{mode} {speed} game\"]\n[Site \"https://lichess.org/{id}\"]\n[Date \"{date}\"]\n\
         [White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n[UTCDate \"{date}\"]\n\
         [WhiteElo \"{white_elo}\"]\n[BlackElo \"{black_elo}\"]\n[ECO \"{}{:02}\"]\n\
         [TimeControl \"{control}\"]\n\n",
        char::from(b'A' + random.below(5) as u8),
        random.below(100),
    );
    text
}

/// Appends moves in lines of up to 80 characters.
fn put_moves(text: &mut String, words: &[String], result: &str) {
    let mut column = 0;
    let mut put = |text: &mut String, word: &str| {
        if column + word.len() + 1 > 80 {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    };
    for (ply, word) in words.iter().enumerate() {
        if ply % 2 == 0 {
            put(text, &format!("{}. {word}", ply / 2 + 1));
        } else {
            put(text, word);
        }
    }
    put(text, result);
    text.push_str("\n\n");
}
