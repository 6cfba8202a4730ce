//! `polybook completions` and `polybook man`: print completion scripts and manual pages, which are generated from the
//! definitions of the commands.

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use polybook::storage::output::{BufferedFile, Finished, begin_text, commit_all};

use super::{Cli, Context, argv, plural, terminal};

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook completions bash > ~/.local/share/bash-completion/completions/polybook
  polybook completions zsh > ~/.zfunc/_polybook
  polybook completions fish > ~/.config/fish/completions/polybook.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page in the format of the program man, or write the manual pages of all commands
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook man | man -l -
  polybook man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Replace existing files of any kind. Without this option, man replaces only empty files
    #[arg(long, requires = "dir")]
    force: bool,
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    for name in argv::POLYGLOT_COMMANDS {
        command = command.mut_subcommand(name, with_old_spellings);
    }
    clap_complete::generate(args.shell, &mut command, "polybook", &mut script);
    let mut script = String::from_utf8(script)?;
    if args.shell == Shell::Bash {
        script = with_files(&script);
    }
    if matches!(args.shell, Shell::Bash | Shell::Zsh | Shell::Fish) {
        script = argv::single_dashes(&script);
    }
    terminal::print(&script)
}

/// Makes `script`, a bash completion script that clap generated, complete file names for the commands that take files.
/// Returns the changed script. Without the change, bash would complete only the options of these commands.
fn with_files(script: &str) -> String {
    const FIRST_WORD: &str = "|| ${COMP_CWORD} -eq 2 ]]";
    const NO_OPTION: &str = "            COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )";
    let mut takes_files = false;
    let lines = script.lines().map(|line| {
        if let Some(words) = line.trim_start().strip_prefix("opts=") {
            // In the list of words, options come first, and commands and other fixed values come last.
            let last = words.trim_matches('"').split(' ').next_back();
            takes_files = last.is_some_and(|word| word.starts_with('-'));
        }
        match takes_files {
            true if line == NO_OPTION => String::new(),
            true => line.replace(FIRST_WORD, "]]") + "\n",
            false => line.to_owned() + "\n",
        }
    });
    lines.collect()
}

/// Adds polyglot's spelling `-name` of each long option `--name` to `command`, the definition of a command. The result
/// is used only to generate a completion script.
///
/// clap cannot define long options with a single dash, so the names of these options get a prefix, which
/// [`single_dashes`](argv::single_dashes) later removes from the script.
fn with_old_spellings(command: Command) -> Command {
    let old = |arg: &Arg| {
        let name = format!("{}{}", argv::OLD_SPELLING, arg.get_long()?);
        let old = Arg::new(name.clone())
            .long(name)
            .help(arg.get_help().map(ToString::to_string).unwrap_or_default());
        Some(if arg.get_action().takes_values() {
            old.action(ArgAction::Set)
                .value_parser(arg.get_value_parser().clone())
                .value_hint(arg.get_value_hint())
        } else {
            old.action(ArgAction::SetTrue)
        })
    };
    let old: Vec<Arg> = command.get_arguments().filter_map(old).collect();
    command.args(old)
}

pub fn man(args: &ManArgs, context: Context) -> anyhow::Result<()> {
    let command = Cli::command();
    match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            let mut command = command.disable_help_subcommand(true);
            command.build();
            let mut written = Vec::new();
            write_pages(command, dir, args.force, &mut written)?;
            let pages = plural(written.len() as u64, "page");
            commit_all(written)?;
            context.say(&format!("{pages} written to {}\n", dir.display()));
            Ok(())
        }
        // A terminal would show the formatting commands of roff, so it gets the help text, which has the same
        // content.
        None if io::stdout().is_terminal() => {
            let mut command = command;
            terminal::print(&command.render_long_help().to_string())
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            terminal::print_bytes(&page)
        }
    }
}

/// Writes the manual pages of `command` and its subcommands to the directory `dir`, and adds the finished files to
/// `written`. An existing page is replaced only if it is empty or if `force` is `true`.
fn write_pages(
    command: Command,
    dir: &Path,
    force: bool,
    written: &mut Vec<Finished>,
) -> anyhow::Result<()> {
    let inner = command.get_subcommands();
    for inner in inner.filter(|inner| !inner.is_hide_set()) {
        write_pages(inner.clone(), dir, force, written)?;
    }
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    let file = begin_text(dir.join(man.get_filename()), force)?;
    let mut file = BufferedFile::new(file);
    file.put(&page)?;
    written.push(file.finish()?);
    Ok(())
}
