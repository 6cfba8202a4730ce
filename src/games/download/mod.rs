//! Downloads the games of players from Lichess and Chess.com, and adds them to a PGN file.
//!
//! A [`Download`] sends one request at a time, and only over HTTPS. Games whose URLs the file already contains are left
//! out. When the download ends, the file is replaced as a whole. If a part of the download fails, the games that were
//! received before are kept, and the next download continues after them.

mod client;
mod collection;
mod completed;
mod services;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::client::AccessToken;
use self::{
    client::ServiceClient,
    collection::{Added, Arrival, Collection},
};
use crate::{
    error::{Error, Result},
    games::{
        pgn::Tags,
        selection::{RatedStatus, Selection},
    },
    progress::Meter,
};

/// A website from which games can be downloaded.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Service {
    /// The website lichess.org.
    Lichess,
    /// The website Chess.com.
    ChessCom,
}

impl Service {
    /// Returns the name of the host to which requests are sent.
    pub fn host(self) -> &'static str {
        match self {
            Service::Lichess => "lichess.org",
            Service::ChessCom => "api.chess.com",
        }
    }

    /// Returns the name of the host in the URLs of games.
    fn site(self) -> &'static str {
        match self {
            Service::Lichess => "lichess.org/",
            Service::ChessCom => "chess.com/",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Service::Lichess => "lichess",
            Service::ChessCom => "chesscom",
        }
    }
}

/// The account of a player at a service. It is written as `lichess:NAME` or `chesscom:NAME`.
///
/// ```
/// use polybook::download::{Account, Service};
/// let account: Account = "lichess:thibault".parse()?;
/// assert_eq!(account.service, Service::Lichess);
/// assert!("thibault".parse::<Account>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Account {
    /// The website to which the account belongs.
    pub service: Service,
    /// The name of the player: letters, digits, hyphens and underscores.
    name: String,
}

impl Account {
    /// Returns the name of the player.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the game with these tags was played by this account.
    fn played(&self, tags: &Tags<'_>) -> bool {
        let is_name = |tag: &[u8]| {
            let name = tags.get(tag);
            name.is_some_and(|name| name.eq_ignore_ascii_case(self.name.as_bytes()))
        };
        let is_of_service = |tag: &[u8]| {
            let site = tags.get(tag).map(String::from_utf8_lossy);
            site.is_some_and(|site| site.contains(self.service.site()))
        };
        (is_name(b"White") || is_name(b"Black"))
            && (is_of_service(b"Link") || is_of_service(b"Site"))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.service.prefix(), self.name)
    }
}

/// If the string is not an account, the error explains how to write one.
impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Account, String> {
        const MAX_NAME: usize = 50;
        let (service, name) = text.trim().split_once(':').unwrap_or(("", text));
        let service = match &*service.to_ascii_lowercase() {
            "lichess" | "lichess.org" => Service::Lichess,
            "chesscom" | "chess.com" => Service::ChessCom,
            _ => return Err("use lichess:NAME or chesscom:NAME".to_owned()),
        };
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_letter) {
            return Err("use the name of the account: letters, digits, - and _".to_owned());
        }
        Ok(Account {
            service,
            name: name.to_owned(),
        })
    }
}

/// A function that receives the reason for a pause and its length, and returns after this time.
pub type WaitFn = dyn Fn(&str, Duration) + Send + Sync;

/// The function that a [`Download`] calls when it must pause, for example for a minute after too many requests. It
/// tells the user the reason, and sleeps during the pause.
#[derive(Clone)]
pub struct Notice(pub Arc<WaitFn>);

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notice")
    }
}

/// Options for a [`Download`]: the conditions that games must meet, and what is added to the games.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// The conditions that games must meet. The services apply the conditions on dates, speeds and rated games.
    /// polybook applies all conditions to the tags of the received games.
    pub selection: Selection,
    /// The maximum number of games of each account, or `None` for no limit. The newest games are downloaded.
    pub max: Option<u64>,
    /// Whether Lichess adds the evaluations of its computer analyses to the games.
    pub evals: bool,
    /// Whether Lichess adds clock times after the moves. Games from Chess.com always contain them.
    pub clocks: bool,
}

/// The outcome of a download.
#[derive(Debug)]
pub struct Downloaded {
    /// The number of games that were added to the file.
    pub new: u64,
    /// The number of games that the file contains after the download.
    pub games: u64,
    /// The reason why the download ended early, or `None` if it is complete.
    pub failure: Option<Error>,
}

/// A download of the games of accounts to a PGN file. [`run`](Download::run) starts the download.
#[derive(Debug)]
pub struct Download {
    accounts: Vec<Account>,
    out: PathBuf,
    options: Options,
    token: Option<AccessToken>,
    server: Option<String>,
    notify: Notice,
    meter: Arc<Meter>,
    collected: Collected,
}

/// A handle to the games that a running download has received, but not yet added to the file. If the user interrupts the download, the thread
/// that handles the interrupt calls [`keep`](Collected::keep) to add these games to the file.
#[derive(Clone, Default, Debug)]
pub struct Collected(Arc<Mutex<DownloadState>>);

/// The progress of a download.
#[derive(Default, Debug)]
enum DownloadState {
    #[default]
    NotStarted,
    Receiving(Box<Collection>),
    /// The file has been written. Contains the number of new games.
    Written(u64),
}

impl Collected {
    /// Adds the games received so far to the file, and stops the download. If the download is already writing the file,
    /// waits until the file is complete. Returns the number of games that were added, or `None` if the download has not
    /// started.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn keep(&self) -> Result<Option<u64>> {
        let (written, noted) = match self.write()? {
            Some((new, _, noted)) => (Some(new), noted),
            None => match *self.lock() {
                DownloadState::Written(new) => (Some(new), Ok(())),
                _ => (None, Ok(())),
            },
        };
        noted.map(|()| written)
    }

    fn lock(&self) -> MutexGuard<'_, DownloadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the file like [`Collection::commit`], and stops the download. Returns `None` if the download has not
    /// started, or has already written the file.
    fn write(&self) -> Result<Option<(u64, u64, Result<()>)>> {
        // An interrupt waits for the lock, so that it does not end the program while the file is written.
        let mut progress = self.lock();
        match std::mem::take(&mut *progress) {
            DownloadState::Receiving(collection) => {
                let written = collection.commit()?;
                *progress = DownloadState::Written(written.0);
                Ok(Some(written))
            }
            other => {
                *progress = other;
                Ok(None)
            }
        }
    }

    /// Adds the games received so far to the file if they are many, and continues the download.
    fn add_if_large(&self) -> Result<()> {
        let mut progress = self.lock();
        *progress = match std::mem::take(&mut *progress) {
            DownloadState::Receiving(games) if games.is_large() => {
                DownloadState::Receiving(Box::new(games.reopened()?))
            }
            other => other,
        };
        Ok(())
    }

    /// Passes the games received so far to `work`, and returns its result. Returns [`Error::Interrupted`] if
    /// [`keep`](Collected::keep) has been called.
    fn with<T>(&self, work: impl FnOnce(&mut Collection) -> Result<T>) -> Result<T> {
        match &mut *self.lock() {
            DownloadState::Receiving(collection) => work(collection),
            _ => Err(Error::Interrupted),
        }
    }
}

impl Download {
    /// Creates a download of the games of `accounts` to the file `out`. `notify` is called for each pause.
    pub fn new(
        accounts: Vec<Account>,
        out: impl AsRef<Path>,
        options: Options,
        notify: Notice,
    ) -> Download {
        Download {
            accounts,
            out: out.as_ref().to_owned(),
            options,
            token: None,
            server: None,
            notify,
            meter: Arc::default(),
            collected: Collected::default(),
        }
    }

    /// Sets the access token that identifies the user to Lichess. Lichess sends games faster to users that it knows.
    pub fn token(mut self, token: Option<AccessToken>) -> Download {
        self.token = token;
        self
    }

    /// Sends all requests to `server` instead of the real websites. `server` must be the address of a server on this
    /// computer, such as `http://127.0.0.1:8080`. This option is for tests.
    ///
    /// # Errors
    ///
    /// Returns an error if the address does not belong to this computer.
    pub fn server(mut self, server: Option<String>) -> Result<Download> {
        let is_local = |server: &String| {
            let uri = server.parse::<ureq::http::Uri>().ok();
            let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
            let host = host.trim_matches(['[', ']']);
            let address = host.parse::<std::net::IpAddr>();
            let is_address = address.is_ok_and(|address| address.is_loopback());
            server.starts_with("http://") && (is_address || host == "localhost")
        };
        if let Some(server) = server.as_ref().filter(|server| !is_local(server)) {
            let problem = "only a server on this computer can replace the services";
            return Err(Error::failed(server, problem));
        }
        self.server = server;
        Ok(self)
    }

    /// Returns a progress meter that shows how many games have been received, and how many are expected.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Returns a handle to the received games. The thread that handles an interrupt by the user needs it.
    pub fn collected(&self) -> Collected {
        self.collected.clone()
    }

    /// Downloads the games and adds them to the file. If a service fails, adds the games that were received before the
    /// failure, and returns the reason in [`Downloaded::failure`].
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written, or if a condition cannot be applied to the games of a
    /// service. Returns [`Error::Interrupted`] if [`Collected::keep`] has stopped the download.
    pub fn run(&self) -> Result<Downloaded> {
        self.check()?;
        let max = self
            .options
            .max
            .map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        let conditions = self.options.selection.option_text();
        let collection = Collection::open(&self.out, &self.accounts, &conditions, max)?;
        *self.collected.lock() = DownloadState::Receiving(Box::new(collection));
        let mut failure = None;
        for (number, account) in self.accounts.iter().enumerate() {
            let server = self.server.as_deref();
            let downloaded = ServiceClient::new(account, server, self.token.as_ref(), &self.notify)
                .and_then(|client| self.download(number, account, client));
            let failed = match downloaded {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                downloaded => downloaded.err(),
            };
            match self.collected.with(|games| Ok(games.is_broken())) {
                // The other accounts are independent of this one.
                Ok(is_broken) => {
                    failure = failure.or(failed);
                    if is_broken {
                        break;
                    }
                }
                // The file could not be written.
                Err(err) => return Err(failed.unwrap_or(err)),
            }
        }
        let (new, games, noted) = self.collected.write()?.ok_or(Error::Interrupted)?;
        Ok(Downloaded {
            new,
            games,
            failure: failure.or(noted.err()),
        })
    }

    /// Returns an error if an account is at Chess.com and the conditions require games to be rated or not, because the
    /// tags of Chess.com's games do not contain this property.
    fn check(&self) -> Result<()> {
        let rated = self.options.selection.rated.as_ref();
        let is_unknown = rated.is_some_and(|wanted| !wanted.contains(&RatedStatus::Unknown));
        let mut accounts = self.accounts.iter();
        match accounts.find(|account| account.service == Service::ChessCom) {
            Some(account) if is_unknown => {
                let problem = "the games of Chess.com do not say whether they are rated: download this account without \
                               a condition on that";
                Err(Error::file(account.to_string(), problem))
            }
            _ => Ok(()),
        }
    }

    fn download(&self, number: usize, account: &Account, client: ServiceClient<'_>) -> Result<()> {
        match account.service {
            Service::Lichess => self.lichess_games(number, account, client),
            Service::ChessCom => self.chess_com_games(number, account, client),
        }
    }

    /// Adds a received game of the account `accounts[number]`.
    fn add(&self, number: usize, text: &[u8], arrival: Arrival) -> Result<Added> {
        let selection = &self.options.selection;
        let added = self
            .collected
            .with(|games| games.add(number, text, arrival, |tags| selection.admits(tags)))?;
        self.collected.add_if_large()?;
        if added.is_new {
            self.meter.advance(1);
        }
        Ok(added)
    }
}
