//! Requests that no well-meaning program makes: the server answers or refuses each, and goes on.

#![cfg(feature = "serve")]

mod common;

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use common::{ok, sample, served::Served, temp, until};
use tempfile::TempDir;

/// The statuses that the contract names, and those of requests that are no HTTP or too long.
const STATUSES: [u16; 9] = [200, 304, 400, 404, 405, 414, 421, 431, 503];

fn famous() -> (TempDir, Served) {
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", sample("famous.pgn"), "--no-cache"]);
    (dir, served)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const PATHS: [&str; 14] = [
    "/lichess",
    "/masters",
    "/player",
    "/games",
    "/book",
    "/about",
    "/read",
    "/game/00000000",
    "/masters/pgn/%00",
    "/game/../../etc/passwd",
    "/../Cargo.toml",
    "/style.css/..",
    "//",
    "/%2e%2e/%2e%2e/etc/passwd",
];
const NAMES: [&str; 22] = [
    "variant",
    "fen",
    "play",
    "source",
    "moves",
    "topGames",
    "recentGames",
    "speeds",
    "ratings",
    "since",
    "until",
    "modes",
    "player",
    "color",
    "opponent",
    "result",
    "eco",
    "event",
    "minPly",
    "history",
    "skip",
    "limit",
];
const VALUES: [&str; 29] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "e2e4",
    "e2e4,e7e5",
    "e2e4,,",
    "e1g1",
    "true",
    "white",
    "chess960",
    "crazyhouse",
    "threeCheck",
    "8/8/8/8/8/8/8/8_w_-_-",
    "4k3/8/8/8/8/8/8/4K3_w_-_-",
    "%ff%fe",
    "%00",
    "%",
    "%zz",
    "2020-01",
    "0000",
    "9999-12",
    "blitz,rapid",
    "P@e4",
    "\u{1f600}",
    "Morphy,+Paul",
    "1-0",
    "B20-B99",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR_w_KQkq_e9_-5_99999999999",
];

fn request(dice: &mut Dice) -> Vec<u8> {
    let mut text = String::from(dice.pick(&["GET", "GET", "GET", "HEAD", "POST", "G\u{e9}T", ""]));
    text.push(' ');
    text.push_str(dice.pick(&PATHS));
    for number in 0..dice.roll(5) {
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(dice.pick(&NAMES));
        text.push('=');
        text.push_str(dice.pick(&VALUES));
    }
    text.push_str(dice.pick(&[
        " HTTP/1.1\r\n",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        " HTTP/9\r\n",
        "\r\n",
        "",
    ]));
    text.push_str(dice.pick(&[
        "Host: localhost\r\n",
        "Host: localhost\r\n",
        "Host: evil\r\n",
        "Host\r\n",
        "",
    ]));
    if dice.roll(9) == 0 {
        text.push_str(&"X-Long: y\r\n".repeat(dice.roll(3000)));
    }
    text.push_str(dice.pick(&[
        "Connection: close\r\n\r\n",
        "Connection: close\r\n\r\n",
        "\r\n\r\n\0\0",
    ]));
    let mut bytes = text.into_bytes();
    if dice.roll(4) == 0 {
        let at = dice.roll(bytes.len());
        bytes[at] = dice.roll(256) as u8;
    }
    bytes
}

/// What is asked again and again, and must always be answered the same.
const CONTROL: &str = "/lichess?play=e2e4,e7e5&moves=3";

#[test]
fn malformed_requests_are_refused_and_change_nothing() {
    const THREADS: u64 = 8;
    let (_dir, mut served) = famous();
    let expected = served.get(CONTROL).body;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (served, expected) = (&served, &expected);
            scope.spawn(move || {
                let mut dice = Dice(thread);
                for number in 0..10_000 / THREADS {
                    let request = request(&mut dice);
                    let mut stream = served.connect();
                    let _ = stream.write_all(&request);
                    // A request that does not end is given up at once.
                    let _ = stream.shutdown(Shutdown::Write);
                    let mut answer = Vec::new();
                    let _ = stream.read_to_end(&mut answer);
                    let text = String::from_utf8_lossy(&answer);
                    let shown = request.escape_ascii();
                    if let Some(status) = text.get(9..12) {
                        let status: u16 = status.parse().unwrap();
                        assert!(STATUSES.contains(&status), "{shown}: {text}");
                    }
                    for secret in ["root:", "[package]", "internal error"] {
                        assert!(!text.contains(secret), "{shown}: {text}");
                    }
                    if number % 50 == 0 {
                        assert_eq!(&served.get(CONTROL).body, expected);
                    }
                }
            });
        }
    });
    assert!(served.is_alive());
}

#[test]
fn what_is_too_long_is_refused() {
    let (_dir, served) = famous();
    let plies = |count: usize| {
        let moves = ["g1f3", "g8f6", "f3g1", "f6g8"].into_iter().cycle();
        moves.take(count).collect::<Vec<_>>().join(",")
    };
    assert_eq!(
        served.get(&format!("/lichess?play={}", plies(600))).status,
        200
    );
    assert_eq!(
        served.get(&format!("/lichess?play={}", plies(601))).status,
        400
    );
    assert!([414, 431].contains(&served.get(&format!("/lichess?play={}", plies(2000))).status));
    let flood = "X-Header: value\r\n".repeat(1000);
    assert_eq!(served.ask("GET", "/lichess", &flood).status, 431);
    assert_eq!(served.get("/lichess").status, 200);
}

/// Connections that say nothing more.
fn hold(served: &Served, count: usize, said: &[u8]) -> Vec<TcpStream> {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = served.connect();
        stream.write_all(said).unwrap();
        held.push(stream);
    }
    held
}

#[test]
fn idle_and_slow_connections_do_not_stop_the_answers() {
    let (_dir, served) = famous();
    let expected = served.get(CONTROL).body;
    let _idle = hold(&served, 350, b"");
    let slow = hold(&served, 350, b"GET /lichess HTTP/1.1\r\nHost: loc");
    // Some never read what they asked for.
    let asked = format!("GET {CONTROL} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let _deaf = hold(&served, 300, asked.repeat(20).as_bytes());
    for _ in 0..20 {
        assert_eq!(served.get(CONTROL).body, expected);
    }
    // Those whose request does not arrive in time are let go.
    let mut first = slow.into_iter().next().unwrap();
    first
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
}

#[cfg(unix)]
#[test]
fn an_index_that_is_replaced_is_answered_from_as_it_was() {
    let dir = temp();
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let make = |pgn: &std::path::Path| {
        ok(
            dir.path(),
            args![
                "make-book",
                "-q",
                "--force",
                "--explorer",
                "--leveldb",
                "idx",
                pgn
            ],
        );
    };
    make(&famous);
    let served = Served::start(dir.path(), "idx");
    let expected = served.get(CONTROL).body;
    thread::scope(|scope| {
        let replacing = scope.spawn(|| make(&selfplay));
        until("the index is replaced", || {
            assert_eq!(served.get(CONTROL).body, expected);
            replacing.is_finished()
        });
    });
    for play in ["d2d4", "c2c4", "g1f3,d7d5"] {
        assert_eq!(served.get(&format!("/lichess?play={play}")).status, 200);
    }
    let new = Served::start(dir.path(), "idx");
    assert_ne!(new.get(CONTROL).body, expected);
}
