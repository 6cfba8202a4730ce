//! Requests that no well-behaved client sends: the server answers or refuses each of them, and keeps running.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    process::Stdio,
    thread,
    time::Duration,
};

#[cfg(unix)]
use crate::common::ok;
use crate::common::{sample, served::Served, temp, until};
use fastrand::Rng;
use polybook::serve::Parameters;
use tempfile::TempDir;

/// The statuses that the API documents, and those for requests that are not HTTP or too long.
const STATUSES: [u16; 9] = [200, 304, 400, 404, 405, 414, 421, 431, 503];

fn famous() -> (TempDir, Served) {
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", sample("famous.pgn"), "--no-cache"]);
    (dir, served)
}

fn pick<'a>(dice: &mut Rng, from: &[&'a str]) -> &'a str {
    from[dice.usize(..from.len())]
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

fn request(dice: &mut Rng) -> Vec<u8> {
    let mut text = String::from(pick(
        dice,
        &["GET", "GET", "GET", "HEAD", "POST", "G\u{e9}T", ""],
    ));
    text.push(' ');
    text.push_str(pick(dice, &PATHS));
    for number in 0..dice.usize(..5) {
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(pick(dice, &Parameters::names()));
        text.push('=');
        text.push_str(pick(dice, &VALUES));
    }
    text.push_str(pick(
        dice,
        &[
            " HTTP/1.1\r\n",
            " HTTP/1.1\r\n",
            " HTTP/1.0\r\n",
            " HTTP/9\r\n",
            "\r\n",
            "",
        ],
    ));
    text.push_str(pick(
        dice,
        &[
            "Host: localhost\r\n",
            "Host: localhost\r\n",
            "Host: evil\r\n",
            "Host\r\n",
            "",
        ],
    ));
    if dice.usize(..9) == 0 {
        text.push_str(&"X-Long: y\r\n".repeat(dice.usize(..3000)));
    }
    text.push_str(pick(
        dice,
        &[
            "Connection: close\r\n\r\n",
            "Connection: close\r\n\r\n",
            "\r\n\r\n\0\0",
        ],
    ));
    let mut bytes = text.into_bytes();
    if dice.usize(..4) == 0 {
        let at = dice.usize(..bytes.len());
        bytes[at] = dice.u8(..);
    }
    bytes
}

/// Sends a request that must always get the same answer. The unknown parameter `number` makes it a new request, which
/// the cache cannot answer.
fn control(served: &Served, number: u64) -> Vec<u8> {
    let path = format!("/lichess?play=e2e4,e7e5&moves=3&number={number}");
    served.get(&path).body
}

#[test]
fn malformed_requests_are_refused_and_change_nothing() {
    const THREADS: u64 = 8;
    let (_dir, mut served) = famous();
    let expected = control(&served, 0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (served, expected) = (&served, &expected);
            scope.spawn(move || {
                let mut dice = Rng::with_seed(thread);
                for number in 0..10_000 / THREADS {
                    let request = request(&mut dice);
                    let mut stream = served.connect();
                    let _ = stream.write_all(&request);
                    // The server must drop an incomplete request at once.
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
                        assert_eq!(&control(served, number * THREADS + thread), expected);
                    }
                }
            });
        }
    });
    assert!(served.is_alive());
}

#[test]
fn requests_that_are_too_long_are_refused() {
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

/// Opens connections that send `said` and then nothing more.
fn hold(served: &Served, count: usize, said: &[u8]) -> Vec<TcpStream> {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = served.connect();
        stream.write_all(said).unwrap();
        held.push(stream);
    }
    held
}

/// Returns `true` if a connection is open but has received nothing.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|err| err.kind() == ErrorKind::WouldBlock)
}

#[test]
fn idle_and_slow_connections_do_not_stop_the_answers() {
    let (_dir, served) = famous();
    let expected = control(&served, 0);
    let _idle = hold(&served, 350, b"");
    let slow = hold(&served, 350, b"GET /lichess HTTP/1.1\r\nHost: loc");
    // Some clients never read their answers.
    let asked = "GET /lichess HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let _deaf = hold(&served, 300, asked.repeat(20).as_bytes());
    for number in 1..20 {
        assert_eq!(control(&served, number), expected);
    }
    // Connections whose request does not arrive in time are closed.
    let mut first = slow.into_iter().next().unwrap();
    first
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
}

#[cfg(target_os = "linux")]
#[test]
fn work_of_clients_that_are_gone_is_not_begun() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    // Writing a history of ten thousand years without long gaps takes long.
    let game = |year: u32| format!("[Date \"{year:04}.01.01\"]\n\n1. e4 *\n\n");
    let text: String = (1..10_000).step_by(20).map(game).collect();
    std::fs::write(dir.path().join("far.pgn"), text).unwrap();
    let served = Served::start(dir.path(), "-q --no-cache far.pgn");
    // An unknown parameter makes a request that the cache cannot answer.
    let path = |number: usize| format!("/lichess?history=true&number={number}");
    let ask = |number| {
        let before = served.cpu_ticks();
        assert_eq!(served.get(&path(number)).status, 200);
        served.cpu_ticks() - before
    };
    let of_twenty: u64 = (0..20).map(ask).sum();
    // Some clients send further requests before the first answer.
    for (clients, requests) in [(300, 1), (1000, 1), (300, 3)] {
        let first = 10_000 * (clients + requests);
        let gone: Vec<TcpStream> = (0..clients)
            .map(|client| {
                let asked = (0..requests).map(|request| {
                    let path = path(first + client * requests + request);
                    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
                });
                let mut stream = served.connect();
                let asked: String = asked.collect();
                stream.write_all(asked.as_bytes()).unwrap();
                stream
            })
            .collect();
        drop(gone);
        // The answer to this request comes after the work for the earlier ones.
        let spent = ask(first - 1);
        let of_all = of_twenty * (clients * requests) as u64 / 20;
        assert!(spent < of_all / 2, "{clients}: {spent} of {of_all} ticks");
    }
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    const REQUESTS: usize = 3000;
    let (_dir, served) = famous();
    let size = served.get("/games?limit=45").body.len();
    // This is more than the server keeps in memory for slow readers.
    assert!(size * REQUESTS > 16 << 20, "{size}");
    let asked = "GET /games?limit=45 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(REQUESTS);
    let mut deaf = served.connect();
    deaf.write_all(asked.as_bytes()).unwrap();
    deaf.set_nonblocking(true).unwrap();
    until("the connection is closed", || {
        let written = deaf.write(b"GET");
        written.is_err_and(|err| err.kind() != ErrorKind::WouldBlock)
    });
    deaf.set_nonblocking(false).unwrap();
    let mut answers = Vec::new();
    if let Err(err) = deaf.read_to_end(&mut answers) {
        assert_eq!(err.kind(), ErrorKind::ConnectionReset);
    }
    assert!(answers.len() < size * REQUESTS);
}

#[test]
fn a_log_that_nobody_reads_does_not_stop_the_answers() {
    let dir = temp();
    let served = Served::start_with(
        dir.path(),
        args!["-v", "--no-cache", sample("famous.pgn")],
        |command| {
            command.stderr(Stdio::piped());
        },
    );
    // This is many times the size of a pipe's buffer.
    let padding = "x".repeat(4000);
    for number in 0..200 {
        let path = format!("/lichess?moves=0&{number}{padding}");
        assert_eq!(served.get(&path).status, 200);
    }
}

#[test]
fn one_address_does_not_take_all_connections_of_a_server_for_others() {
    let dir = temp();
    let served = Served::start(
        dir.path(),
        args![
            "-q",
            "--no-cache",
            sample("famous.pgn"),
            "--listen",
            "0.0.0.0:0"
        ],
    );
    let mut held = hold(&served, 256, b"");
    let refused = |mut stream: TcpStream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        match stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(err) => err.kind() == ErrorKind::ConnectionReset,
        }
    };
    assert!(refused(served.connect()));
    // The connection was not closed because of its silence: an older silent connection is still open.
    assert!(is_silent(&mut held[255]));
    held.truncate(100);
    crate::common::until("the others have their places back", || {
        let mut stream = served.connect();
        let asked = b"GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        // A refused connection may break at once.
        let _ = stream.write_all(asked);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.1 200")
    });
}

/// Writes games with a comment of 1 MiB each.
fn large_games(dir: &std::path::Path, games: usize) {
    let comment = "x".repeat(1 << 20);
    let game = |number| format!("[Round \"{number}\"]\n\n1. e4 {{{comment}}} *\n\n");
    let text: String = (0..games).map(game).collect();
    std::fs::write(dir.join("large.pgn"), text).unwrap();
}

#[cfg(target_os = "linux")]
const PAGE_OF_TEXTS: &str =
    "GET /games?limit=200 HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-chess-pgn\r\n\r\n";

#[test]
fn a_page_of_large_games_ends_early_and_the_next_goes_on() {
    const GAMES: usize = 12;
    let dir = temp();
    large_games(dir.path(), GAMES);
    let served = Served::start(dir.path(), "-q --no-cache large.pgn");
    let rounds = |skip: usize| {
        let path = format!("/games?sort=id&limit=200&skip={skip}");
        let reply = served.ask("GET", &path, "Accept: application/x-chess-pgn\r\n");
        assert_eq!(reply.status, 200, "{}", reply.text());
        let text = reply.text();
        let lines = text.lines().filter(|line| line.starts_with("[Round "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut found = rounds(0);
    assert_eq!(found.len(), 7);
    found.extend(rounds(7));
    found.sort();
    found.dedup();
    assert_eq!(found.len(), GAMES);
}

#[cfg(target_os = "linux")]
#[test]
fn texts_that_nobody_reads_do_not_fill_the_memory() {
    const CLIENTS: usize = 60;
    let dir = temp();
    large_games(dir.path(), 9);
    let served = Served::start(dir.path(), "-q --no-cache large.pgn");
    let _deaf = hold(&served, CLIENTS, PAGE_OF_TEXTS.as_bytes());
    let (mut number, mut since_growth, mut last_peak) = (0, 0, 0);
    until("the memory stops growing", || {
        number += 1;
        assert_eq!(served.get(&format!("/lichess?moves={number}")).status, 200);
        let peak = served.peak_memory();
        since_growth = if peak > last_peak {
            0
        } else {
            since_growth + 1
        };
        last_peak = peak;
        since_growth == 500
    });
    // The pages of all clients together have 480 MiB.
    let peak = served.peak_memory();
    assert!(peak < 300 << 20, "{peak}");
}

/// Connects from another address than `Served::connect`, if the machine has one.
#[cfg(target_os = "linux")]
fn other_address(served: &Served) -> Option<TcpStream> {
    let port = served.address.port();
    let stream = TcpStream::connect((std::net::Ipv6Addr::LOCALHOST, port)).ok()?;
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    Some(stream)
}

#[cfg(all(feature = "compression", target_os = "linux"))]
#[test]
fn one_address_does_not_take_all_readers_of_texts_for_others() {
    let dir = temp();
    let text = std::fs::read(sample("selfplay.pgn")).unwrap();
    packed_games(dir.path(), [&text[..]]);
    let args = "-q --no-cache packed.pgn.gz --listen [::]:0";
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        crate::common::skip("this machine has no IPv6");
        return;
    }
    let mut served = Served::start(dir.path(), args);
    served.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    // Each request decompresses the file again for each of its games.
    let mut reading = hold(&served, 200, PAGE_OF_TEXTS.as_bytes());
    let mut other = other_address(&served).expect("the server listens at all addresses");
    let asked = "GET /game/00000000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    other.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The answer did not wait for all readers of texts.
    assert!(reading.iter_mut().any(is_silent));
}

/// Starts a server like [`Served::start`], but limits its number of open files.
#[cfg(target_os = "linux")]
fn start_with_files(
    dir: &std::path::Path,
    args: impl crate::common::Arguments,
    files: u32,
) -> Served {
    Served::start_with(dir, args, |command| {
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", &format!("ulimit -n {files} && exec \"$@\""), "sh"])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(dir)
            .env("HOME", dir)
            .stdout(Stdio::piped());
        *command = limited;
    })
}

#[cfg(target_os = "linux")]
#[test]
fn one_address_does_not_take_all_connections_where_open_files_are_few() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        crate::common::skip("this machine has no IPv6");
        return;
    }
    let dir = temp();
    let listen = "[::]:0";
    let args = args!["-q", sample("famous.pgn"), "--no-cache", "--listen", listen];
    let mut served = start_with_files(dir.path(), args, 512);
    served.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let mut idle = hold(&served, 200, b"");
    let mut other = other_address(&served).expect("the server listens at all addresses");
    let asked = "GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    other.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The connections were not closed because of their silence.
    assert!(is_silent(&mut idle[0]));
}

#[cfg(target_os = "linux")]
#[test]
fn idle_connections_leave_open_files_for_the_games() {
    let dir = temp();
    let args = args!["-q", sample("famous.pgn"), "--no-cache"];
    let served = start_with_files(dir.path(), args, 256);
    // A connection that was accepted before sends a request while the others are idle. The operating system queues 128
    // further connections.
    let mut stream = served.connect();
    let before = served.open_files();
    let _idle = hold(&served, 150, b"");
    let mut last = 0;
    until("the server accepts no further connection", || {
        let is_stable = last == served.open_files();
        last = served.open_files();
        is_stable && last > before
    });
    let asked = b"GET /games HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-chess-pgn\r\nConnection: close\r\n\r\n";
    stream.write_all(asked).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Only root can start a program as a user without other threads.
#[cfg(target_os = "linux")]
#[test]
fn commands_that_get_no_threads_say_so_and_end() {
    use std::{
        fs,
        io::{BufRead as _, BufReader},
        os::unix::fs::PermissionsExt as _,
        process::Command,
    };

    let dir = temp();
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(dir.path(), all).unwrap();
    fs::copy(sample("famous.pgn"), dir.path().join("games.pgn")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_polybook"), dir.path().join("polybook")).unwrap();
    ok(
        dir.path(),
        "make-book -q games.pgn --min-game 1 --explorer index --obs games.obs.db3",
    );
    let with_threads = |threads: usize, line: &str| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
            .args(["prlimit", &format!("--nproc={threads}"), "./polybook"])
            .args(line.split(' '))
            .env("HOME", dir.path())
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let version = with_threads(100, "--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        crate::common::leave_out("this user cannot start a program as another");
        return;
    }
    for line in [
        "make-book -q games.pgn --min-game 1 --leveldb new --bin new.bin --counts counts --threads 2 --force",
        "convert -q games.obs.db3 converted.bin --threads 2",
        "show index e4",
        "serve -v index --threads 3 --listen 127.0.0.1:0",
        "serve --no-cache games.pgn --threads 2 --listen 127.0.0.1:0 -q",
    ] {
        let is_server = line.starts_with("serve");
        let mut failed = 0;
        for threads in 1..30 {
            let mut child = with_threads(threads, line).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut first = String::new();
            out.read_line(&mut first).unwrap();
            let serves = is_server && !first.is_empty();
            if serves {
                let address = first.trim().trim_start_matches("http://");
                let mut answer = String::new();
                // On a busy machine, the index may not be ready yet.
                while answer.is_empty() || answer.contains("retry-after: 1") {
                    let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
                    let asked =
                        b"GET /lichess HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                    stream.write_all(asked).unwrap();
                    answer.clear();
                    let _ = stream.read_to_string(&mut answer);
                }
                assert!(answer.starts_with("HTTP/1.1 200"), "{threads}: {answer}");
                crate::common::send_signal(child.id(), rustix::process::Signal::TERM);
            }
            let output = child.wait_with_output().unwrap();
            let status = output.status.code();
            let text = String::from_utf8_lossy(&output.stderr);
            match (serves, status) {
                (true, Some(143)) => break,
                (false, Some(0)) if !is_server => break,
                _ => {}
            }
            assert_eq!(status, Some(1), "{threads}, {line}: {text}");
            let is_clear = text.lines().count() == 1 && !text.contains("internal error");
            assert!(is_clear, "{threads}, {line}: {text}");
            failed += 1;
        }
        assert!((1..29).contains(&failed), "{line}: {failed}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn reading_games_without_tags_takes_no_quadratic_time() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    const GAMES: usize = 60_000;
    let dir = temp();
    let game = |number: usize| format!("1. e4 e5 {{{number}}} 2. Nf3 *\n");
    let text: String = (0..GAMES).map(game).collect();
    std::fs::write(dir.path().join("bare.pgn"), text).unwrap();
    let served = Served::start(dir.path(), "-q --no-cache bare.pgn");
    let accept = "Accept: application/x-chess-pgn\r\n";
    let before = served.cpu_ticks();
    let page = served.ask("GET", "/games?sort=recent&limit=200&skip=10000", accept);
    assert_eq!(page.status, 200, "{}", page.text());
    let expected: Vec<String> = (0..200).map(|place| game(GAMES - 10_001 - place)).collect();
    let found = page.text().replace("\n\n", "\n");
    assert_eq!(found, expected.concat());
    for number in [0, 1, GAMES / 2, GAMES - 1] {
        assert_eq!(
            served.get(&format!("/game/{number:08}")).text(),
            game(number)
        );
    }
    // A tick is a hundredth of a second.
    let spent = served.cpu_ticks() - before;
    assert!(spent < 500, "{spent}");
}

/// Writes `packed.pgn.gz`. To read one of its games, the file must be decompressed up to the game.
#[cfg(feature = "compression")]
fn packed_games<'a>(dir: &std::path::Path, texts: impl IntoIterator<Item = &'a [u8]>) {
    let file = std::fs::File::create(dir.join("packed.pgn.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    for text in texts {
        packed.write_all(text).unwrap();
    }
    packed.finish().unwrap();
}

#[cfg(feature = "compression")]
#[test]
fn games_that_take_long_to_read_are_given_up() {
    use bzip2::{Compression, write::BzEncoder};
    if !crate::common::runs_slow_tests() {
        return;
    }

    let dir = temp();
    // Ten megabytes that decompress slowly, followed by 200 games. Each game requires decompressing them again.
    let mut dice = Rng::with_seed(1);
    let mut text = String::new();
    for _ in 0..100 {
        let comment: String = (0..100_000).map(|_| dice.alphanumeric()).collect();
        text += &format!("[White \"A\"]\n\n1. d4 {{{comment}}} *\n\n");
    }
    let last = "[White \"A\"]\n\n1. e4 *\n\n";
    text += &last.repeat(200);
    let file = std::fs::File::create(dir.path().join("packed.pgn.bz2")).unwrap();
    let mut packed = BzEncoder::new(file, Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap();
    let served = Served::start(dir.path(), "-q --no-cache packed.pgn.bz2");
    let accept = "Accept: application/x-chess-pgn\r\n";
    let page = served.ask("GET", "/games?sort=recent&limit=200", accept);
    assert_eq!(page.status, 503);
    let advice = "takes too long: request fewer games, or serve an uncompressed PGN file";
    assert!(page.text().contains(advice), "{}", page.text());
    assert_eq!(served.get("/game/00000299").text(), last);
    std::fs::write(dir.path().join("plain.pgn"), text).unwrap();
    let served = Served::start(dir.path(), "-q --no-cache plain.pgn");
    let page = served.ask("GET", "/games?sort=recent&limit=200", accept);
    assert_eq!(page.status, 200);
}

#[cfg(feature = "compression")]
#[test]
fn games_that_are_read_do_not_hold_up_counts() {
    let dir = temp();
    let text = std::fs::read(sample("selfplay.pgn")).unwrap();
    packed_games(dir.path(), [&text[..]]);
    let served = Served::start(dir.path(), args!["-q", "--no-cache", "packed.pgn.gz"]);
    // Each request decompresses the file again for each of its games.
    let asked = "GET /games?limit=200 HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-chess-pgn\r\nConnection: close\r\n\r\n";
    let mut reading = hold(&served, 300, asked.as_bytes());
    let reply = served.get("/lichess");
    assert_eq!(reply.status, 200, "{}", reply.text());
    // Requests that get no permit are refused.
    let mut refused = String::new();
    let last = reading.last_mut().unwrap();
    last.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("try again later"), "{refused}");
    // As the answer advises, the client tries again later.
    drop(reading);
    let accept = "Accept: application/x-chess-pgn\r\n";
    until("the other requests end", || {
        served.ask("GET", "/games?limit=1", accept).status == 200
    });
}

#[cfg(unix)]
#[test]
fn an_index_that_is_replaced_is_answered_from_as_it_was() {
    let dir = temp();
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let make = |pgn: &std::path::Path| {
        ok(
            dir.path(),
            args!["make-book", "-q", "--force", "--explorer", "idx", pgn],
        );
    };
    make(&famous);
    let served = Served::start(dir.path(), "idx");
    let expected = control(&served, 0);
    thread::scope(|scope| {
        let replacing = scope.spawn(|| make(&selfplay));
        let mut number = 0;
        until("the index is replaced", || {
            number += 1;
            assert_eq!(control(&served, number), expected);
            replacing.is_finished()
        });
    });
    for play in ["d2d4", "c2c4", "g1f3,d7d5"] {
        assert_eq!(served.get(&format!("/lichess?play={play}")).status, 200);
    }
    let new = Served::start(dir.path(), "idx");
    assert_ne!(control(&new, 0), expected);
}
