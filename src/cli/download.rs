//! `polybook download`: adds the games of players at Lichess and Chess.com to a PGN file.

use std::{env, fs, path::PathBuf, sync::Arc, thread};

use anyhow::Context as _;
use polybook::{
    Error,
    download::{AccessToken, Account, Collected, Download, Downloaded, Notice, Options},
    storage::output::is_standard_output,
};

use super::{
    Context,
    filters::{Offered, SelectionArgs},
    input::{check_output, file_of},
    plural,
    progress::Bar,
    resources::count,
    signals,
    usage::Usage,
};

/// The environment variable that contains the token for Lichess.
const TOKEN: &str = "LICHESS_TOKEN";

/// The environment variable that contains the address of a server on this computer, which replaces Lichess and
/// Chess.com in tests.
const SERVER: &str = "POLYBOOK_DOWNLOAD_SERVER";

/// The conditions that Lichess and Chess.com can evaluate themselves.
#[derive(Clone, Debug)]
pub struct OfServices;

impl Offered for OfServices {
    fn offers(condition: &str) -> bool {
        ["since", "until", "speed", "rated"].contains(&condition)
    }
}

/// Download your games from Lichess and Chess.com, or add the new ones to a file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
If the file exists, download adds only games that are new, and leaves out those whose addresses the file contains. It keeps
in FILE.download.json which games it has received of each account, and asks only for later ones. Without this file, or after
games were removed from FILE, it asks for all games. With --since, it asks for all games since that date. The games of all
accounts are in the order in which they began. The file is replaced as a whole at the end. Ctrl-C, or a connection that breaks several times, ends the download; the file then has the games up to
there, and the same command continues.

Lichess sends about 20 games per second, or up to 60 if you give a token, which https://lichess.org/account/oauth/token makes
without any permissions. Put it into the environment variable LICHESS_TOKEN, or into a file that --token-file names.

This is the only command that sends requests to other computers.

Examples:
  polybook download lichess:NAME --out me.pgn
  polybook download lichess:NAME chesscom:NAME --out me.pgn --clocks
  polybook download lichess:NAME --out blitz.pgn --speed blitz --rated --since 2024
  polybook serve me.pgn --me NAME --open")]
pub struct Args {
    /// The accounts: lichess:NAME or chesscom:NAME
    #[arg(value_name = "ACCOUNT", required = true, value_parser = |text: &str| text.parse::<Account>())]
    accounts: Vec<Account>,

    /// Add the games to this file in PGN, or make the file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Download only the N newest games of each account
    #[arg(long, value_name = "N", value_parser = count::<u64>(1))]
    max: Option<u64>,

    /// Add evaluations to the games that Lichess has analyzed
    #[arg(long)]
    evals: bool,

    /// Add the clock after each move. The games of Chess.com always have it
    #[arg(long)]
    clocks: bool,

    /// Read your token for Lichess from this file [default: the environment variable LICHESS_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    selection: SelectionArgs<OfServices>,
}

impl Args {
    /// Reads the token from the file or the environment variable. Returns `None` if neither is given.
    fn token(&self) -> anyhow::Result<Option<AccessToken>> {
        let (text, source) = if let Some(path) = &self.token_file {
            let text = fs::read_to_string(file_of(path)?);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            (text, path.display().to_string())
        } else if let Some(text) = env::var(TOKEN).ok().filter(|text| !text.is_empty()) {
            (text, TOKEN.to_owned())
        } else {
            return Ok(None);
        };
        match AccessToken::new(&text) {
            Some(token) => Ok(Some(token)),
            None => Err(Usage(format!(
                "{source} contains no token of Lichess: a token consists of letters, digits and underscores"
            ))
            .into()),
        }
    }
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    if is_standard_output(&args.out) {
        let usage = "new games are added to a file, so --out cannot be standard output (-): give the name of a file";
        return Err(Usage(usage.to_owned()).into());
    }
    check_output(&args.out, args.token_file.as_slice(), false)?;
    let mut accounts = args.accounts.clone();
    accounts.dedup();
    let server = env::var(SERVER).ok();
    let is_service = server.is_none();
    let notice = Notice(Arc::new(move |problem, pause| {
        let seconds = pause.as_secs();
        context.say(&format!(
            "{problem}: polybook continues in {seconds} seconds\n"
        ));
        // A server on this computer needs no patience.
        if is_service {
            thread::sleep(pause);
        }
    }));
    let options = Options {
        selection: args.selection.selection()?,
        max: args.max,
        evals: args.evals,
        clocks: args.clocks,
    };
    let download = Download::new(accounts, &args.out, options, notice)
        .token(args.token()?)
        .server(server)?;
    keep_when_interrupted(download.collected(), args.out.display().to_string());
    let bar = Bar::of_games("downloading", &download.meter(), context);
    let downloaded = download.run();
    drop(bar);
    let Downloaded {
        new,
        games,
        failure,
    } = downloaded?;
    let out = args.out.display();
    let has_new = if new == 0 {
        "no new games".to_owned()
    } else {
        plural(new, "new game")
    };
    context.say(&format!(
        "{out}: {has_new}, {} in the file\n",
        plural(games, "game")
    ));
    match failure {
        Some(err) if new > 0 => {
            let kept = format!("{out} has the games up to there: repeat the command to continue");
            Err(anyhow::Error::new(err).context(kept))
        }
        Some(err) => Err(err.into()),
        None => {
            let name = args.accounts[0].name();
            context.say(&format!(
                "look at them: polybook serve {out} --me {name} --open\n"
            ));
            Ok(())
        }
    }
}

/// Makes a signal such as Ctrl-C first write the games that have been received completely, and then end the program.
fn keep_when_interrupted(collected: Collected, out: String) {
    signals::before_end(move || match collected.keep() {
        Ok(Some(new @ 1..)) => {
            let games = plural(new, "new game");
            format!("interrupted; {out} has {games} up to there: repeat the command to continue")
        }
        Ok(_) | Err(Error::Interrupted) => "interrupted".to_owned(),
        Err(err) => format!("interrupted; {err}"),
    });
}
