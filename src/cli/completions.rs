//! `polybook completions` and `polybook man`: made from the definitions of the commands.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;

use super::{Cli, legacy};

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

/// Print the manual page, or write those of all commands
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  polybook man | man -l -
  polybook man --dir ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    for name in legacy::POLYGLOT_COMMANDS {
        command = command.mut_subcommand(name, with_old_spellings);
    }
    clap_complete::generate(args.shell, &mut command, "polybook", &mut script);
    if args.shell == Shell::Bash || args.shell == Shell::Zsh || args.shell == Shell::Fish {
        let text = String::from_utf8(script)?;
        return super::print(&legacy::single_dashes(&text));
    }
    super::print_bytes(&script)
}

/// A command with a second option for each long one, under a name that
/// [`single_dashes`](legacy::single_dashes) turns into the old spelling.
fn with_old_spellings(command: Command) -> Command {
    let longs: Vec<(String, bool, Option<String>)> = command
        .get_arguments()
        .filter_map(|arg| {
            let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
            let help = arg.get_help().map(|help| help.to_string());
            Some((arg.get_long()?.to_owned(), takes_value, help))
        })
        .collect();
    longs
        .into_iter()
        .fold(command, |command, (long, takes_value, help)| {
            let name = format!("{}{long}", legacy::OLD_SPELLING);
            let action = if takes_value {
                ArgAction::Set
            } else {
                ArgAction::SetTrue
            };
            command.arg(
                Arg::new(name.clone())
                    .long(name)
                    .action(action)
                    .help(help.unwrap_or_default()),
            )
        })
}

pub fn man(args: &ManArgs) -> anyhow::Result<()> {
    let command = Cli::command();
    match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("cannot write the pages to {}", dir.display()))
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            super::print_bytes(&page)
        }
    }
}
