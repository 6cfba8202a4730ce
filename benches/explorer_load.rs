//! Measures how many requests per second a running `polybook serve` answers, and how long they take.
//!
//! ```sh
//! polybook serve games.idx &
//! cargo run --release --example explorer_load -- 127.0.0.1:8040 games.pgn [SECONDS [CONNECTIONS [PID [RATE]]]]
//! ```
//!
//! Four of five requests are for opening positions up to 12 half-moves deep, the fifth is for a position 20 to 60 half-moves
//! deep. All positions come from games of the PGN file. PID is the process id of the server, or 0; with it, the memory of
//! the server is printed before and after. RATE limits the requests per second; then a tenth of the requests has filters and
//! a history, and the time of an answer starts when its request was due.

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use polybook::{
    pgn::{GameReader, Token},
    position::{BookMove, read_move},
};
use shakmaty::{Chess, Position};

/// The number of bytes of the PGN file from which lines are taken.
const READ: u64 = 8 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, pgn, rest @ ..] = &args[..] else {
        return Err("arguments: ADDRESS PGN [SECONDS [CONNECTIONS [PID [RATE]]]]".into());
    };
    let number = |at: usize, default: u64| rest.get(at).map_or(Ok(default), |text| text.parse());
    let (seconds, connections, rate) = (number(0, 10)?, number(1, 32)?, number(3, 0)?);
    let every = (rate > 0).then(|| Duration::from_secs_f64(connections as f64 / rate as f64));
    let lines = Arc::new(lines(pgn)?);
    let memory = || rest.get(2).and_then(|pid| resident(pid));
    let before = memory();
    let end = Instant::now() + Duration::from_secs(seconds);
    let workers: Vec<_> = (0..connections)
        .map(|seed| {
            let (address, lines) = (address.clone(), Arc::clone(&lines));
            thread::spawn(move || ask(&address, &lines, end, every, Rng::with_seed(seed)))
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.join().expect("a worker does not panic")?);
    }
    times.sort_unstable();
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize].as_secs_f64() * 1e3;
    println!(
        "{} answers in {seconds} s over {connections} connections: {} a second",
        times.len(),
        times.len() as u64 / seconds
    );
    println!(
        "p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    if let (Some(before), Some(after)) = (before, memory()) {
        println!("memory {before} KiB before, {after} KiB after");
    }
    Ok(())
}

/// Returns the moves of games, joined by commas as in a request.
fn lines(path: &str) -> io::Result<Vec<Vec<String>>> {
    let mut text = Vec::new();
    File::open(path)?.take(READ).read_to_end(&mut text)?;
    let mut games = GameReader::new(&text);
    let mut lines = Vec::new();
    while games.next_game() {
        let mut pos = Chess::default();
        let mut line = Vec::new();
        while let Token::Move { text, .. } = games.next_token() {
            let Ok(mv) = read_move(&pos, text) else { break };
            line.push(BookMove::from(mv).to_string());
            pos.play_unchecked(mv);
        }
        games.skip_moves();
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(io::Error::other("no games"));
    }
    Ok(lines)
}

/// Sends requests over one connection, one after the other or each when it is due. Returns the time of each answer.
fn ask(
    address: &str,
    lines: &[Vec<String>],
    end: Instant,
    every: Option<Duration>,
    mut dice: Rng,
) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut times = Vec::new();
    let mut due = Instant::now() + every.unwrap_or_default().mul_f64(dice.f64());
    while Instant::now() < end {
        let line = &lines[dice.usize(..lines.len())];
        let plies = if dice.usize(..5) == 0 {
            20 + dice.usize(..41)
        } else {
            dice.usize(..13)
        };
        let play = line[..plies.min(line.len())].join(",");
        let more = match every {
            Some(_) if dice.usize(..10) == 0 => {
                "&speeds=blitz,rapid&ratings=1600,1800&history=true"
            }
            _ => "",
        };
        let request = format!("GET /lichess?play={play}{more} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let start = match every {
            Some(_) if due >= end => break,
            Some(every) => {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                due += every;
                due - every
            }
            None => Instant::now(),
        };
        stream.write_all(request.as_bytes())?;
        read_answer(&mut answers)?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn read_answer(answers: &mut impl BufRead) -> io::Result<()> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other(format!("not an answer: {line}")));
    }
    let mut length = 0;
    while line.trim_end() != "" {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
        answers.read_line(&mut line)?;
    }
    io::copy(&mut answers.take(length), &mut io::sink())?;
    Ok(())
}

/// Returns the memory of a process in KiB, or `None` if the operating system does not tell.
fn resident(pid: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
