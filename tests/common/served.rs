//! A server that listens on a free port of this machine, and requests to it.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{Arguments, polybook_in};

/// A running `polybook serve`, which ends when dropped.
pub struct Served {
    child: Child,
    pub address: SocketAddr,
    /// The query of the page's address, with its question mark, or an empty text.
    pub query: String,
}

/// The answer of a server.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The status line and all headers. Names of headers are in lower case.
    pub head: String,
    pub body: Vec<u8>,
}

impl Served {
    /// Starts a server with sources and options in a directory. Waits until the index is ready.
    #[track_caller]
    pub fn start(dir: &Path, args: impl Arguments) -> Served {
        Served::start_with(dir, args, |_| {})
    }

    /// Starts a server, but does not wait until the index of a PGN file is ready.
    #[track_caller]
    #[cfg(unix)]
    pub fn start_at_once(dir: &Path, args: impl Arguments) -> Served {
        Served::spawned(dir, args, |_| {})
    }

    /// Starts a server whose process is configured by `set`. Of several addresses to listen at, the last one is used.
    #[track_caller]
    pub fn start_with(dir: &Path, args: impl Arguments, set: impl FnOnce(&mut Command)) -> Served {
        let of_pgn = |arg: &OsString| arg.to_string_lossy().contains(".pgn");
        let is_indexed = args.list().iter().any(of_pgn);
        let served = Served::spawned(dir, args, set);
        if is_indexed {
            // Wait without a time limit: if the server ends, the connection fails.
            let is_made = |reply: Reply| !reply.text().contains("\"indexing\"");
            while !served.try_get("/about").is_some_and(is_made) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        served
    }

    #[track_caller]
    fn spawned(dir: &Path, args: impl Arguments, set: impl FnOnce(&mut Command)) -> Served {
        let mut command = polybook_in(dir);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-pgn"])
            .arg(super::sample(""))
            .args(args.list())
            .env("HOME", dir)
            .stdout(Stdio::piped());
        set(&mut command);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let (address, query) = line
            .strip_prefix("http://")
            .and_then(|rest| rest.trim_end().split_once('/'))
            .unwrap_or_else(|| panic!("no address: {line:?} {:?}", child.wait()));
        let address = address.parse().unwrap();
        let query = query.to_owned();
        Served {
            child,
            address,
            query,
        }
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Opens a connection whose reads and writes time out.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Sends raw bytes as a request, and reads the answer to its end.
    pub fn send(&self, request: &[u8]) -> Option<Reply> {
        let mut stream = self.connect();
        // A server that refuses a request may close the connection before everything is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Reply::parse(&bytes)
    }

    /// Sends a request with further headers. Each header includes its line end.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> Reply {
        let host = self.address;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        );
        self.send(request.as_bytes())
            .unwrap_or_else(|| panic!("{path}: no answer"))
    }

    /// Sends a `POST` request with a body and further headers, which are separated by line ends.
    #[track_caller]
    pub fn post(&self, path: &str, headers: &str, body: &str) -> Reply {
        let (host, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\nContent-Length: \
             {length}\r\n\r\n{body}"
        );
        self.send(request.as_bytes())
            .unwrap_or_else(|| panic!("{path}: no answer"))
    }

    /// Sends a request and returns the answer, or `None` if the connection breaks. While games are indexed, connections
    /// break at the end.
    pub fn try_get(&self, path: &str) -> Option<Reply> {
        let host = self.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        self.send(request.as_bytes())
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "")
    }

    /// Returns the JSON document at a path.
    #[track_caller]
    pub fn json(&self, path: &str) -> serde_json::Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        serde_json::from_slice(&reply.body).unwrap_or_else(|err| panic!("{path}: {err}"))
    }

    /// Sends a signal and waits for the exit.
    #[cfg(unix)]
    pub fn signal(mut self, signal: rustix::process::Signal) -> std::process::ExitStatus {
        super::send_signal(self.child.id(), signal);
        let mut status = None;
        super::until("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Returns the peak memory of the server in bytes.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kibibytes = peak.and_then(|line| line.split_whitespace().nth(1));
        kibibytes.unwrap().parse::<u64>().unwrap() << 10
    }

    /// Returns the CPU time that the server has used, in ticks of a hundredth of a second.
    #[cfg(target_os = "linux")]
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The name of the program, in parentheses, may contain blanks. `utime` and `stime` are the 14th and 15th
        // fields.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// Returns the number of files and connections that the server has open.
    #[cfg(target_os = "linux")]
    pub fn open_files(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.unwrap().count()
    }

    /// Returns `true` if the server is still running.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn parse(bytes: &[u8]) -> Option<Reply> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
        Some(Reply {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        })
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
