//! `polybook serve`: an opening explorer over one's own games, for browsers and programs.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use anyhow::Context as _;
use polybook::{
    Error,
    explorer::Explorer,
    serve::{BookFile, Cache, CachedIndex, Listening, Served, Server, Stop},
};
use tempfile::TempDir;

use super::{Context, counted::counted, errors, progress::Bar, signals, usage::Usage};

/// How long the end waits for answers that are under way.
const LAST_ANSWERS: Duration = Duration::from_millis(700);

/// Show games in a browser, and answer programs as Lichess's opening explorer does
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook serve games.pgn --open
      index the games, once, and show them
  polybook make-book games.pgn --leveldb games.idx --explorer && polybook serve games.idx
      the same with an index of one's own
  polybook serve games.idx week.pgn --book my.bin
      several sources answered as one, and what a book plays beside the counts
  curl 'http://127.0.0.1:8040/lichess?play=e2e4'
      what programs ask")]
pub struct Args {
    /// Indexes made with --explorer, or PGN files, which are indexed first
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// Listen at this address and port; port 0 is any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8040")]
    listen: SocketAddr,

    /// Show the page in the browser
    #[arg(long)]
    open: bool,

    /// Show what this book or OOBS database plays beside the counts; may be given several times
    #[arg(long, value_name = "FILE")]
    book: Vec<PathBuf>,

    /// Answer under this name too, such as that of a reverse proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Threads to work on [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Option<u16>,

    /// Make the indexes of PGN files in a temporary directory instead of keeping them for the next time
    #[arg(long)]
    no_cache: bool,

    /// Print a line for each request
    #[arg(short, long)]
    verbose: bool,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let named = named(&args.sources)?;
    let books = args.book.iter().map(BookFile::open);
    let books: Vec<BookFile> = books.collect::<Result<_, _>>()?;
    let (indexes, _temporary) = indexes(args, context)?;
    let explorer = Explorer::open(named.into_iter().zip(indexes))?;
    let threads = args.threads.map_or(0, usize::from);
    let mut server = Server::new(explorer).threads(threads);
    for book in books {
        server = server.book(book);
    }
    for host in &args.allow_host {
        server = server.allow_host(host);
    }
    if args.verbose {
        server = server.log(print_served);
    }
    let listening = server.bind(args.listen)?;
    announce(args, context, listening.address())?;
    until_signal(listening)
}

/// The names of sources: those of their files without endings, each once.
fn named(sources: &[PathBuf]) -> Result<Vec<String>, Usage> {
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for path in sources {
        let name = polybook::serve::source_name(path);
        if !seen.insert(name.clone()) {
            let problem = format!("two sources are called \"{name}\": rename one of the files");
            return Err(Usage(problem));
        }
        names.push(name);
    }
    Ok(names)
}

/// The indexes of the sources. Those of PGN files are made first, and live as long as the directory if they are not to
/// be kept.
fn indexes(args: &Args, context: Context) -> anyhow::Result<(Vec<PathBuf>, Option<TempDir>)> {
    let mut place: Option<(Cache, Option<TempDir>)> = None;
    let mut indexes = Vec::new();
    for source in &args.sources {
        if source.is_dir() {
            indexes.push(source.clone());
            continue;
        }
        if source == Path::new("-") {
            let usage = "games from standard input are not kept: write them to a file, or make an index with make-book";
            return Err(Usage(usage.to_owned()).into());
        }
        if place.is_none() {
            place = Some(cache(args.no_cache)?);
        }
        let (cache, _) = place.as_ref().expect("it has just been made");
        let index = cache.of(source)?;
        make(&index, source, args, context)?;
        indexes.push(index.path().to_owned());
    }
    Ok((indexes, place.and_then(|(_, temporary)| temporary)))
}

/// Where indexes of PGN files are kept, or a place that is gone afterwards.
fn cache(temporary: bool) -> anyhow::Result<(Cache, Option<TempDir>)> {
    if temporary {
        let dir = tempfile::Builder::new().prefix("polybook-").tempdir();
        let dir = dir.context("cannot make a temporary directory")?;
        signals::remove_at_end(dir.path());
        return Ok((Cache::new(dir.path())?, Some(dir)));
    }
    let Some(directory) = dirs::cache_dir() else {
        let usage = "this system has no directory for caches: add --no-cache, or serve an index";
        return Err(Usage(usage.to_owned()).into());
    };
    Ok((Cache::new(directory.join("polybook"))?, None))
}

fn make(index: &CachedIndex, source: &Path, args: &Args, context: Context) -> anyhow::Result<()> {
    if index.is_made() {
        return Ok(());
    }
    let run = index.make().threads(args.threads.map_or(0, usize::from));
    let bar = Bar::of_make_book(run.progress(), context);
    let made = run.run();
    drop(bar);
    match made {
        // Another process was faster.
        Err(Error::Exists { .. }) if index.is_made() => {}
        Err(Error::Empty { reason }) => {
            let problem = format!("there is nothing to show: {reason}");
            let path = source.to_owned();
            return Err(Error::File { path, problem }.into());
        }
        made => {
            let games = made?.totals.games;
            let rejected = games.rejected;
            context.tell(&format!(
                "{} indexed, {rejected} rejected\n",
                counted(games.counted, "game")
            ));
        }
    }
    index.remove_older()?;
    Ok(())
}

/// Says where the page is, and opens it.
fn announce(args: &Args, context: Context, address: SocketAddr) -> anyhow::Result<()> {
    if !address.ip().is_loopback() {
        context.tell("warning: anyone who reaches this port can read the games\n");
    }
    // A browser cannot go to "any address".
    let shown = match address {
        SocketAddr::V4(_) if address.ip().is_unspecified() => {
            format!("127.0.0.1:{}", address.port())
        }
        SocketAddr::V6(_) if address.ip().is_unspecified() => format!("[::1]:{}", address.port()),
        address => address.to_string(),
    };
    let page = format!("http://{shown}/");
    super::print(&format!("{page}\n"))?;
    if args.open && open::that_detached(&page).is_err() {
        context.tell("no browser could be started: open the address yourself\n");
    }
    Ok(())
}

/// Serves until a signal ends the program, which waits for the last answers.
fn until_signal(listening: Listening) -> anyhow::Result<()> {
    let stop = Stop::default();
    let (ended, end) = mpsc::channel();
    let stopping = stop.clone();
    signals::before_end(move || {
        stopping.stop();
        let _ = end.recv_timeout(LAST_ANSWERS);
    });
    errors::report_panics_at_once();
    let served = listening.run(&stop);
    let _ = ended.send(());
    Ok(served?)
}

fn print_served(served: &Served) {
    let Served {
        method,
        path,
        status,
        time,
    } = served;
    let milliseconds = time.as_secs_f64() * 1e3;
    // Where standard error cannot be written to, the answers go on.
    let _ = writeln!(
        io::stderr(),
        "{status} {milliseconds:.1} ms {method} {path}"
    );
}
