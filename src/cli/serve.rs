//! `polybook serve`: runs a server that shows the openings of games in the browser, and answers requests of other
//! programs.

use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    panic::resume_unwind,
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use polybook::{
    Error, FileKind,
    book::is_book_or_empty,
    counts::CountsDirectory,
    explorer::{Explorer, Selection},
    make_book::Unfinished,
    openings::OpeningFilter,
    serve::{
        BookFile, Cache, CachedIndex, IndexProgress, Indexing, Listening, Log, Origin, Served,
        ServedRepertoire, Server, Stop, host_name, source_name, stored_color,
    },
    storage::output::{is_directory, is_regular_file, repeated},
};

use shakmaty::Color;

use super::{
    Context,
    argv::with_side,
    errors,
    evals::EvalsArg,
    filters,
    index_cache::{RunningBuild, ensure_built, nothing_to_show, rebuild_if_damaged},
    input, plural,
    position::UntaggedArg,
    repertoire::Opener,
    resources::count,
    signals, terminal,
    usage::Usage,
    weighting::one_of,
};

/// The maximum time that the server waits, when it shuts down, for requests that are still being processed. It does not
/// wait for requests that make books, but cancels them.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(3);

/// The time that the server waits until the indexes of its sources are complete, before it serves a page that shows
/// their progress. The indexes of small files are usually complete earlier.
const INDEX_WAIT: Duration = Duration::from_secs(1);

/// Show games in the browser, and answer the requests of Lichess's opening explorer API
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook serve games.pgn --open
      index the games at the first start, and show them
  polybook make-book games.pgn --explorer games.idx && polybook serve games.idx
      the same, with an index that you keep
  polybook serve games.idx week.pgn --book my.bin
      several sources as one, and the moves of a book
  polybook make-book all.counts --explorer all.idx && polybook serve all.idx
      counts by speed, rating and month, without games
  curl 'http://127.0.0.1:8040/lichess?play=e2e4'
      the request that programs make")]
pub struct Args {
    /// Indexes made with make-book --explorer, or PGN files. A PGN file is indexed when it is given for the first time
    #[arg(value_name = "SOURCE")]
    sources: Vec<PathBuf>,

    /// Listen at this address and port; port 0 chooses a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8040")]
    listen: SocketAddr,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,

    /// Also show the moves of this book or OOBS database; can be given several times
    #[arg(long, value_name = "FILE")]
    book: Vec<PathBuf>,

    /// Also show the moves and the gaps of this repertoire. Give a PGN file, a book or an OOBS database and its side,
    /// as FILE:white or FILE:black. Can be given several times
    #[arg(long, value_name = "FILE:COLOR", value_parser = with_side)]
    repertoire: Vec<(PathBuf, Color)>,

    /// Store the repertoires that visitors build or drop on the page in this directory, with the results of practising
    /// them, and show them to all visitors, also after the next start. Without the option, they are lost when the server
    /// ends
    #[arg(long, value_name = "DIR")]
    repertoire_dir: Option<PathBuf>,

    /// Show your games when you press the button "Your names" of the page. Give your whole name as the games spell it;
    /// capital and small letters are the same. Give the option once for each of your names
    #[arg(long, value_name = "NAME", value_parser = filters::name)]
    me: Vec<String>,

    /// Show only the games whose moves lead to this opening when the page opens. Give a part of a name, or a range of
    /// ECO codes such as B20-B99. Visitors can remove this filter
    #[arg(long, value_name = "NAME|CODES")]
    opening: Option<OpeningFilter>,

    #[command(flatten)]
    evals: EvalsArg,

    /// Let visitors of the page make a book from the games, if the PGN files contain at most N games; 0 turns this off
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = count::<u64>(0))]
    book_games: u64,

    /// Count a game without a result as a draw (draw), or leave it out (skip), in responses in the format of Lichess's
    /// API. Scores and performance ratings never include games without a result
    #[arg(
        long,
        value_name = "draw|skip",
        default_value = "draw",
        value_parser = one_of([("draw", Unfinished::Draw), ("skip", Unfinished::Skip)]),
    )]
    unfinished: Unfinished,

    #[command(flatten)]
    untagged: UntaggedArg,

    /// Also accept requests for this host name, such as the name of a reverse proxy; can be given several times
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    allow_host: Vec<String>,

    /// Let web pages of this origin, such as https://chess.example, read the server's answers and embed its board. The
    /// value * allows every origin. Can be given several times [default: none]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<Origin>,

    /// Take the address of a visitor from the last entry of the header X-Forwarded-For if the request comes from this IP
    /// address of a reverse proxy, such as 127.0.0.1. The limits for one client address then apply to each visitor of the
    /// proxy. Can be given several times [default: none]
    #[arg(long, value_name = "IP")]
    trust_proxy: Vec<IpAddr>,

    /// Serve the texts of games from PGN files in this directory, too. Without the option, the PGN files of an index must
    /// be in the directory that contains the index, or below it. Can be given several times
    #[arg(long, value_name = "DIR")]
    allow_pgn: Vec<PathBuf>,

    /// Use N threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Option<u16>,

    /// Write the indexes of PGN files to a temporary directory, and delete them when the server stops
    #[arg(long)]
    no_cache: bool,

    /// Print a line for each request
    #[arg(short, long)]
    verbose: bool,
}

impl Args {
    /// Returns the number of threads that the user requested, or 0, which means one thread per core.
    fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

/// The advice that an error message gives if an index cannot be written to the cache.
const NOT_KEPT: &str = "the index cannot be kept for the next start: add --no-cache to make the index in a temporary directory";

/// Adds the advice [`NOT_KEPT`] to an error if it concerns a file in `cache`, the cache of indexes. Returns other
/// errors unchanged. `cache` is `None` if the user gave `--no-cache`.
fn explain_cache(err: anyhow::Error, cache: Option<&Cache>) -> anyhow::Error {
    let path = match err.downcast_ref() {
        Some(Error::Io { path, .. }) => path,
        _ => return err,
    };
    if cache.is_some_and(|cache| path.starts_with(cache.path())) {
        err.context(NOT_KEPT)
    } else {
        err
    }
}

/// The text that is printed if the user named no games. It explains how to download one's own games.
const GAMES: &str = "\
polybook serve games.pgn --open    shows games in the browser. These commands download your own games:
polybook download lichess:NAME --out games.pgn
polybook download chesscom:NAME --out games.pgn
";

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    if args.sources.is_empty() {
        context.say(GAMES);
        return Err(Usage("no games are given; see polybook serve --help".to_owned()).into());
    }
    let of_me = Selection {
        player: args.me.clone(),
        exact: true,
        ..Selection::default()
    };
    let checked = of_me.check_for_index();
    checked.map_err(|err| Usage(format!("--me: {err}")))?;
    let all_indexes = args.sources.iter().all(|source| source.is_dir());
    let cache = (!all_indexes).then(|| cache(args)).transpose()?;
    let sources = sources(args, cache.as_ref())?;
    // Bind the address first, so that an address in use is reported before the files are indexed.
    let listener = TcpListener::bind(args.listen).map_err(|err| cannot_listen(args.listen, err))?;
    let books = args.book.iter();
    let books = books.map(|path| Ok(BookFile::open(input::file_of(path)?)?));
    let books: Vec<BookFile> = books.collect::<anyhow::Result<_>>()?;
    let repertoires = repertoires(args, context)?;
    let evals = args.evals.open()?;
    let mut must_index = false;
    for index in sources.iter().filter_map(|source| source.cached.as_ref()) {
        must_index |= !index.is_made()?;
    }
    let opened = if must_index {
        open_while_answering(&sources, args, context, &listener)
    } else {
        open(&sources, args, context, &Mutex::default()).map(|explorer| (explorer, false))
    };
    let kept = cache.as_ref().filter(|_| !args.no_cache);
    let (explorer, is_announced) = opened.map_err(|err| explain_cache(err, kept))?;
    let explorer = match args.unfinished {
        Unfinished::Draw => explorer,
        Unfinished::Skip => explorer.skip_unfinished()?,
    };
    refuse_other_files(&sources, &explorer, &args.allow_pgn)?;
    warn_of_unknown_names(&of_me, &explorer, context)?;
    warn_of_missing_files(&sources, &explorer, context);
    let server = Server {
        explorer,
        books,
        repertoires,
        repertoire_directory: args.repertoire_dir.clone(),
        me: args.me.clone(),
        evals,
        hosts: args.allow_host.clone(),
        origins: args.allow_origin.clone(),
        proxies: args.trust_proxy.clone(),
        book_games: args.book_games,
        threads: args.threads(),
        log: args.verbose.then(|| Box::new(print_served) as Log),
    };
    let listening = server.listen(listener)?;
    if !is_announced {
        announce(args, context, listening.address())?;
    }
    until_signal(listening)
}

/// Prints a warning for each name that occurs in no game of `explorer`. `of_me` contains the names that the user gave
/// with `--me`.
fn warn_of_unknown_names(
    of_me: &Selection,
    explorer: &Explorer,
    context: Context,
) -> anyhow::Result<()> {
    // An index of counts contains no names.
    if explorer.lacks_games(None, "names").is_some() {
        return Ok(());
    }
    for unknown in explorer.unknown_names(of_me)? {
        context.say(&format!("warning: --me: {unknown}\n"));
    }
    Ok(())
}

/// Returns an error if an index refers to a PGN file that is neither below the directory of the index nor in one of the
/// directories `allowed`. The server publishes the texts of games, and an index from an unknown origin may refer to any
/// file. Indexes in the cache refer only to PGN files that the user gave.
fn refuse_other_files(
    sources: &[ServedSource<'_>],
    explorer: &Explorer,
    allowed: &[PathBuf],
) -> anyhow::Result<()> {
    let mut directories = Vec::new();
    for directory in allowed {
        let found = directory.canonicalize();
        directories.push(found.with_context(|| format!("cannot open {}", directory.display()))?);
    }
    for source in sources.iter().filter(|source| source.cached.is_none()) {
        let home = source.path.canonicalize()?;
        let home = home.parent().unwrap_or(&home);
        for pgn in explorer.pgn_paths(Some(&source.name)) {
            // A missing file has no text. If it appears later, a link in its path may lead elsewhere.
            let path = pgn.canonicalize().unwrap_or_else(|_| pgn.to_owned());
            let mut parts = path.components();
            let is_plain = !parts.any(|part| part == Component::ParentDir);
            let mut served = directories.iter().map(PathBuf::as_path).chain([home]);
            if !is_plain || !served.any(|directory| path.starts_with(directory)) {
                let directory = path.parent().unwrap_or(&path);
                let problem = format!(
                    "the games of this index are in {}, outside of {}, and the server would publish their texts: allow \
                     this with --allow-pgn {}",
                    path.display(),
                    home.display(),
                    directory.display()
                );
                return Err(Error::file(source.path, problem).into());
            }
        }
    }
    Ok(())
}

/// Prints a warning for each PGN file of the `sources` that no longer exists at the path at which it was indexed. The
/// server can count the games of such a file, but cannot show their texts.
fn warn_of_missing_files(sources: &[ServedSource<'_>], explorer: &Explorer, context: Context) {
    for source in sources {
        for pgn in explorer.pgn_paths(Some(&source.name)) {
            if !pgn.exists() {
                let name = pgn.display();
                context.say(&format!(
                    "warning: {name} is no longer where it was when {} was made, so its games cannot be opened: put \
                     the file back, or make the index again\n",
                    source.path.display()
                ));
            }
        }
    }
}

fn cannot_listen(address: SocketAddr, err: io::Error) -> anyhow::Error {
    match err.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "another program already listens at {address}: open http://{address}/ if that program is polybook, or use \
             a free port with --listen 127.0.0.1:0"
        ),
        _ => anyhow::Error::new(err).context(format!("cannot listen at {address}")),
    }
}

/// Opens the repertoires that `--repertoire` names, and those that are stored in `--repertoire-dir`. Returns an error if
/// two of them have the same name and side.
fn repertoires(args: &Args, context: Context) -> anyhow::Result<Vec<ServedRepertoire>> {
    let mut files = args.repertoire.clone();
    if let Some(directory) = &args.repertoire_dir {
        let problem = || format!("cannot read {}", directory.display());
        for entry in fs::read_dir(directory).with_context(problem)? {
            let path = entry.with_context(problem)?.path();
            let Some(color) = stored_color(&path) else {
                continue;
            };
            // Opening a pipe would block the thread.
            if is_regular_file(&path)? {
                files.push((path, color));
            } else {
                let name = path.display();
                context.say(&format!(
                    "warning: {name} is left out, because it is not a file\n"
                ));
            }
        }
        files[args.repertoire.len()..].sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut named: HashMap<(String, Color), &Path> = HashMap::new();
    for (path, color) in &files {
        let (path, name) = (path.as_path(), source_name(path));
        if let Some(other) = named.insert((name.clone(), *color), path) {
            let is_same = other == path || repeated([other, path]).next().is_some();
            let (other, path) = (other.display(), path.display());
            let problem = if is_same {
                format!("the repertoire {path} for {color} is given twice: leave one out")
            } else {
                format!(
                    "two repertoires for {color} have the name \"{name}\": rename {other} or {path}"
                )
            };
            return Err(Usage(problem).into());
        }
    }
    let opener = Opener::with_defaults(&args.untagged, context)?;
    let opened = files.iter().map(|(path, color)| {
        Ok(ServedRepertoire::new(
            path,
            *color,
            opener.repertoire(path, *color)?,
        )?)
    });
    opened.collect()
}

/// A source of games to serve, which is an index or a PGN file. The server first builds the index of a PGN file.
struct ServedSource<'a> {
    /// The file name without its endings.
    name: String,
    path: &'a Path,
    /// The location of the PGN file's index in the cache, or `None` if `path` is an index.
    cached: Option<CachedIndex>,
}

/// Returns `true` if the file at `path` is a Polyglot book that contains records.
fn is_book(path: &Path) -> polybook::Result<bool> {
    let has_records = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.len() > 0);
    Ok(has_records && is_book_or_empty(path)?)
}

/// Returns an error if `path`, a source that the user named, is a counts directory, an SQLite database or a Polyglot
/// book. The server can show only sources that contain games.
fn refuse_results(path: &Path) -> polybook::Result<()> {
    let name = path.display();
    let problem = match FileKind::of(path) {
        Ok(FileKind::Counts) => match CountsDirectory::index_advice(path) {
            Some(problem) => format!("{}, and serve the index", problem.worded(errors::spelled)),
            None => return Ok(()),
        },
        Ok(FileKind::Sqlite) => format!(
            "this is an SQLite database: if it is an OOBS database, show it next to games with polybook serve \
             games.pgn --book {name}"
        ),
        Ok(FileKind::Other) if is_book(path)? => format!(
            "this is a Polyglot book: show it next to games with polybook serve games.pgn --book {name}"
        ),
        _ => return Ok(()),
    };
    Err(Error::file(path, problem))
}

/// Checks the sources that the user named, and determines where their indexes are in `cache`. Returns an error if a
/// source is neither an index nor a file, or if two sources have the same name.
fn sources<'a>(args: &'a Args, cache: Option<&Cache>) -> anyhow::Result<Vec<ServedSource<'a>>> {
    let mut sources: Vec<ServedSource<'a>> = Vec::new();
    for path in &args.sources {
        refuse_results(path)?;
        let is_directory = is_directory(path)?;
        if is_directory && !input::has_index(path)? {
            let files = path.join("*.pgn");
            let files = files.display();
            let problem = format!(
                "this is a directory, but not an index: give the PGN files in the directory, such as {files}"
            );
            return Err(Error::file(path, problem).into());
        }
        let name = source_name(path);
        if sources.iter().any(|source| source.name == name) {
            let problem = format!("two sources have the name \"{name}\": rename one of the files");
            return Err(Usage(problem).into());
        }
        let cache = cache.filter(|_| !is_directory);
        let cached = cache
            .map(|cache| cache.of(path, args.untagged.untagged_variant))
            .transpose()?;
        sources.push(ServedSource { name, path, cached });
    }
    Ok(sources)
}

/// Opens the indexes of all sources as one explorer. If this takes longer than [`INDEX_WAIT`], prints the address of
/// `listener`, and serves a page there that shows the progress until the indexes are open. Returns the explorer, and
/// `true` if the address was printed.
fn open_while_answering(
    sources: &[ServedSource<'_>],
    args: &Args,
    context: Context,
    listener: &TcpListener,
) -> anyhow::Result<(Explorer, bool)> {
    let running = Arc::new(RunningBuild::default());
    let shown = Arc::clone(&running);
    let indexing = Indexing {
        sources: sources.iter().map(|source| source.name.clone()).collect(),
        how_far: Arc::new(move || {
            let running = shown.lock().unwrap_or_else(PoisonError::into_inner);
            running.as_ref().map_or_else(IndexProgress::default, |run| {
                let ((read, of), done) = (run.bytes(), run.fraction());
                IndexProgress { read, of, done }
            })
        }),
        hosts: args.allow_host.clone(),
        origins: args.allow_origin.clone(),
    };
    let stop = Stop::default();
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        let opening = || {
            let _ended = ended;
            open(sources, args, context, &running)
        };
        let opening = thread::Builder::new().spawn_scoped(scope, opening);
        let opening = opening.context("cannot start a thread for the index")?;
        let opened = || opening.join().unwrap_or_else(|panic| resume_unwind(panic));
        if end.recv_timeout(INDEX_WAIT) != Err(RecvTimeoutError::Timeout) {
            return Ok((opened()?, false));
        }
        let listener = listener.try_clone().context("cannot share the listener")?;
        let listening = indexing.listen(listener)?;
        let address = listening.address();
        let answering = thread::Builder::new().spawn_scoped(scope, || listening.run(&stop));
        answering.context("cannot start a thread for the page")?;
        announce(args, context, address)?;
        let opened = opened();
        stop.stop();
        Ok((opened?, true))
    })
}

/// Opens the indexes of all sources as one explorer. Builds missing indexes of PGN files first, and rebuilds damaged
/// ones. Stores the progress in `running`, from which another thread can read it.
fn open(
    sources: &[ServedSource<'_>],
    args: &Args,
    context: Context,
    running: &RunningBuild,
) -> anyhow::Result<Explorer> {
    let (mut shown, mut without_games) = (Vec::new(), Vec::new());
    for source in sources {
        let made = source.cached.as_ref().map_or(Ok(()), |index| {
            ensure_built(source.path, index, args.threads(), context, running)
        });
        match made {
            Err(Error::Empty { reason }) => {
                without_games.push((source.path, reason));
            }
            made => {
                made?;
                shown.push(source);
            }
        }
    }
    for (pgn, reason) in without_games {
        if shown.is_empty() {
            return Err(nothing_to_show(pgn, &reason).into());
        }
        let (name, reason) = (pgn.display(), reason.worded(errors::spelled));
        context.say(&format!("warning: {name} is left out: {reason}\n"));
    }
    let open = || {
        Explorer::open(shown.iter().map(|source| {
            let index = source
                .cached
                .as_ref()
                .map_or(source.path, CachedIndex::path);
            (source.name.clone(), index.to_owned())
        }))
    };
    if let Ok(opened) = open() {
        return Ok(opened);
    }
    let cached = shown
        .iter()
        .filter_map(|source| Some((source.path, source.cached.as_ref()?)));
    for (pgn, index) in cached {
        rebuild_if_damaged(pgn, index, args.threads(), context, running)?;
    }
    Ok(open()?)
}

/// Opens the cache for the indexes of PGN files. The cache is in the user's cache directory or, with `--no-cache`, in a
/// temporary directory.
fn cache(args: &Args) -> anyhow::Result<Cache> {
    let stdin = Path::new("-");
    for source in args.sources.iter().filter(|source| *source == stdin) {
        input::refuse_stream(source)?;
    }
    if args.no_cache {
        return Ok(Cache::temporary()?);
    }
    let Some(directory) = dirs::cache_dir() else {
        let usage = "this system has no cache directory, so polybook cannot keep the index of the games: add --no-cache, \
                     or make an index with make-book --explorer and serve the index";
        return Err(Usage(usage.to_owned()).into());
    };
    let directory = directory.join("polybook");
    Cache::new(directory).context(NOT_KEPT)
}

/// Prints `address`, at which the server listens, and opens it in the browser if `--open` is given.
fn announce(args: &Args, context: Context, address: SocketAddr) -> anyhow::Result<()> {
    if !address.ip().is_loopback() {
        context.say("warning: anyone who reaches this port can read the games\n");
    }
    // A browser cannot open the unspecified address, such as 0.0.0.0.
    let shown = match address {
        SocketAddr::V4(_) if address.ip().is_unspecified() => {
            format!("127.0.0.1:{}", address.port())
        }
        SocketAddr::V6(_) if address.ip().is_unspecified() => format!("[::1]:{}", address.port()),
        address => address.to_string(),
    };
    // The page reads its first filters from its address.
    let query = args.opening.as_ref().map_or_else(String::new, |opening| {
        let mut query = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1);
        query.append_pair("opening", &opening.to_string()).finish()
    });
    let page = format!("http://{shown}/{query}");
    terminal::print(&format!("{page}\n"))?;
    let advice = if !args.open {
        "open this address in the browser; ".to_owned()
    } else if open::that_detached(&page).is_err() {
        format!("polybook could not start a browser: open {page} yourself; ")
    } else {
        String::new()
    };
    if address.ip().is_unspecified()
        && let Some(ip) = network_address(address)
    {
        let port = address.port();
        let reached = SocketAddr::new(ip, port);
        context.say(&format!(
            "other devices in the network open http://{reached}/{query}\n"
        ));
    }
    context.say(&format!("{advice}Ctrl-C stops the server\n"));
    Ok(())
}

/// Returns the IP address of this machine in its network, or `None` if it has none. It is of the same version (IPv4 or
/// IPv6) as `listening`, the address of the server. To find the address, connects a UDP socket, which sends no packets.
fn network_address(listening: SocketAddr) -> Option<IpAddr> {
    // These addresses are reserved for documentation, so no machine has them.
    let (any, remote): (IpAddr, IpAddr) = match listening {
        SocketAddr::V4(_) => (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        SocketAddr::V6(_) => (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((remote, 9)).ok()?;
    let found = socket.local_addr().ok()?.ip();
    (!found.is_loopback() && !found.is_unspecified()).then_some(found)
}

/// Serves requests until a signal ends the program. Then waits until the requests that are still being processed have
/// been answered, but for at most [`SHUTDOWN_WAIT`].
fn until_signal(listening: Listening) -> anyhow::Result<()> {
    let stop = Stop::default();
    let (ended, end) = mpsc::channel();
    let stopping = stop.clone();
    signals::before_end(move || {
        stopping.stop();
        // Answers that take longer are cut off by the end of the program.
        let _ = end.recv_timeout(SHUTDOWN_WAIT);
        // A signal is the normal end of a server.
        "stopped".to_owned()
    });
    errors::report_panics_at_once();
    let served = listening.run(&stop);
    // The receiver exists only after a signal, so an error is ignored.
    let _ = ended.send(());
    Ok(served?)
}

fn print_served(served: &Served) {
    let Served {
        method,
        path,
        status,
        time,
        left_out,
    } = served;
    let milliseconds = time.as_secs_f64() * 1e3;
    let mut line = format!("{status} {milliseconds:.1} ms {method} {path}\n");
    if *left_out > 0 {
        line = format!("{} not logged\n{line}", plural(*left_out, "request"));
    }
    // The server continues even if standard error cannot be written, so an error is ignored.
    let _ = terminal::stderr().write_all(line.as_bytes());
}
