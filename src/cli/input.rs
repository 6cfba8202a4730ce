//! Opens the files that a command reads and writes. Standard input (`-`), pipes and devices are copied to a temporary
//! file first, because a command may seek in its input, or open it more than once.

use std::{
    any::TypeId,
    env,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use anyhow::Context as _;
use clap::{
    Arg, ArgMatches, Id,
    builder::{PathBufValueParser, TypedValueParser},
    parser::ValueSource,
};
use polybook::{
    Error, FileKind,
    book::is_book_or_empty,
    counts::{CountsDirectory, Memory},
    index::{Index, is_index},
    pgn::Input,
    position::Variant,
    storage::output::{
        TemporaryDir, is_directory, is_regular_file, is_standard_output, refuse_clashes,
    },
};

use super::usage::Usage;

/// The command-line argument that names a book. It is used by the commands that exist in both polybook and the program
/// `polyglot`.
#[derive(clap::Args, Debug)]
pub struct BookArg {
    /// The book; - is standard input [default: book.bin]
    #[arg(value_name = "BOOK", conflicts_with = "bin")]
    book: Option<PathBuf>,

    /// Read this book. This is another way to give the argument BOOK, which the program polyglot has
    #[arg(
        long,
        value_name = "FILE",
        default_value = "book.bin",
        hide_default_value = true
    )]
    bin: PathBuf,
}

impl BookArg {
    pub fn path(&self) -> &Path {
        self.book.as_ref().unwrap_or(&self.bin)
    }
}

/// The maximum size, in bytes, of a book that is read into memory. A larger book stays on the disk, although looking up
/// positions there takes longer.
pub const MAX_SIZE_IN_MEMORY: u64 = 1 << 29;

/// Returns the maximum size, in bytes, of a book that a command reads into memory. This is half of the memory budget,
/// but at most [`MAX_SIZE_IN_MEMORY`].
pub fn in_memory(memory: &Memory) -> u64 {
    MAX_SIZE_IN_MEMORY.min(memory.bytes as u64 / 2)
}

/// Reads a text file, or standard input for `-`, into memory. A carriage return that ends a line becomes a line feed.
///
/// `factor` is the maximum number of bytes of memory that the text and its parsed form together need per byte of the
/// text.
///
/// # Errors
///
/// Returns an error if the text might exceed the memory budget, or if the file has a known format that is not text.
pub fn read_text(argument: &Path, memory: &Memory, factor: usize) -> anyhow::Result<String> {
    let name = name(argument);
    let most = memory.bytes / factor;
    let file = file_of(argument)?;
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() > most {
        let problem = format!(
            "this file is longer than the {most} bytes that --memory allows: increase --memory to {factor} times the size of the file"
        );
        return Err(Error::too_large(name, problem).into());
    }
    if let Some(problem) = FileKind::advice(argument, &bytes) {
        return Err(Error::foreign(name, problem).into());
    }
    for at in 0..bytes.len() {
        if bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
            bytes[at] = b'\n';
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const STANDARD_INPUT: &str = "standard input";

/// A temporary copy of an input that is not a regular file, such as standard input or a pipe.
struct InputCopy {
    argument: PathBuf,
    copy: PathBuf,
    /// Contains the copy, and is removed at the end of the program.
    _directory: TemporaryDir,
}

/// The value of `--temp-dir`, if the command has this option and the user gave it.
static TEMP_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Stores the value of `--temp-dir`, which is the directory for copies of inputs. `matches` contains the parsed
/// arguments of the program.
pub fn set_temp_dir(matches: &ArgMatches) {
    let Some((_, matches)) = matches.subcommand() else {
        return;
    };
    set_temp_dir(matches);
    if let Ok(Some(dir)) = matches.try_get_one::<PathBuf>("temp_dir") {
        // A program has only one command line.
        let _ = TEMP_DIR.set(dir.clone());
    }
}

static COPIES: Mutex<Vec<InputCopy>> = Mutex::new(Vec::new());

fn copies() -> MutexGuard<'static, Vec<InputCopy>> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The maximum number of bytes that polybook copies from a device. Some devices, such as `/dev/zero`, have no end.
const MAX_DEVICE_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// Returns the path from which the input `argument` can be read. For `-` and pipes, this is the path of a temporary
/// copy. Returns an error if the argument is a directory.
pub fn file_of(argument: &Path) -> anyhow::Result<PathBuf> {
    let file = file_or_index(argument)?;
    if is_directory(argument)? {
        let problem = match is_index(argument) {
            Ok(true) => "this is an index: give a book or a database",
            _ => "this is a directory: give a file",
        };
        return Err(Error::file(argument, problem).into());
    }
    Ok(file)
}

/// Returns `true` if a directory contains the file `CURRENT`, as every index does.
pub fn has_index(directory: &Path) -> anyhow::Result<bool> {
    let found = directory.join("CURRENT").try_exists();
    found.with_context(|| format!("cannot open {}", directory.display()))
}

/// Returns an error if `argument` is standard input, a pipe or a device. Games from such an input cannot be indexed,
/// because polybook later reads the texts of indexed games from their file.
pub fn refuse_stream(argument: &Path) -> Result<(), Usage> {
    if !is_copied(argument) {
        return Ok(());
    }
    let stream = if argument == Path::new("-") {
        STANDARD_INPUT.to_owned()
    } else {
        format!("{}, a pipe or a device,", argument.display())
    };
    Err(Usage(format!(
        "an index of games from {stream} cannot be kept in the cache: save the games as a file, or make an index with \
         make-book"
    )))
}

/// Returns `true` if `path`, which the user gave as an index, is a file that may contain PGN, perhaps compressed.
/// Returns `false` for a directory and for a file of another format. Returns an error for a pipe, a device or an empty
/// file.
pub fn may_have_games(path: &Path) -> anyhow::Result<bool> {
    refuse_stream(path)?;
    if !is_regular_file(path)? {
        return Ok(false);
    }
    let metadata = path.metadata();
    let metadata = metadata.with_context(|| format!("cannot open {}", path.display()))?;
    if metadata.len() == 0 {
        return Err(Error::file(path, "an empty file, without games").into());
    }
    let is_known = matches!(
        FileKind::of(path)?,
        FileKind::Gzip | FileKind::Bzip2 | FileKind::Zstd | FileKind::Zip | FileKind::Other
    );
    Ok(is_known && !is_book_or_empty(path)?)
}

/// Returns the path from which the input `argument`, a file or directory, can be read. For `-` and pipes, this is the
/// path of a temporary copy. Returns an error if the argument is a counts directory, or if standard input has already
/// been read.
pub fn file_or_index(argument: &Path) -> anyhow::Result<PathBuf> {
    refuse_counts(argument)?;
    if !is_copied(argument) {
        return Ok(argument.to_owned());
    }
    let is_stdin = argument == Path::new("-");
    match known_copy(argument) {
        Some(_) if is_stdin => Err(given_twice().into()),
        Some(copy) => Ok(copy),
        None => {
            let problem = || format!("cannot copy {} to a temporary file", name(argument));
            copied(argument).with_context(problem)
        }
    }
}

/// Returns the path of the temporary copy of the input `argument`, or `None` if this process did not copy the input.
/// Standard input and pipes are copied so that they can be read several times.
fn known_copy(argument: &Path) -> Option<PathBuf> {
    let copies = copies();
    let mut known = copies.iter();
    known
        .find(|copy| copy.argument == argument)
        .map(|copy| copy.copy.clone())
}

/// Returns `true` if the input `argument` must be copied to a temporary file before it is opened, because it is `-` or
/// the path of a pipe, a socket or a device.
pub fn is_copied(argument: &Path) -> bool {
    // If the system cannot examine the path, opening it fails as well.
    let metadata = || argument.metadata();
    argument == Path::new("-")
        || metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns an error if `arguments` contain `-` more than once, because standard input can be read only once.
pub fn refuse_twice(arguments: &[&PathBuf]) -> Result<(), Usage> {
    let is_standard_input = |argument: &&&PathBuf| ***argument == Path::new("-");
    match arguments.iter().filter(is_standard_input).count() {
        0 | 1 => Ok(()),
        _ => Err(given_twice()),
    }
}

fn given_twice() -> Usage {
    Usage(
        "- is given twice, but there is only one standard input: use a file for one of them"
            .to_owned(),
    )
}

/// Returns the extension of a file name in lower case and without the dot, or an empty string if there is none.
pub fn ending(path: &Path) -> String {
    let ending = path.extension().unwrap_or_default();
    ending.to_string_lossy().to_ascii_lowercase()
}

/// Creates the PGN inputs for the given paths. `untagged` is the variant that is assumed for games without a `Variant`
/// tag. Returns an error if a path is an index.
pub fn pgn_inputs(arguments: &[PathBuf], untagged: Variant) -> polybook::Result<Vec<Input>> {
    for path in arguments {
        if is_directory(path)? && is_index(path)? {
            let problem = "this is an index: give the PGN files from which the index was made";
            return Err(Error::file(path, problem));
        }
    }
    let inputs = arguments.iter().map(Input::from_argument);
    Ok(inputs
        .map(|input| input.with_untagged_variant(untagged))
        .collect())
}

/// Returns, for each of several inputs, the path from which it can be read. For `-` and pipes, this is the path of a
/// temporary copy.
pub fn files_of(arguments: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    arguments.iter().map(|path| file_of(path)).collect()
}

/// Returns an error if the path is a counts directory (Parquet files with the results of moves, but without games).
/// Only `make-book` can read such a directory.
pub fn refuse_counts(path: &Path) -> polybook::Result<()> {
    let is_of_counts = matches!(FileKind::of(path), Ok(FileKind::Counts));
    if is_of_counts && CountsDirectory::index_advice(path).is_some() {
        let problem = "this is a directory of counts: make a book or an index from the counts with polybook make-book";
        return Err(Error::file(path, problem));
    }
    Ok(())
}

/// Returns an error if one of the paths in `indexes` is a counts directory, for a command that shows games. A counts
/// directory contains no games, and neither does an index made from it, so the error message advises the user to make
/// an index from PGN files.
pub fn refuse_counts_for_games(indexes: &[PathBuf]) -> polybook::Result<()> {
    match indexes.iter().find(|path| refuse_counts(path).is_err()) {
        Some(path) => Err(Error::file(
            path,
            "this is a directory of counts, but games are needed: make an index from the PGN files of the games with \
             polybook make-book --explorer DIR",
        )),
        None => Ok(()),
    }
}

/// Copies an input to a temporary file and returns the path of the copy. The copy keeps the file name of `argument`,
/// because a command may write this name into the header of a book.
fn copied(argument: &Path) -> anyhow::Result<PathBuf> {
    let directory = TEMP_DIR.get().cloned().unwrap_or_else(env::temp_dir);
    let directory = TemporaryDir::new_in(&directory)?;
    let is_stdin = argument == Path::new("-");
    let copy = directory.path().join(if is_stdin {
        STANDARD_INPUT.as_ref()
    } else {
        argument.file_name().unwrap_or(argument.as_os_str())
    });
    let mut out = File::create_new(&copy)?;
    if is_stdin {
        io::copy(&mut io::stdin().lock(), &mut out)?;
    } else {
        let source = File::open(argument)?;
        let most = if is_device(&source.metadata()?) {
            MAX_DEVICE_BYTES
        } else {
            u64::MAX
        };
        if io::copy(&mut source.take(most), &mut out)? == most {
            let problem =
                "this device delivers more than 256 MiB: copy the data that you need to a file";
            return Err(Error::too_large(argument, problem).into());
        }
    }
    let path = copy.clone();
    copies().push(InputCopy {
        argument: argument.to_owned(),
        copy,
        _directory: directory,
    });
    Ok(path)
}

#[cfg(unix)]
fn is_device(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(metadata: &fs::Metadata) -> bool {
    !metadata.is_file()
}

/// Returns the name of an input for messages: `standard input` for `-`, otherwise the path.
pub fn name(argument: &Path) -> String {
    if argument == Path::new("-") {
        STANDARD_INPUT.to_owned()
    } else {
        argument.display().to_string()
    }
}

/// Returns the name of an output for messages: `standard output` for `-`, otherwise the path.
pub fn output_name(argument: &Path) -> String {
    if argument == Path::new("-") {
        "standard output".to_owned()
    } else {
        argument.display().to_string()
    }
}

/// Replaces the paths of temporary copies in a message with the paths that the user gave.
pub fn with_given_names(message: &str) -> String {
    let copies = copies();
    copies.iter().fold(message.to_owned(), |message, copy| {
        message.replace(&*copy.copy.to_string_lossy(), &name(&copy.argument))
    })
}

/// Returns an error if `out`, the value of the option `option`, is `-` for standard output. The command writes a
/// directory, which standard output cannot contain.
pub fn refuse_standard_output(option: &str, out: &Path) -> Result<(), Usage> {
    if is_standard_output(out) {
        let usage = format!(
            "{option} writes a directory, so the output cannot be standard output (-): give a directory"
        );
        return Err(Usage(usage));
    }
    Ok(())
}

/// Returns an error if an output of the command is also one of its inputs. `matches` contains the parsed arguments of
/// the program. Every argument that is a path counts as an input, unless [`role_of`] assigns another role to it. The PGN
/// files of an index that is an input are inputs, too.
pub fn refuse_replaced_inputs(matches: &ArgMatches) -> polybook::Result<()> {
    let Some((command, matches)) = matches.subcommand() else {
        return Ok(());
    };
    if matches.subcommand().is_some() {
        return refuse_replaced_inputs(matches);
    }
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    for id in matches.ids().map(Id::as_str) {
        let is_default = matches.value_source(id) == Some(ValueSource::DefaultValue);
        let paths = matches.try_get_many::<PathBuf>(id).ok().flatten();
        let paths = paths.into_iter().flatten().map(PathBuf::as_path);
        match role_of(command, id) {
            Role::Output => outputs.extend(paths),
            Role::Input if !is_default => {
                inputs.extend(paths.filter(|path| *path != Path::new("-")))
            }
            Role::Input | Role::Unchecked => {}
        }
    }
    if command == "make-book" && outputs.is_empty() {
        outputs.push(Path::new(DEFAULT_BOOK));
    }
    let indexed = indexed_files(&outputs, &inputs);
    inputs.extend(indexed.iter().map(PathBuf::as_path));
    refuse_clashes(&outputs, &inputs)
}

/// Returns the PGN files from which the indexes among `inputs` were made. An index stores only the offsets of its games
/// in these files, so it is lost if a command replaces one of them. Returns no files if no output exists, because then
/// the command replaces nothing.
fn indexed_files(outputs: &[&Path], inputs: &[&Path]) -> Vec<PathBuf> {
    if !outputs.iter().any(|output| output.exists()) {
        return Vec::new();
    }
    let directories = inputs.iter().filter(|input| input.is_dir());
    // If an index cannot be opened, the command itself fails and explains why.
    let indexes = directories.filter_map(|directory| Index::open(directory).ok());
    let files = indexes.flat_map(|index| {
        let files = index.files().map(|(_, path)| path.to_owned());
        files.collect::<Vec<_>>()
    });
    files.filter(|path| path.exists()).collect()
}

/// The file that `make-book` writes if the command line names no output.
pub const DEFAULT_BOOK: &str = "book.bin";

/// The role of a command-line argument that is a path: the path of an input, of an output, or of neither.
enum Role {
    Input,
    Output,
    /// A directory in which the command creates files, or an input that the command compares with its output itself.
    Unchecked,
}

/// Returns the role of an argument that is a path. `command` is the name of the command, and `id` is the id of the
/// argument in clap.
fn role_of(command: &str, id: &str) -> Role {
    match (command, id) {
        (_, "out" | "fix") => Role::Output,
        ("make-book", "bin" | "leveldb" | "explorer" | "obs" | "counts" | "suite") => Role::Output,
        (_, "temp_dir" | "dir") | ("edit", "book") => Role::Unchecked,
        _ => Role::Input,
    }
}

/// Makes an argument of the command `command` accept other names of the standard streams in place of `-`: names of
/// standard input, such as `/dev/stdin`, if the argument is an input, and names of standard output if it is an output.
/// Returns the changed argument. All other arguments are returned unchanged.
pub fn with_standard_streams(command: &str, arg: Arg) -> Arg {
    let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let names: &'static [&'static str] = match role_of(command, arg.get_id().as_str()) {
        _ if !is_path || !cfg!(unix) => return arg,
        Role::Output => &["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"],
        Role::Input => &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"],
        Role::Unchecked => return arg,
    };
    let has_name = |path: &Path| names.iter().any(|name| path == Path::new(name));
    arg.value_parser(PathBufValueParser::new().map(move |path| {
        if has_name(&path) {
            PathBuf::from("-")
        } else {
            path
        }
    }))
}

/// The file extensions of compressed files.
const COMPRESSED: [&str; 5] = ["gz", "bz2", "zst", "zip", "xz"];

/// Checks whether a command may write the output `out`. `has_document` is `true` if the command prints a JSON document.
///
/// # Errors
///
/// Returns an error if the output is also an input, or if its name has the extension of a compressed file. Also returns
/// an error if both the output and a JSON document would go to standard output.
pub fn check_output(
    out: &Path,
    inputs: &[impl AsRef<Path>],
    has_document: bool,
) -> anyhow::Result<()> {
    let inputs = inputs.iter().map(AsRef::as_ref);
    let inputs: Vec<&Path> = inputs.filter(|path| *path != Path::new("-")).collect();
    refuse_clashes(&[out], &inputs)?;
    let end = out.extension().unwrap_or_default().to_string_lossy();
    if COMPRESSED.contains(&end.to_ascii_lowercase().as_str()) {
        let problem =
            format!("this output is written without compression: choose a name without .{end}");
        return Err(Error::file(out, problem).into());
    }
    Ok(refuse_document_beside(has_document, out)?)
}

/// Returns an error if `book`, the path of a book to write, has the extension of another format (`.pgn`, `.epd` or
/// `.db3`), because other programs would expect that format. `option` is the option that names the output.
pub fn refuse_foreign_name(option: &str, book: &Path) -> Result<(), Usage> {
    let format = match &*ending(book) {
        "pgn" => "PGN",
        "epd" => "EPD",
        "db3" => "an OOBS database, because books store no results of games",
        _ => return Ok(()),
    };
    Err(Usage(format!(
        "{option} {}: the output is a Polyglot book, not {format}: choose a name that ends in .bin",
        book.display()
    )))
}

/// Returns an error if the output `out` and a JSON document would both go to standard output. `has_document` is `true`
/// if the command prints a JSON document.
pub fn refuse_document_beside(has_document: bool, out: &Path) -> Result<(), Usage> {
    if has_document && is_standard_output(out) {
        let usage = "the JSON document of --json and the output would both go to standard output: give a file for the \
                     output";
        return Err(Usage(usage.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};
    use polybook::MakeBook;

    use super::*;

    /// Returns `command` if it has no subcommands, otherwise its subcommands and theirs.
    fn leaves(command: &Command) -> Vec<&Command> {
        let leaves: Vec<&Command> = command.get_subcommands().flat_map(leaves).collect();
        if leaves.is_empty() {
            vec![command]
        } else {
            leaves
        }
    }

    /// Returns the ids of the arguments of a command that are paths and have a role for which `is_wanted` is `true`.
    fn paths_of(command: &Command, is_wanted: impl Fn(Role) -> bool) -> Vec<&str> {
        let paths = command
            .get_arguments()
            .filter(|arg| arg.get_value_parser().type_id() == TypeId::of::<PathBuf>());
        let ids = paths.map(|arg| arg.get_id().as_str());
        ids.filter(|id| is_wanted(role_of(command.get_name(), id)))
            .collect()
    }

    /// Parses the command `command` with paths as the only arguments, and checks its outputs.
    fn check(command: &str, paths: [(&str, &Path); 2]) -> polybook::Result<()> {
        let words = paths.map(|(id, path)| format!("--{id}={}", path.display()));
        let args = paths.map(|(id, _)| {
            Arg::new(id.to_owned())
                .long(id.to_owned())
                .value_parser(PathBufValueParser::new())
        });
        let parser =
            Command::new("polybook").subcommand(Command::new(command.to_owned()).args(args));
        let line = ["polybook", command].into_iter().map(str::to_owned);
        refuse_replaced_inputs(&parser.get_matches_from(line.chain(words)))
    }

    #[test]
    fn no_command_replaces_the_games_of_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a.pgn"), "1. e4 e5 *\n").unwrap();
        fs::write(at("other.pgn"), "").unwrap();
        MakeBook::new([Input::file(at("a.pgn"))])
            .explorer(at("a.idx"))
            .leveldb(at("b.idx"))
            .run()
            .unwrap();
        let cli = crate::cli::Cli::command();
        let mut checked = 0;
        for command in leaves(&cli) {
            let name = command.get_name();
            for out in paths_of(command, |role| matches!(role, Role::Output)) {
                for input in paths_of(command, |role| matches!(role, Role::Input)) {
                    for index in ["a.idx", "b.idx"] {
                        let check = |output| check(name, [(out, &at(output)), (input, &at(index))]);
                        let err = check("a.pgn").unwrap_err().to_string();
                        assert!(
                            err.contains("both an input and an output"),
                            "{name} {input}: {err}"
                        );
                        check("other.pgn").unwrap();
                        check("new.pgn").unwrap();
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 60, "{checked}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_refused() {
        let err = format!("{:#}", file_of(Path::new("/dev/zero")).unwrap_err());
        let advice = "copy the data that you need to a file";
        assert!(err.contains(advice), "{err}");
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy.bin");
        fs::write(&copy, [0; 16]).unwrap();
        assert_eq!(file_of(&copy).unwrap(), copy);
    }
}
