//! Sends requests to the websites from which games are downloaded, one request at a time.

use std::{
    fmt,
    io::{self, Read},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::crypto::ring;
use ureq::{
    Agent, Body,
    http::{Response, Uri, header},
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::{Account, Notice, Service};
use crate::{
    error::{Error, Result},
    games::pgn::{GameEnd, GameReader},
};

/// The value of the header `User-Agent`. It contains a contact address, without which Chess.com refuses requests.
const USER_AGENT: &str = concat!(
    "polybook/",
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("CARGO_PKG_REPOSITORY"),
    ")"
);

/// The pause after a service has refused a request because of too many requests. Lichess demands a full minute.
const RATE_LIMIT: Duration = Duration::from_secs(60);

/// The pause after the first failure. Each further failure in a row doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The number of failures in a row after which the client gives up.
const MAX_FAILURES: u32 = 6;

/// The time without any data after which a connection counts as broken.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The minimum number of bytes, about four games, that a service must send during each [`TIMEOUT`] of its answer.
/// The limit prevents a service that sends very slowly from making a download last forever.
const MIN_BYTES: u64 = 6000;

/// The maximum length in bytes of an answer that consists of games. A few million games with clocks and evaluations are
/// shorter.
const MAX_ANSWER: u64 = 16 << 30;

/// The maximum length in bytes of an answer in JSON, such as the list of months.
const MAX_DOCUMENT: u64 = 1 << 20;

/// The maximum length in bytes of a downloaded game.
const MAX_GAME: usize = 1 << 20;

const MAX_REDIRECTS: u32 = 5;

/// The media type of games in PGN.
pub(super) const PGN: &str = "application/x-chess-pgn";
pub(super) const JSON: &str = "application/json";

/// An access token that identifies a user to Lichess. The text of the token is never printed.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token from `text`, which must consist of letters, digits and underscores. Ignores blanks around it.
    /// Returns `None` for any other text.
    pub fn new(text: &str) -> Option<AccessToken> {
        let text = text.trim();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (!text.is_empty() && text.bytes().all(is_token)).then(|| AccessToken(text.to_owned()))
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken")
    }
}

/// The reason why a request failed.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The connection or the service failed, so a later request may succeed.
    Broken(String),
    /// The service sent fewer than [`MIN_BYTES`] bytes during a [`TIMEOUT`]. It may nevertheless have sent games.
    TooSlow,
    /// The service received too many requests.
    RateLimited,
    /// The request must not be repeated, because it would fail again.
    Final(Error),
}

impl From<Error> for RequestFailure {
    fn from(err: Error) -> RequestFailure {
        RequestFailure::Final(err)
    }
}

/// A client that sends requests to one of the supported websites.
#[derive(Debug)]
pub(super) struct ServiceClient<'a> {
    agent: Agent,
    account: &'a Account,
    /// The beginning of all URLs of requests, such as `https://lichess.org`.
    server: String,
    token: Option<&'a AccessToken>,
    notify: &'a Notice,
    failures: u32,
}

impl<'a> ServiceClient<'a> {
    /// Creates a client for the service of `account`, Lichess or Chess.com. If `server` is given, the client sends its
    /// requests to this address instead, without encryption, so it must be an address of this computer.
    pub(super) fn new(
        account: &'a Account,
        server: Option<&str>,
        token: Option<&'a AccessToken>,
        notify: &'a Notice,
    ) -> Result<ServiceClient<'a>> {
        let failed = |problem: String| Error::failed(account.to_string(), problem);
        let config = Agent::config_builder()
            .user_agent(USER_AGENT)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_resolve(Some(TIMEOUT))
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(2 * TIMEOUT))
            .timeout_per_read(Some(TIMEOUT));
        let config = if server.is_some() {
            config.proxy(None)
        } else {
            let roots = rustls_native_certs::load_native_certs();
            if roots.certs.is_empty() {
                let why = roots.errors.first().map(|err| format!(": {err}"));
                return Err(failed(format!(
                    "the system has no certificates, by which servers are recognized{}",
                    why.unwrap_or_default()
                )));
            }
            let roots = roots
                .certs
                .iter()
                .map(|der| Certificate::from_der(der).to_owned());
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::from(roots))
                .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
                .build();
            config.https_only(true).tls_config(tls)
        };
        let server = match server {
            Some(server) => server.trim_end_matches('/').to_owned(),
            None => format!("https://{}", account.service.host()),
        };
        Ok(ServiceClient {
            agent: config.build().into(),
            account,
            server,
            token: token.filter(|_| account.service == Service::Lichess),
            notify,
            failures: 0,
        })
    }

    /// Returns an error about the account of this client.
    pub(super) fn refusal(&self, problem: impl Into<String>) -> Error {
        Error::failed(self.account.to_string(), problem.into())
    }

    fn host(&self) -> &'static str {
        self.account.service.host()
    }

    /// Sends one request for `path`, and follows redirects within the same server. The returned answer has the status
    /// 200, 304, 404 or 410. Any other status is an error.
    pub(super) fn get(
        &self,
        path: &str,
        accept: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Response<Body>, RequestFailure> {
        let mut address = format!("{}{path}", self.server);
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(&address).header(header::ACCEPT, accept);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            if let Some(AccessToken(token)) = self.token {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let answer = request.call().map_err(|err| self.not_connected(err))?;
            let host = self.host();
            match answer.status().as_u16() {
                200 | 304 | 404 | 410 => return Ok(answer),
                301 | 302 | 303 | 307 | 308 => address = self.redirected(&answer)?,
                401 if self.token.is_some() => {
                    let problem = format!(
                        "{host} does not accept the token: make a new one at https://lichess.org/account/oauth/token"
                    );
                    return Err(self.refusal(problem).into());
                }
                429 => return Err(RequestFailure::RateLimited),
                status @ 500.. => {
                    return Err(RequestFailure::Broken(format!(
                        "{host} answered with the status {status}"
                    )));
                }
                401 | 403 => {
                    let problem = format!(
                        "{host} does not show the games of this account, which may be private"
                    );
                    return Err(self.refusal(problem).into());
                }
                status => {
                    let problem = format!("{host} answered with the unexpected status {status}");
                    return Err(self.refusal(problem).into());
                }
            }
        }
        Err(self
            .refusal(format!("{} redirects too often", self.host()))
            .into())
    }

    /// Returns the URL to which an answer redirects. Returns an error if it is on another server.
    fn redirected(&self, answer: &Response<Body>) -> Result<String, RequestFailure> {
        let location = answer.headers().get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let is_of_server = |address: &&str| {
            let rest = address.strip_prefix(&self.server);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        match location {
            Some(path) if path.starts_with('/') && !path.starts_with("//") => {
                Ok(format!("{}{path}", self.server))
            }
            Some(address) if is_of_server(&address) => Ok(address.to_owned()),
            _ => {
                let other = location.and_then(|location| location.parse::<Uri>().ok());
                let other = other.and_then(|uri| uri.host().map(str::to_owned));
                let to = other.map_or_else(String::new, |other| format!(" to {other}"));
                let problem = format!(
                    "{} redirects{to}, which polybook does not follow: a proxy or a login page of the network may answer instead of the service",
                    self.host()
                );
                Err(self.refusal(problem).into())
            }
        }
    }

    fn not_connected(&self, err: ureq::Error) -> RequestFailure {
        let host = self.host();
        match err {
            ureq::Error::HostNotFound => RequestFailure::Broken(format!("{host} was not found")),
            ureq::Error::Rustls(err) => self
                .refusal(format!("cannot connect to {host} securely: {err}"))
                .into(),
            ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::Protocol(_) => RequestFailure::Broken(format!(
                "cannot connect to {host}: {}",
                reason(&err.into_io())
            )),
            err => self
                .refusal(format!("{host} sent an answer that cannot be read: {err}"))
                .into(),
        }
    }

    /// Requests a JSON document. Returns the HTTP status and the document, or JSON's `null` for any other status than
    /// 200. If the connection breaks or the service has received too many requests, repeats the request after a pause.
    pub(super) fn document(&mut self, path: &str) -> Result<(u16, serde_json::Value)> {
        loop {
            match self.try_document(path) {
                Ok(document) => {
                    self.failures = 0;
                    return Ok(document);
                }
                Err(failure) => self.wait(failure)?,
            }
        }
    }

    fn try_document(&self, path: &str) -> Result<(u16, serde_json::Value), RequestFailure> {
        let mut answer = self.get(path, JSON, &[])?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Ok((status, serde_json::Value::Null));
        }
        let body = answer.body_mut().with_config().limit(u64::MAX).reader();
        let mut text = Vec::new();
        let mut body = PacedReader::new(body, Instant::now).take(MAX_DOCUMENT + 1);
        let read = body.read_to_end(&mut text);
        read.map_err(|err| self.interrupted(&err))?;
        if text.len() as u64 > MAX_DOCUMENT {
            return Err(self.too_long().into());
        }
        let document = serde_json::from_slice(&text);
        let document = document.map_err(|_| self.refusal(self.not_of_service()))?;
        Ok((status, document))
    }

    fn too_long(&self) -> Error {
        self.refusal(format!("the answer of {} is too long", self.host()))
    }

    fn not_of_service(&self) -> String {
        format!(
            "{} answered with a web page or another text instead of games: a proxy or a login page of the network may \
             answer instead of the service",
            self.host()
        )
    }

    fn interrupted(&self, err: &io::Error) -> RequestFailure {
        if err.get_ref().is_some_and(|err| err.is::<TooSlow>()) {
            return RequestFailure::TooSlow;
        }
        RequestFailure::Broken(format!(
            "the connection to {} broke: {}",
            self.host(),
            reason(err)
        ))
    }

    /// Reads an answer that consists of games in PGN. Passes the text of each game to `receive` as soon as it is
    /// complete.
    pub(super) fn games(
        &self,
        answer: Response<Body>,
        receive: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(), RequestFailure> {
        const NEXT: &[u8] = b"\n[Event ";
        let body = answer
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader();
        let mut body = PacedReader::new(body, Instant::now);
        let (mut held, mut searched, mut total) = (Vec::new(), 0, 0);
        let mut part = vec![0; 1 << 14];
        loop {
            let read = match body.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(err) => return Err(self.interrupted(&err)),
            };
            total += read as u64;
            held.extend_from_slice(&part[..read]);
            let text = held.trim_ascii_start();
            if !text.is_empty() && !b"[Event ".starts_with(&text[..text.len().min(7)]) {
                return Err(self.refusal(self.not_of_service()).into());
            }
            let mut start = 0;
            while let Some(end) = memchr::memmem::find(&held[searched..], NEXT) {
                let end = searched + end + 1;
                if !held[start..end].trim_ascii().is_empty() {
                    receive(&held[start..end])?;
                }
                (start, searched) = (end, end);
            }
            searched = searched.max(held.len().saturating_sub(NEXT.len()));
            held.drain(..start);
            searched -= start;
            if held.len() > MAX_GAME || total > MAX_ANSWER {
                return Err(self.too_long().into());
            }
        }
        let text = held.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        let mut last = GameReader::new(text);
        last.next_game();
        if !matches!(last.skip_moves(), GameEnd::Complete(Some(_))) {
            return Err(RequestFailure::Broken(format!(
                "the connection to {} broke within a game",
                self.host()
            )));
        }
        Ok(receive(text)?)
    }

    /// Resets the number of consecutive failures, because the service has sent all games.
    pub(super) fn has_succeeded(&mut self) {
        self.failures = 0;
    }

    /// Resets the number of consecutive failures, because the service has sent games before `failure`. If it sent them
    /// too slowly, does not reset the number, because the download could otherwise last forever.
    pub(super) fn has_sent_games_before(&mut self, failure: &RequestFailure) {
        if !matches!(failure, RequestFailure::TooSlow) {
            self.failures = 0;
        }
    }

    /// Waits after a failed request until the request may be repeated.
    ///
    /// # Errors
    ///
    /// Returns an error if repeating the request is useless, or after too many consecutive failures.
    pub(super) fn wait(&mut self, failure: RequestFailure) -> Result<()> {
        self.failures += 1;
        let (problem, pause) = match failure {
            RequestFailure::Final(err) => return Err(err),
            RequestFailure::Broken(problem) => (problem, self.pause()),
            RequestFailure::TooSlow => {
                let (host, seconds) = (self.host(), TIMEOUT.as_secs());
                let problem =
                    format!("{host} sent fewer than {MIN_BYTES} bytes in {seconds} seconds");
                (problem, self.pause())
            }
            RequestFailure::RateLimited => (
                format!("{} received too many requests", self.host()),
                RATE_LIMIT,
            ),
        };
        if self.failures >= MAX_FAILURES {
            return Err(self.refusal(format!("{problem}, {} times in a row", self.failures)));
        }
        (self.notify.0)(&problem, pause);
        Ok(())
    }

    /// Returns the pause before the next request. It doubles with each consecutive failure.
    fn pause(&self) -> Duration {
        FIRST_PAUSE * 2u32.pow(self.failures - 1)
    }
}

/// A reader of an answer that fails with [`TooSlow`] if fewer than [`MIN_BYTES`] bytes arrive in a [`TIMEOUT`]. The
/// function `now` returns the current time.
struct PacedReader<R, N> {
    body: R,
    now: N,
    /// The beginning of the period in which bytes are counted.
    start: Instant,
    bytes: u64,
}

/// The error of a [`PacedReader`] when data arrive too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the service sends too slowly")]
struct TooSlow;

impl<R: Read, N: Fn() -> Instant> PacedReader<R, N> {
    fn new(body: R, now: N) -> PacedReader<R, N> {
        PacedReader {
            start: now(),
            body,
            now,
            bytes: 0,
        }
    }
}

impl<R: Read, N: Fn() -> Instant> Read for PacedReader<R, N> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(buf)?;
        self.bytes += read as u64;
        let now = (self.now)();
        if read > 0 && now - self.start >= TIMEOUT {
            if self.bytes < MIN_BYTES {
                return Err(io::Error::other(TooSlow));
            }
            (self.start, self.bytes) = (now, 0);
        }
        Ok(read)
    }
}

/// Returns the message of an I/O error, without the error number that the standard library appends.
fn reason(err: &std::io::Error) -> String {
    crate::error::reason(err)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A service that sends some bytes in each read, each a number of seconds after the other.
    fn read_all(reads: usize, bytes: usize, seconds: u64) -> io::Result<usize> {
        let (start, passed) = (Instant::now(), Cell::new(0));
        let left = Cell::new(reads);
        let body = io::repeat(b'x');
        let mut body = PacedReader::new(body, || start + Duration::from_secs(passed.get()));
        let mut part = vec![0; bytes];
        let mut all = 0;
        while left.replace(left.get().saturating_sub(1)) > 0 {
            passed.set(passed.get() + seconds);
            all += body.read(&mut part)?;
        }
        Ok(all)
    }

    #[test]
    fn a_service_that_never_falls_silent_can_be_too_slow() {
        let is_too_slow = |read: io::Result<usize>| {
            read.is_err_and(|err| err.get_ref().is_some_and(|err| err.is::<TooSlow>()))
        };
        // A byte in each minute, and in each second.
        assert!(is_too_slow(read_all(100, 1, 59)));
        assert!(is_too_slow(read_all(100, 1, 1)));
        assert!(is_too_slow(read_all(100, 99, 1)));
        // An answer that ends before the first minute may have any length.
        assert_eq!(read_all(59, 1, 1).unwrap(), 59);
        assert_eq!(read_all(200, 100, 1).unwrap(), 20_000);
        assert_eq!(read_all(200, 6000, 59).unwrap(), 1_200_000);
    }

    #[test]
    fn a_slow_service_is_given_up_although_it_sends_games() {
        let account: Account = "lichess:me".parse().unwrap();
        let notice = Notice(Arc::new(|problem, _| {
            assert_eq!(
                problem,
                "lichess.org sent fewer than 6000 bytes in 60 seconds"
            );
        }));
        let server = Some("http://127.0.0.1:1");
        let mut client = ServiceClient::new(&account, server, None, &notice).unwrap();
        for failures in 1..=MAX_FAILURES {
            let failure = client.interrupted(&io::Error::other(TooSlow));
            client.has_sent_games_before(&failure);
            assert_eq!(client.wait(failure).is_err(), failures == MAX_FAILURES);
        }
    }
}
