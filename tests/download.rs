//! Downloads from a server that behaves as the public documents of Lichess and Chess.com say.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use crate::common::{Arguments, polybook_in, temp, until};

/// The number of games that a player of the tests begins on a day.
const GAMES_A_DAY: u64 = 40;

#[derive(Clone)]
struct Game {
    /// The date, such as `2024.01.31`.
    date: String,
    /// The time at which the game began, in seconds since 1970.
    time: u64,
    speed: &'static str,
    is_rated: bool,
    text: String,
}

/// What the server does instead of sending games.
#[derive(Clone)]
enum Fault {
    Status(u16),
    Html,
    Redirect(String),
    Text(String),
}

#[derive(Default)]
struct State {
    lichess: BTreeMap<String, Vec<Game>>,
    chess_com: BTreeMap<String, Vec<Game>>,
    closed: Vec<String>,
    /// The faults of the next requests of games.
    faults: Vec<Fault>,
    /// The connection breaks after each of these numbers of games.
    breaks: Vec<usize>,
    /// The server stops sending after this number of games.
    stall: Option<usize>,
    has_stalled: bool,
    requests: Vec<String>,
    running: usize,
}

/// A server that replaces both services.
struct Services {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Services {
    fn start() -> Services {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let state = Arc::clone(&shared);
                // An error means that the client has closed the connection.
                thread::spawn(move || drop(answer(connection.unwrap(), &state)));
            }
        });
        Services { address, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds players whose games are the first `games` ones of a collection, and returns the server.
    fn with(self, lichess: &[(&str, u64)], chess_com: &[(&str, u64)]) -> Services {
        for (name, games) in lichess {
            let games = (0..*games).map(|number| lichess_game(name, number));
            self.state()
                .lichess
                .insert((*name).to_owned(), games.collect());
        }
        for (name, games) in chess_com {
            let games = (0..*games).map(|number| chess_com_game(name, number));
            self.state()
                .chess_com
                .insert((*name).to_owned(), games.collect());
        }
        self
    }

    fn command(&self, dir: &Path, args: impl Arguments) -> Command {
        let mut command = polybook_in(dir);
        command.arg("download").args(args.list());
        command.env("POLYBOOK_DOWNLOAD_SERVER", &self.address);
        command.env_remove("LICHESS_TOKEN");
        command
    }

    fn run(&self, dir: &Path, args: impl Arguments) -> Output {
        self.command(dir, args).output().unwrap()
    }

    /// Runs a download that must succeed, and returns its messages.
    #[track_caller]
    fn ok(&self, dir: &Path, args: impl Arguments) -> String {
        let output = self.run(dir, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// Runs a download that must fail, and returns the last line of its messages.
    #[track_caller]
    fn fails(&self, dir: &Path, args: impl Arguments) -> String {
        let output = self.run(dir, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{said}");
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with("polybook: ") && !last.contains("internal error"),
            "{said}"
        );
        last.to_owned()
    }

    /// Returns the requests since the last call, and forgets them.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state().requests)
    }
}

/// Returns the number of days from 1970-01-01 to a day.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let is_leap = |year: u64| year.is_multiple_of(4);
    let years = (1970..year)
        .map(|year| 365 + u64::from(is_leap(year)))
        .sum::<u64>();
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    years + lengths[..month as usize - 1].iter().sum::<u64>() + day - 1
}

/// Returns the date, the time of day, and the time in seconds since 1970 of a game.
fn moment(number: u64) -> (String, String, u64) {
    let (day, of_day) = (number / GAMES_A_DAY, number % GAMES_A_DAY);
    let (year, month, day) = (2023 + day / 28 / 12, 1 + day / 28 % 12, 1 + day % 28);
    // Games in pairs begin at the same second.
    let second = of_day / 2 * 2000 + 17;
    let clock = format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    let date = format!("{year}.{month:02}.{day:02}");
    (date, clock, days(year, month, day) * 86_400 + second)
}

fn game(number: u64, is_rated: bool, speed: &'static str, tags: &str) -> Game {
    let (date, clock, time) = moment(number);
    let control = match speed {
        "blitz" => "180+2",
        _ => "600+0",
    };
    let text = format!(
        "{tags}[Result \"1-0\"]\n[Date \"{date}\"]\n[UTCDate \"{date}\"]\n[UTCTime \"{clock}\"]\n[TimeControl \"{control}\"]\n\n\
         1. e4 {{ [%clk 0:03:00] }} 1... e5 {{ [%clk 0:03:00] }} 2. Nf3 1-0\n"
    );
    Game {
        date,
        time,
        speed,
        is_rated,
        text,
    }
}

fn lichess_game(name: &str, number: u64) -> Game {
    let is_rated = !number.is_multiple_of(3);
    let speed = ["blitz", "rapid"][(number % 2) as usize];
    let mode = if is_rated { "Rated" } else { "Casual" };
    let tags = format!(
        "[Event \"{mode} {speed} game\"]\n[Site \"https://lichess.org/{:.2}{number:06}\"]\n[White \"{name}\"]\n\
         [Black \"opponent{number}\"]\n",
        format!("{name}xx")
    );
    game(number, is_rated, speed, &tags)
}

fn chess_com_game(name: &str, number: u64) -> Game {
    let tags = format!(
        "[Event \"Live Chess\"]\n[Site \"Chess.com\"]\n[White \"other{number}\"]\n[Black \"{name}\"]\n\
         [Link \"https://www.chess.com/game/live/{name}{number}\"]\n"
    );
    // These games begin between those of Lichess.
    game(number * 7, true, "rapid", &tags)
}

/// Notes that the client will have the whole answer, or no more of it, so that it may send the next request.
fn has_answered(state: &Mutex<State>) {
    state.lock().unwrap().running -= 1;
}

fn respond(
    mut stream: &TcpStream,
    state: &Mutex<State>,
    status: u16,
    headers: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let length = body.len();
    has_answered(state);
    write!(
        stream,
        "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let mut head = String::new();
    for line in lines.by_ref() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        head += &format!("{line}\n");
    }
    let agent = env!("CARGO_PKG_REPOSITORY");
    assert!(head.contains(agent), "{head}");
    {
        let mut state = state.lock().unwrap();
        state.requests.push(head.clone());
        state.running += 1;
        assert_eq!(state.running, 1, "only one request at a time");
    }
    let target = head.split(' ').nth(1).unwrap().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["api", "user", name] => profile(&stream, state, name),
        ["api", "games", "user", name] => lichess(&stream, state, name, query),
        ["pub", "player", name, "games", "archives"] => archives(&stream, state, name),
        ["pub", "player", name, "games", year, month, "pgn"] => {
            let month = format!("{year}.{month}.");
            chess_com(&stream, state, name, &month, &head)
        }
        ["elsewhere"] => respond(&stream, state, 404, "", b""),
        _ => panic!("{target}"),
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn profile(stream: &TcpStream, state: &Mutex<State>, name: &str) -> std::io::Result<()> {
    let now = state.lock().unwrap();
    let (status, body) = if now.closed.iter().any(|closed| closed == name) {
        (
            200,
            format!("{{\"id\":\"{name}\",\"username\":\"{name}\",\"disabled\":true}}"),
        )
    } else if let Some(games) = now.lichess.get(name) {
        (
            200,
            format!(
                "{{\"id\":\"{name}\",\"count\":{{\"all\":{}}}}}",
                games.len()
            ),
        )
    } else {
        (404, "{\"error\":\"Not found\"}".to_owned())
    };
    drop(now);
    respond(stream, state, status, JSON, body.as_bytes())
}

/// Answers with the next fault, if there is one.
fn fault(stream: &TcpStream, state: &Mutex<State>) -> Option<std::io::Result<()>> {
    let mut now = state.lock().unwrap();
    let fault = (!now.faults.is_empty()).then(|| now.faults.remove(0))?;
    drop(now);
    Some(match fault {
        Fault::Status(status) => respond(stream, state, status, JSON, b"{}"),
        Fault::Html => respond(
            stream,
            state,
            200,
            "Content-Type: text/html\r\n",
            b"<!DOCTYPE html><p>Log in</p>",
        ),
        Fault::Text(text) => respond(stream, state, 200, "", text.as_bytes()),
        Fault::Redirect(to) => respond(stream, state, 302, &format!("Location: {to}\r\n"), b""),
    })
}

/// Streams games, and breaks or stops as the state says.
fn stream_games(
    mut stream: &TcpStream,
    state: &Mutex<State>,
    games: &[Game],
    headers: &str,
) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-chess-pgn\r\n{headers}Transfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n"
    )?;
    for game in games {
        let text = format!("{}\n\n", game.text);
        let mut guard = state.lock().unwrap();
        let now = &mut *guard;
        let is_end = now.breaks.first() == Some(&0);
        let is_stall = now.stall == Some(0);
        for left in now.breaks.iter_mut().take(1).chain(now.stall.iter_mut()) {
            *left = left.saturating_sub(1);
        }
        if is_end {
            now.breaks.remove(0);
        }
        now.has_stalled |= is_stall;
        drop(guard);
        if is_end || is_stall {
            has_answered(state);
            let half = &text[..text.len() / 2];
            write!(stream, "{:x}\r\n{half}\r\n", half.len())?;
            if is_stall {
                until("the test goes on", || state.lock().unwrap().stall.is_none());
            }
            return Ok(());
        }
        write!(stream, "{:x}\r\n{text}\r\n", text.len())?;
    }
    has_answered(state);
    stream.write_all(b"0\r\n\r\n")
}

fn lichess(
    stream: &TcpStream,
    state: &Mutex<State>,
    name: &str,
    query: &str,
) -> std::io::Result<()> {
    if let Some(answered) = fault(stream, state) {
        return answered;
    }
    let query: BTreeMap<&str, &str> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    let bound = |name: &str| {
        let bound: Option<u64> = query.get(name).map(|bound| bound.parse().unwrap());
        assert!(bound.is_none_or(|bound| bound >= 1_356_998_400_070));
        bound
    };
    let (since, until) = (
        bound("since").unwrap_or(0),
        bound("until").unwrap_or(u64::MAX),
    );
    let mut games = state.lock().unwrap().lichess[name].clone();
    games.retain(|game| {
        let wanted = |name: &str| query.get(name).copied();
        (since..=until).contains(&(game.time * 1000))
            && wanted("rated").is_none_or(|rated| rated == game.is_rated.to_string())
            && wanted("perfType")
                .is_none_or(|speeds| speeds.split(',').any(|speed| speed == game.speed))
    });
    if query.get("sort") != Some(&"dateAsc") {
        games.reverse();
    }
    games.truncate(
        query
            .get("max")
            .map_or(usize::MAX, |max| max.parse().unwrap()),
    );
    if query.get("clocks") != Some(&"true") {
        for game in &mut games {
            game.text = game.text.replace(" { [%clk 0:03:00] }", "");
        }
    }
    stream_games(stream, state, &games, "")
}

fn archives(stream: &TcpStream, state: &Mutex<State>, name: &str) -> std::io::Result<()> {
    let now = state.lock().unwrap();
    let (status, body) = if now.closed.iter().any(|closed| closed == name) {
        (410, "{\"code\":0,\"message\":\"Gone\"}".to_owned())
    } else if let Some(games) = now.chess_com.get(name) {
        let mut months: Vec<String> = games
            .iter()
            .map(|game| game.date[..7].replace('.', "/"))
            .collect();
        months.dedup();
        // The host is not followed.
        let months = months
            .iter()
            .map(|month| format!("\"https://other.example/pub/player/{name}/games/{month}\""));
        (
            200,
            format!("{{\"archives\":[{}]}}", Vec::from_iter(months).join(",")),
        )
    } else {
        (
            404,
            "{\"code\":0,\"message\":\"User not found.\"}".to_owned(),
        )
    };
    drop(now);
    respond(stream, state, status, JSON, body.as_bytes())
}

fn chess_com(
    stream: &TcpStream,
    state: &Mutex<State>,
    name: &str,
    month: &str,
    head: &str,
) -> std::io::Result<()> {
    if let Some(answered) = fault(stream, state) {
        return answered;
    }
    let mut games = state.lock().unwrap().chess_com[name].clone();
    games.retain(|game| game.date.starts_with(month));
    let etag = format!("W/\"{name}-{month}{}\"", games.len());
    if head.contains(&format!("if-none-match: {etag}\n")) {
        return respond(stream, state, 304, "", b"");
    }
    stream_games(stream, state, &games, &format!("ETag: {etag}\r\n"))
}

/// Returns the numbers of the games in a file, in the order of the file: the digits at the ends of their addresses.
fn addresses(dir: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    let lines = text.lines().filter(|line| line.contains("https://"));
    lines
        .map(|line| {
            line.rsplit('/')
                .next()
                .unwrap()
                .trim_end_matches("\"]")
                .to_owned()
        })
        .collect()
}

#[test]
fn games_of_both_services_are_in_the_order_in_which_they_began() {
    let services = Services::start().with(&[("me", 300)], &[("me", 60)]);
    let dir = temp();
    let dir = dir.path();
    let said = services.ok(dir, "lichess:me chesscom:ME --out me.pgn");
    assert!(
        said.contains("me.pgn: 360 new games, 360 games in the file"),
        "{said}"
    );
    assert!(said.contains("polybook serve me.pgn --me me"), "{said}");
    let text = fs::read_to_string(dir.join("me.pgn")).unwrap();
    let tag = |name: &str| {
        let start = format!("[{name} \"");
        Vec::from_iter(
            text.lines()
                .filter_map(move |line| line.strip_prefix(&*start)),
        )
    };
    let times = tag("UTCDate").into_iter().zip(tag("UTCTime"));
    let times: Vec<_> = times.collect();
    assert!(times.is_sorted() && times.len() == 360);
    assert!(text.ends_with("2. Nf3 1-0\n\n") && !text.contains("\n\n\n"));
    let agents = services.requests();
    assert!(
        agents
            .iter()
            .all(|head| head.to_lowercase().contains("user-agent: polybook/"))
    );
    // Only new games are added, and games that polybook did not download keep their places.
    let own = "[White \"a\"]\n\n1. d4 *\n\n";
    fs::write(dir.join("me.pgn"), format!("\u{feff}{own}{text}{own}")).unwrap();
    let more = Services::start().with(&[("me", 320)], &[("me", 70)]);
    let said = more.ok(dir, "lichess:me chesscom:me --out me.pgn");
    assert!(
        said.contains("me.pgn: 30 new games, 392 games in the file"),
        "{said}"
    );
    let all = fs::read_to_string(dir.join("me.pgn")).unwrap();
    assert!(all.starts_with(&format!("\u{feff}{own}{}", &text[..2000])));
    assert_eq!(all.matches(own).count(), 2);
    more.ok(dir, "lichess:me chesscom:me --out new.pgn");
    let with_own = addresses(dir, "me.pgn");
    assert_eq!(with_own.len(), 390);
    let mut distinct = with_own.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 390);
    // If nothing is new, the file is not touched.
    let before = fs::metadata(dir.join("new.pgn"))
        .unwrap()
        .modified()
        .unwrap();
    let said = more.ok(dir, "lichess:me chesscom:me --out new.pgn");
    assert!(said.contains("no new games"), "{said}");
    assert_eq!(
        fs::metadata(dir.join("new.pgn"))
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
}

/// Returns `number` pseudo-random numbers below `end`.
fn random(number: usize, end: u64) -> Vec<usize> {
    let mut state = 37_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    (0..number).map(|_| next() as usize).collect()
}

#[test]
fn a_connection_that_breaks_ten_times_delivers_the_same_games() {
    let services = Services::start().with(&[("me", 5000)], &[("me", 700)]);
    let dir = temp();
    let dir = dir.path();
    services.ok(dir, "-q lichess:me chesscom:me --out whole.pgn");
    services.state().breaks = random(10, 570);
    let said = services.ok(dir, "lichess:me chesscom:me --out me.pgn");
    assert!(services.state().breaks.is_empty());
    assert!(
        said.contains("broke") && said.contains("polybook continues in 2 seconds"),
        "{said}"
    );
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert!(read("me.pgn") == read("whole.pgn"));
    // After too many failures without a game, the games before are kept.
    services.state().breaks = [vec![1000], vec![0; 20]].concat();
    let said = services.fails(dir, "lichess:me --out part.pgn");
    let advice = "part.pgn has the games up to there: repeat the command to continue: lichess:me: the connection to lichess.org broke";
    assert!(
        said.contains(advice) && said.contains("6 times in a row"),
        "{said}"
    );
    services.state().breaks.clear();
    services.ok(dir, "lichess:me --out part.pgn");
    services.ok(dir, "chesscom:me --out part.pgn");
    assert!(read("part.pgn") == read("whole.pgn"));
}

#[cfg(unix)]
#[test]
fn a_download_that_is_interrupted_ten_times_continues_in_little_memory() {
    use rustix::process::Signal;

    use crate::common::send_signal;

    let services = Services::start().with(&[("me", 5000)], &[("me", 700)]);
    let dir = temp();
    let dir = dir.path();
    let line = "lichess:me chesscom:me --out me.pgn";
    services.ok(dir, "-q lichess:me chesscom:me --out whole.pgn");
    let mut kept = 0;
    for (run, games) in random(10, 300).into_iter().enumerate() {
        // About 50 games of the day before are sent again. All runs together send fewer games than Lichess has, so that
        // each of them is interrupted, however many games the run before kept.
        let games = games + 100 + if run == 5 { 2800 } else { 0 };
        services.state().stall = Some(games);
        let mut command = services.command(dir, line);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        until("the server stops sending", || services.state().has_stalled);
        if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", child.id())) {
            let peak = status
                .lines()
                .find(|line| line.starts_with("VmHWM:"))
                .unwrap();
            let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
            assert!(kilobytes < 64 << 10, "{peak}");
        }
        send_signal(child.id(), Signal::INT);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{said}");
        if said.contains("interrupted; me.pgn has") {
            assert!(
                said.contains("up to there: repeat the command to continue"),
                "{said}"
            );
            kept += 1;
        }
        let mut state = services.state();
        (state.stall, state.has_stalled) = (None, false);
    }
    assert!(kept >= 5, "{kept}");
    services.ok(dir, line);
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert!(read("me.pgn") == read("whole.pgn"));
}

#[test]
fn each_failure_is_one_clear_line() {
    let services = Services::start().with(&[("me", 50)], &[("me", 50)]);
    services.state().closed = vec!["gone".to_owned()];
    let dir = temp();
    let dir = dir.path();
    for (account, fault, says) in [
        (
            "lichess:nobody",
            None,
            "lichess:nobody: lichess.org has no account with this name",
        ),
        (
            "chesscom:nobody",
            None,
            "chesscom:nobody: Chess.com has no account with this name",
        ),
        ("lichess:gone", None, "this account is closed"),
        ("chesscom:gone", None, "this account is closed"),
        ("lichess:me", Some(Fault::Html), "answered with a web page"),
        ("chesscom:me", Some(Fault::Html), "answered with a web page"),
        (
            "chesscom:me",
            Some(Fault::Status(403)),
            "which may be private",
        ),
        (
            "lichess:me",
            Some(Fault::Status(418)),
            "unexpected status 418",
        ),
        (
            "lichess:me",
            Some(Fault::Redirect("https://login.example/".to_owned())),
            "redirects to login.example",
        ),
        (
            "lichess:me",
            Some(Fault::Redirect("//login.example/".to_owned())),
            "which polybook does not follow",
        ),
    ] {
        services.state().faults.extend(fault);
        let said = services.fails(dir, &format!("-q {account} --out new.pgn"));
        assert!(said.contains(says), "{account}: {said}");
        assert!(!dir.join("new.pgn").exists());
        services.state().faults.clear();
    }
    // Waiting and redirects within the service.
    let local = format!("{}/elsewhere", services.address);
    services.state().faults = vec![Fault::Status(429), Fault::Status(429), Fault::Status(503)];
    let said = services.ok(dir, "lichess:me --out me.pgn");
    let wait = "lichess.org received too many requests: polybook continues in 60 seconds\n";
    assert_eq!(said.matches(wait).count(), 2, "{said}");
    assert!(said.contains("answered with the status 503"), "{said}");
    services.state().faults = vec![Fault::Status(429); 20];
    let said = services.fails(dir, "chesscom:me --out new.pgn");
    assert!(
        said.contains("received too many requests, 6 times in a row"),
        "{said}"
    );
    for to in ["/elsewhere", &local] {
        services.state().faults = vec![Fault::Redirect(to.to_owned())];
        let said = services.fails(dir, "lichess:me --out new.pgn");
        assert!(said.contains("no account with this name"), "{said}");
    }
    services.state().faults = vec![Fault::Redirect("/api/games/user/me".to_owned()); 20];
    let said = services.fails(dir, "lichess:me --out new.pgn");
    assert!(said.contains("redirects too often"), "{said}");
    services.state().faults.clear();
    // One account that fails does not keep the others from being downloaded.
    let said = services.fails(dir, "lichess:nobody chesscom:me --out part.pgn");
    assert!(
        said.contains("repeat the command to continue: lichess:nobody"),
        "{said}"
    );
    assert_eq!(addresses(dir, "part.pgn").len(), 50);
}

#[test]
fn mistakes_in_the_command_line_are_explained() {
    let services = Services::start().with(&[("me", 50)], &[("me", 50)]);
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("notes.pgn"), "my notes\n").unwrap();
    fs::write(dir.join("book.pgn"), [0; 64]).unwrap();
    for (line, advice) in [
        ("me --out me.pgn", "use lichess:NAME or chesscom:NAME"),
        (
            "lichess:a/b --out me.pgn",
            "use the name of the account: letters, digits, - and _",
        ),
        ("lichess:me --out -", "give the name of a file"),
        (
            "lichess:me --out notes.pgn",
            "does not contain games in plain PGN: choose another output",
        ),
        (
            "lichess:me --out book.pgn",
            "does not contain games in plain PGN: choose another output",
        ),
        ("lichess:me --out me.pgn.gz", "written without compression"),
        ("lichess:me --out me.pgn --max 0", "--max"),
        (
            "lichess:me --out me.pgn --since 2024.02 --until 2024.01",
            "exchange the two dates",
        ),
        (
            "lichess:me --out me.pgn --token-file notes.pgn",
            "contains no token of Lichess",
        ),
        (
            "chesscom:me --out me.pgn --rated",
            "download this account without a condition on that",
        ),
    ] {
        let said = services.fails(dir, line);
        assert!(said.contains(advice), "{line}: {said}");
    }
    let mut elsewhere = services.command(dir, "lichess:me --out me.pgn");
    elsewhere.env("POLYBOOK_DOWNLOAD_SERVER", "http://192.0.2.1:80");
    let said = String::from_utf8(elsewhere.output().unwrap().stderr).unwrap();
    assert!(said.contains("only a server on this computer"), "{said}");
    assert_eq!(services.requests(), [""; 0]);
    services.ok(dir, "lichess:me chesscom:me --out me.pgn");
    services.ok(dir, "chesscom:me --out me.pgn --rated=rated,unknown");
    // A file of another program has the name of the notes about the download.
    fs::write(dir.join("me.pgn.download.json"), "{}").unwrap();
    let said = services.fails(dir, "chesscom:me --out me.pgn");
    assert!(
        said.contains("this file has other contents: move it away"),
        "{said}"
    );
    fs::remove_file(dir.join("me.pgn.download.json")).unwrap();
    services.ok(dir, "chesscom:me --out me.pgn");
}

#[test]
fn a_killed_download_has_added_most_of_its_games() {
    const GAMES: u64 = 24_000;
    let services = Services::start().with(&[("me", GAMES)], &[]);
    services.state().stall = Some(22_000);
    let dir = temp();
    let dir = dir.path();
    let mut download = services.command(dir, "lichess:me --out me.pgn");
    let mut download = download.stderr(Stdio::null()).spawn().unwrap();
    until("the games have been added", || {
        services.state().has_stalled && dir.join("me.pgn.download.json").exists()
    });
    download.kill().unwrap();
    download.wait().unwrap();
    let all: Vec<_> = (0..GAMES).map(|number| format!("me{number:06}")).collect();
    let kept = addresses(dir, "me.pgn");
    assert!(kept.len() > 10_000, "{}", kept.len());
    assert_eq!(kept, all[..kept.len()]);
    let services = Services::start().with(&[("me", GAMES)], &[]);
    let said = services.ok(dir, "lichess:me --out me.pgn");
    let rest = GAMES - kept.len() as u64;
    let expected = format!("me.pgn: {rest} new games, {GAMES} games in the file");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(addresses(dir, "me.pgn"), all);
    assert!(services.requests().iter().any(|it| it.contains("&since=")));
    // A download that adds its games in parts counts the games of all parts.
    let said = services.ok(dir, "lichess:me --out anew.pgn");
    let expected = format!("anew.pgn: {GAMES} new games, {GAMES} games in the file");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(addresses(dir, "anew.pgn"), all);
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_reported() {
    let services = Services::start().with(&[("me", 900)], &[]);
    let dir = temp();
    let polybook = env!("CARGO_BIN_EXE_polybook");
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -f 16; exec {polybook} download lichess:me --out me.pgn"),
        ])
        .current_dir(dir.path())
        .env("POLYBOOK_DOWNLOAD_SERVER", &services.address)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("cannot write me.pgn: File too large"),
        "{said}"
    );
    // The games that could be written are kept, and the others are requested again.
    assert!(said.contains("me.pgn has the games up to there"), "{said}");
    let kept = addresses(dir.path(), "me.pgn").len();
    assert!(kept > 10 && kept < 900, "{kept}");
    // The first server may still be sending.
    let services = Services::start().with(&[("me", 900)], &[]);
    let said = services.ok(dir.path(), "lichess:me --out me.pgn");
    assert!(said.contains("900 games in the file"), "{said}");
}

/// If there is no space for the file, the new games are kept under another name.
#[cfg(unix)]
#[test]
fn games_that_cannot_be_added_are_kept_in_another_file() {
    let services = Services::start().with(&[("me", 30)], &[]);
    let dir = temp();
    let dir = dir.path();
    let old = "[Event \"mine\"]\n\n1. d4 *\n\n".repeat(300);
    fs::write(dir.join("me.pgn"), &old).unwrap();
    let limited = || {
        let polybook = env!("CARGO_BIN_EXE_polybook");
        let output = Command::new("sh")
            .args([
                "-c",
                &format!("ulimit -f 24; exec {polybook} download lichess:me --out me.pgn"),
            ])
            .current_dir(dir)
            .env("POLYBOOK_DOWNLOAD_SERVER", &services.address)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = limited();
    let kept = "me.pgn.download.pgn: this file has the new games, because they could not be added: \
                cannot write me.pgn: File too large\n";
    assert!(said.ends_with(kept), "{said}");
    assert!(fs::read_to_string(dir.join("me.pgn")).unwrap() == old);
    let numbers = (0..30).map(|number| format!("me{number:06}"));
    let numbers = Vec::from_iter(numbers);
    assert_eq!(addresses(dir, "me.pgn.download.pgn"), numbers);
    let text = fs::read_to_string(dir.join("me.pgn.download.pgn")).unwrap();
    assert!(text.ends_with("1-0\n\n") && !text.contains("\n\n\n"));
    // The file is not overwritten by a later download.
    let said = services.fails(dir, "lichess:me --out me.pgn");
    let advice = "me.pgn.download.pgn: this file contains new games of an earlier download, which could not be added: \
                  move it away, or add its games yourself, and repeat the command";
    assert!(said.contains(advice), "{said}");
    fs::rename(dir.join("me.pgn.download.pgn"), dir.join("kept.pgn")).unwrap();
    services.ok(dir, "lichess:me --out me.pgn");
    assert_eq!(addresses(dir, "me.pgn"), numbers);
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["kept.pgn", "me.pgn", "me.pgn.download.json"]);
}

/// If the file becomes something else during the download, it is left alone, and the new games are kept.
#[test]
fn games_are_kept_if_the_file_is_replaced_by_another_format() {
    let services = Services::start().with(&[("me", 50)], &[]);
    let dir = temp();
    let dir = dir.path();
    services.state().stall = Some(20);
    let mut command = services.command(dir, "lichess:me --out me.pgn");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("the server stops sending", || services.state().has_stalled);
    fs::write(dir.join("me.pgn"), "my notes\n").unwrap();
    let mut state = services.state();
    (state.stall, state.has_stalled) = (None, false);
    drop(state);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("me.pgn.download.pgn: this file has the new games"),
        "{said}"
    );
    assert!(
        said.contains("does not contain games in plain PGN"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(dir.join("me.pgn")).unwrap(),
        "my notes\n"
    );
    assert_eq!(addresses(dir, "me.pgn.download.pgn").len(), 50);
}

#[test]
fn tokens_are_sent_to_lichess_and_never_printed() {
    let services = Services::start().with(&[("me", 5)], &[("me", 5)]);
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("token"), "lip_fromFile\n").unwrap();
    let with_variable = |args: &str| {
        let mut command = services.command(dir, args);
        let output = command
            .env("LICHESS_TOKEN", "lip_fromVariable")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let tokens = |said: &str| {
        assert!(!said.contains("lip_"), "{said}");
        let requests = services.requests();
        assert!(
            requests
                .iter()
                .all(|head| head.contains("/api/") || !head.contains("lip_"))
        );
        let tokens = requests
            .iter()
            .filter_map(|head| head.split("earer ").nth(1));
        tokens
            .map(|rest| rest.lines().next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let said = with_variable("lichess:me chesscom:me --out a.pgn");
    assert_eq!(tokens(&said), ["lip_fromVariable"; 2]);
    let said = with_variable("lichess:me --out b.pgn --token-file token");
    assert_eq!(tokens(&said), ["lip_fromFile"; 2]);
    services.state().faults = vec![Fault::Status(401)];
    let said = with_variable("lichess:me --out c.pgn");
    assert!(
        said.contains(
            "does not accept the token: make a new one at https://lichess.org/account/oauth/token"
        ),
        "{said}"
    );
    tokens(&said);
    services.ok(dir, "lichess:me --out c.pgn");
    assert_eq!(tokens(""), [""; 0]);
}

#[test]
fn months_that_are_unchanged_are_not_sent_again() {
    let services = Services::start().with(&[], &[("me", 400)]);
    let dir = temp();
    let dir = dir.path();
    services.ok(dir, "chesscom:me --out me.pgn");
    let months = |requests: &[String]| {
        let months = requests
            .iter()
            .filter_map(|head| head.split("/games/").nth(1)?.split("/pgn").next());
        Vec::from_iter(months.filter(|month| month.len() == 7).map(str::to_owned))
    };
    assert_eq!(
        months(&services.requests()),
        ["2023/01", "2023/02", "2023/03"]
    );
    // Only the newest month can have new games, and the server says that it has none.
    let text = fs::read(dir.join("me.pgn")).unwrap();
    services.ok(dir, "chesscom:me --out me.pgn");
    let requests = services.requests();
    assert_eq!(months(&requests), ["2023/03"]);
    assert!(
        requests[1].contains("if-none-match: W/\"me-2023.03."),
        "{}",
        requests[1]
    );
    let since = services.ok(dir, "chesscom:me --out me.pgn --since 2023");
    assert!(since.contains("no new games"), "{since}");
    assert_eq!(months(&services.requests()).len(), 3);
    assert!(fs::read(dir.join("me.pgn")).unwrap() == text);
    // New games of this month, and of the next.
    let services = services.with(&[], &[("me", 500)]);
    let said = services.ok(dir, "chesscom:me --out me.pgn");
    assert!(said.contains("100 new games, 500 games"), "{said}");
    assert_eq!(months(&services.requests()), ["2023/03", "2023/04"]);
    // Without the games, the months do not count as complete.
    fs::remove_file(dir.join("me.pgn")).unwrap();
    let said = services.ok(dir, "chesscom:me --out me.pgn");
    assert!(said.contains("500 new games"), "{said}");
}

#[test]
fn options_select_the_games() {
    let services = Services::start().with(&[("me", 2000)], &[("me", 300)]);
    let dir = temp();
    let dir = dir.path();
    let games = |options: &str| {
        services.requests();
        services.ok(dir, &format!("-q {options} --out new.pgn"));
        let addresses = addresses(dir, "new.pgn");
        fs::remove_file(dir.join("new.pgn")).unwrap();
        addresses
    };
    let numbers = |range: std::ops::Range<u64>, keep: fn(u64) -> bool| {
        Vec::from_iter(
            range
                .filter(|number| keep(*number))
                .map(|number| format!("me{number:06}")),
        )
    };
    assert_eq!(games("lichess:me --max 25"), numbers(1975..2000, |_| true));
    let newest = Vec::from_iter((280..300).map(|number| format!("me{number}")));
    assert_eq!(games("chesscom:me --max 20"), newest);
    let february = 28 * GAMES_A_DAY;
    assert_eq!(
        games("lichess:me --since 2023.02"),
        numbers(february..2000, |_| true)
    );
    assert_eq!(
        games("lichess:me --until 2023.01"),
        numbers(0..february, |_| true)
    );
    let day = numbers(GAMES_A_DAY..2 * GAMES_A_DAY, |_| true);
    assert_eq!(
        games("lichess:me --since 2023.01.02 --until 2023.01.02"),
        day
    );
    assert_eq!(
        games("lichess:me --speed blitz"),
        numbers(0..2000, |number| number % 2 == 0)
    );
    assert_eq!(
        games("lichess:me --rated"),
        numbers(0..2000, |number| number % 3 > 0)
    );
    assert_eq!(
        games("lichess:me --rated=casual"),
        numbers(0..2000, |number| number % 3 == 0)
    );
    assert_eq!(games("chesscom:me --until 2023.01.28").len(), 160);
    services.requests();
    // Clocks and evaluations are requested from Lichess.
    services.ok(dir, "-q lichess:me --out plain.pgn --max 1");
    services.ok(
        dir,
        "-q lichess:me --out clocks.pgn --max 1 --clocks --evals",
    );
    let requests = services.requests();
    assert!(
        requests[3].contains("clocks=true&evals=true"),
        "{requests:?}"
    );
    let has_clock = |name: &str| fs::read_to_string(dir.join(name)).unwrap().contains("%clk");
    assert!(has_clock("clocks.pgn") && !has_clock("plain.pgn"));
    // The newest games can be downloaded first, and older ones later.
    services.ok(dir, "-q lichess:me --out me.pgn --max 100");
    services.ok(dir, "-q lichess:me --out me.pgn --since 2023");
    assert_eq!(addresses(dir, "me.pgn"), numbers(0..2000, |_| true));
}

/// Returns the texts of the games that a server has of a player at Lichess.
fn texts(services: &Services, name: &str) -> Vec<String> {
    let state = services.state();
    state.lichess[name]
        .iter()
        .map(|game| game.text.clone())
        .collect()
}

#[test]
fn a_file_with_a_recent_game_of_an_account_does_not_hide_its_older_games() {
    let services = Services::start().with(&[("me", 50), ("rival", 5)], &[]);
    let dir = temp();
    let dir = dir.path();
    // The rival played the newest game of this account.
    let newest = services.state().lichess["me"][49].clone();
    services
        .state()
        .lichess
        .get_mut("rival")
        .unwrap()
        .push(newest);
    services.ok(dir, "lichess:rival --out me.pgn");
    assert_eq!(addresses(dir, "me.pgn").len(), 6);
    let said = services.ok(dir, "lichess:me --out me.pgn");
    assert!(
        said.contains("49 new games, 55 games in the file"),
        "{said}"
    );
    // A game that is dated in the future hides nothing, either.
    let services = services.with(&[("me", 60)], &[]);
    for game in services
        .state()
        .lichess
        .get_mut("me")
        .unwrap()
        .iter_mut()
        .take(1)
    {
        game.text = game.text.replace("2023.", "2099.");
    }
    services.ok(dir, "lichess:me --out new.pgn");
    let services = services.with(&[("me", 70)], &[]);
    let said = services.ok(dir, "lichess:me --out new.pgn");
    assert!(said.contains("10 new games, 70 games"), "{said}");
}

#[test]
fn games_that_are_removed_are_downloaded_again() {
    let services = Services::start().with(&[("me", 90), ("other", 1)], &[("me", 60)]);
    let dir = temp();
    let dir = dir.path();
    services.ok(dir, "lichess:me chesscom:me --out me.pgn");
    // The notes about the download outlive the file.
    fs::remove_file(dir.join("me.pgn")).unwrap();
    services.ok(dir, "lichess:other --out me.pgn");
    let said = services.ok(dir, "chesscom:me --out me.pgn");
    assert!(said.contains("60 new games, 61 games"), "{said}");
    let said = services.ok(dir, "lichess:me --out me.pgn");
    assert!(said.contains("90 new games, 151 games"), "{said}");
    // Other conditions are another download.
    services.ok(dir, "lichess:me --out fast.pgn --speed blitz");
    services.ok(dir, "lichess:me --out fast.pgn");
    assert_eq!(addresses(dir, "fast.pgn").len(), 90);
}

#[test]
fn the_newest_games_are_complete_though_connections_break() {
    let services = Services::start().with(&[("me", 400)], &[("me", 60)]);
    let dir = temp();
    let dir = dir.path();
    services.state().breaks = vec![7];
    let said = services.ok(dir, "lichess:me --out a.pgn --max 10");
    assert!(said.contains("10 new games, 10 games"), "{said}");
    let newest = Vec::from_iter((390..400).map(|number| format!("me{number:06}")));
    assert_eq!(addresses(dir, "a.pgn"), newest);
    services.state().breaks = vec![2];
    services.ok(dir, "chesscom:me --out b.pgn --max 50");
    assert_eq!(addresses(dir, "b.pgn").len(), 50);
    // The newest game of one account is an older game of the other.
    let shared = services.state().lichess["me"][0].clone();
    services
        .state()
        .lichess
        .insert("short".to_owned(), vec![shared]);
    for accounts in ["lichess:me lichess:short", "lichess:short lichess:me"] {
        services.ok(dir, &format!("{accounts} --out c.pgn --max 2"));
        let games = ["me000000", "me000398", "me000399"];
        assert_eq!(addresses(dir, "c.pgn"), games, "{accounts}");
        fs::remove_file(dir.join("c.pgn")).unwrap();
    }
    // An answer that brings nothing new is not requested for ever.
    services.ok(dir, "lichess:me --out a.pgn");
    services.state().breaks = vec![2; 99];
    let said = services.fails(dir, "lichess:me --out a.pgn");
    assert!(said.contains("6 times in a row"), "{said}");
}

#[test]
fn a_month_that_cannot_be_had_now_is_requested_later() {
    let services = Services::start().with(&[], &[("me", 400)]);
    let dir = temp();
    let dir = dir.path();
    services.state().faults = vec![Fault::Status(404); 20];
    let said = services.fails(dir, "chesscom:me --out me.pgn");
    assert!(
        said.contains(
            "lists the month 2023/01, but answered with the status 404, 6 times in a row"
        ),
        "{said}"
    );
    services.state().faults = vec![Fault::Status(304), Fault::Status(410)];
    let said = services.ok(dir, "chesscom:me --out me.pgn");
    assert!(said.contains("400 new games"), "{said}");
    // The month has the games that ended in it.
    let services = services.with(&[], &[("late", 3)]);
    for game in services.state().chess_com.get_mut("late").unwrap() {
        game.text = game.text.replace("2023.01.01", "2022.12.31");
    }
    services.ok(dir, "chesscom:late --out late.pgn --until 2022");
    assert_eq!(addresses(dir, "late.pgn").len(), 3);
}

#[test]
fn an_answer_that_is_cut_is_not_a_game() {
    let services = Services::start().with(&[("me", 3)], &[]);
    let dir = temp();
    let dir = dir.path();
    let games = texts(&services, "me");
    let (cut, _) = games[1].split_once("[Result \"1-0").unwrap();
    let cut = format!("{}\n{cut}[Result \"1-0", games[0]);
    services.state().faults = vec![Fault::Text(cut)];
    let said = services.ok(dir, "lichess:me --out me.pgn");
    assert!(
        said.contains("broke within a game") && said.contains("3 new games"),
        "{said}"
    );
    let text = fs::read_to_string(dir.join("me.pgn")).unwrap();
    assert_eq!(text.matches("[Event ").count(), 3);
}

#[test]
fn a_file_that_changes_during_the_download_loses_nothing() {
    let services = Services::start().with(&[("me", 50)], &[]);
    let games = texts(&services, "me");
    let own = "[Event \"mine\"]\n\n1. d4 *\n\n";
    for (before, after) in [
        (Some(""), Some(own.to_owned())),
        (Some(own), Some(format!("{own}{}\n{own}", games[3]))),
        (Some(own), None),
    ] {
        let dir = temp();
        let path = dir.path().join("me.pgn");
        before
            .into_iter()
            .for_each(|text| fs::write(&path, text).unwrap());
        services.state().stall = Some(20);
        let mut command = services.command(dir.path(), "lichess:me --out me.pgn");
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        until("the server stops sending", || services.state().has_stalled);
        match &after {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut state = services.state();
        (state.stall, state.has_stalled) = (None, false);
        drop(state);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let text = fs::read_to_string(&path).unwrap();
        let wanted = after.as_deref().unwrap_or_default();
        assert_eq!(text.matches(own).count(), wanted.matches(own).count());
        for number in 0..50 {
            let address = format!("/me{number:06}\"");
            assert_eq!(text.matches(&address).count(), 1, "{number}: {said}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let services = Services::start();
    let dir = temp();
    crate::common::make_fifo(&dir.path().join("pipe"));
    let said = services.fails(dir.path(), "lichess:me --out pipe");
    assert!(said.contains("give the name of a file"), "{said}");
}
