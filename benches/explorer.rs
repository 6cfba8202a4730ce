//! Measures the explorer: the time to open it, and the times of answers at the starting position and at random positions.
//!
//! Each query is repeated five times and the fastest answer counts, so that other work of the machine does not disturb the
//! results. If an index has no texts of games, for example because it was made from a pipe, request 0 random positions.
//!
//! ```sh
//! cargo run --release --example synth_pgn -- --games 1000000 --online > online.pgn
//! polybook make-book online.pgn --explorer online.idx
//! cargo run --release --example explorer_speed -- online.idx
//! ```

use std::{path::PathBuf, time::Instant};

use clap::Parser;
use polybook::{
    Result,
    explorer::{
        Explorer, GameResult, Line, Page, Query, RatingGroup, Selection, Sort, Speed, Variant,
        View, WantedRating, WantedResult,
    },
    pgn::{GameReader, Token},
    position::read_move,
};
use shakmaty::{Color, Position};

/// Time the answers of the explorer
#[derive(Parser)]
struct Args {
    /// The index, made with make-book --explorer
    index: PathBuf,

    /// How many random positions
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    positions: u64,

    /// How many random combinations of filters at the starting position
    #[arg(long, value_name = "N", default_value_t = 500)]
    combinations: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let before = resident();
    let begin = Instant::now();
    let explorer = Explorer::open([("games".to_owned(), args.index)])?;
    let games = explorer.game_count();
    println!("{games} games opened in {:.1} ms", ms(begin));
    if let (Some(before), Some(after)) = (before, resident()) {
        let bytes = after.saturating_sub(before);
        println!(
            "memory grew by {} MiB, {} bytes a game",
            bytes >> 20,
            bytes / games.max(1)
        );
    }
    let some = explorer.game(games / 2)?;
    let filters = [
        ("none", Selection::default()),
        ("speeds, ratings", online_filters(None)),
        (
            "speeds, ratings, months",
            online_filters(Some(("2016.05", "2020.07"))),
        ),
        (
            "ratings, days",
            Selection {
                min_elo: Some(1500),
                since: "2016.05.03".parse().ok(),
                until: "2021.07.20".parse().ok(),
                ..Selection::default()
            },
        ),
        (
            "a player",
            Selection {
                player: vec![some.white.name],
                exact: true,
                color: Some(Color::White),
                ..Selection::default()
            },
        ),
        (
            "ECO, length, results",
            Selection {
                eco: vec!["B20-C40".parse().expect("a range of codes")],
                min_plies: 60,
                result: vec![WantedResult::Game(GameResult::WhiteWins)],
                ..Selection::default()
            },
        ),
    ];
    for (name, filters) in &filters {
        let query = query(Line::start(Variant::Standard), filters);
        explorer.answer(&query)?;
        let times = (0..20)
            .map(|_| quickest(&explorer, &query))
            .collect::<Result<Vec<_>>>()?;
        report(&format!("start, {name}"), times);
    }
    report_combinations(&explorer, args.combinations)?;
    report_lists(&explorer, &filters)?;
    if args.positions == 0 {
        return Ok(());
    }
    let lines = random_lines(&explorer, args.positions)?;
    for (name, filters) in &filters {
        let times = lines
            .iter()
            .map(|line| quickest(&explorer, &query(line.clone(), filters)));
        report(
            &format!("random, {name}"),
            times.collect::<Result<Vec<_>>>()?,
        );
    }
    Ok(())
}

/// Measures random combinations of filters at the starting position: alone, and some of them with a history by month and
/// with the results of the positions after all moves.
fn report_combinations(explorer: &Explorer, combinations: u64) -> Result<()> {
    if combinations == 0 {
        return Ok(());
    }
    let mut random = Random(7);
    let (mut plain, mut further) = (Vec::new(), Vec::new());
    for _ in 0..combinations {
        let filters = random_filters(explorer, &mut random)?;
        let mut query = query(Line::start(Variant::Standard), &filters);
        plain.push(quickest(explorer, &query)?);
        query.history = random.below(2) == 0;
        query.resulting = !query.history || random.below(2) == 0;
        further.push(quickest(explorer, &query)?);
    }
    report("start, any filters", plain);
    report("start, months, resulting", further);
    Ok(())
}

/// Measures lists of the games of the starting position.
fn report_lists(explorer: &Explorer, all: &[(&str, Selection)]) -> Result<()> {
    for sort in [Sort::Recent, Sort::Rating, Sort::Id] {
        let page = Page {
            skip: 1000,
            limit: 50,
            sort,
            fold_matches: false,
        };
        let mut times = Vec::new();
        for (_, filters) in all {
            let query = query(Line::start(Variant::Standard), filters);
            times.push(quickest_of(|| explorer.games(&query, &page).map(drop))?);
        }
        report(&format!("start, games, sort {sort}"), times);
    }
    Ok(())
}

/// Returns one to five filters that a random game passes.
fn random_filters(explorer: &Explorer, random: &mut Random) -> Result<Selection> {
    let number = random.below(explorer.game_count());
    let game = explorer.game(number)?;
    let header = explorer.header(number)?;
    let mut filters = Selection {
        exact: true,
        ..Selection::default()
    };
    for _ in 0..=random.below(5) {
        match random.below(12) {
            0 => filters.speed = Some(game.speed.into_iter().chain([Speed::Blitz]).collect()),
            1 => {
                filters.rating = Some(
                    RatingGroup::all()
                        .skip(1 + random.below(4) as usize)
                        .map(|group| WantedRating(Some(group)))
                        .collect(),
                )
            }
            2 => filters.since = format!("{}.03.05", game.year - 1).parse().ok(),
            3 => filters.until = format!("{}.07.15", game.year + 1).parse().ok(),
            4 => filters.min_elo = Some(800 + random.below(1200) as u32),
            5 => filters.max_elo = Some(1800 + random.below(1200) as u32),
            6 => filters.player = vec![game.white.name.clone()],
            7 => filters.opponent = vec![game.black.name.clone()],
            8 => {
                filters.result = [GameResult::WhiteWins, GameResult::Draw]
                    .map(WantedResult::Game)
                    .to_vec()
            }
            9 => {
                let codes = ["A00-E99", "B00-C99", "C20-C99"][random.below(3) as usize];
                filters.eco = vec![codes.parse().expect("a range of codes")];
            }
            10 => filters.event = Some(header.tag("Event").into_owned()),
            _ => filters.min_plies = 20 + random.below(80) as u32,
        }
    }
    Ok(filters)
}

/// Returns the memory that this process uses, or `None` if the operating system does not tell.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Returns the filters of Lichess's own explorer.
fn online_filters(months: Option<(&str, &str)>) -> Selection {
    Selection {
        speed: Some(vec![Speed::Blitz, Speed::Rapid]),
        rating: Some(
            [1800, 2000, 2200]
                .map(|floor| WantedRating(Some(RatingGroup::of(floor))))
                .to_vec(),
        ),
        since: months.and_then(|(since, _)| since.parse().ok()),
        until: months.and_then(|(_, until)| until.parse().ok()),
        ..Selection::default()
    }
}

fn query(line: Line, filters: &Selection) -> Query {
    let mut query = Query::new(line, View::Lichess);
    query.filters = filters.clone();
    query
}

fn quickest(explorer: &Explorer, query: &Query) -> Result<f64> {
    quickest_of(|| explorer.answer(query).map(drop))
}

fn quickest_of(mut ask: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut quickest = f64::INFINITY;
    for _ in 0..5 {
        let begin = Instant::now();
        ask()?;
        quickest = quickest.min(ms(begin));
    }
    Ok(quickest)
}

/// A generator of random numbers with a fixed seed.
struct Random(u64);

impl Random {
    /// Returns a number less than `end`.
    fn below(&mut self, end: u64) -> u64 {
        // The constants of MMIX, Knuth's linear congruential generator.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}

fn ms(begin: Instant) -> f64 {
    1000.0 * begin.elapsed().as_secs_f64()
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() * share / 1000).min(times.len() - 1)];
    println!(
        "{name:<32} median {:8.3} ms, 99.9 % {:8.3} ms, worst {:8.3} ms",
        at(500),
        at(999),
        at(1000)
    );
}

/// Returns positions of random games. All depths within a game are equally likely.
fn random_lines(explorer: &Explorer, positions: u64) -> Result<Vec<Line>> {
    let mut random = Random(1);
    let mut lines = Vec::new();
    for _ in 0..positions {
        let text = explorer.text(random.below(explorer.game_count()))?;
        let mut games = GameReader::new(&text);
        games.next_game();
        let mut pos = Variant::Standard.start();
        let mut passed = vec![pos.clone()];
        while let Token::Move { text, .. } = games.next_token() {
            let mv = read_move(&pos, text).expect("the games are legal");
            pos.play_unchecked(mv);
            passed.push(pos.clone());
        }
        let at = random.below(passed.len() as u64) as usize;
        lines.push(Line::at(Variant::Standard, passed.swap_remove(at)));
    }
    Ok(lines)
}
