//! Prints text safely. Text from games, files and requests can contain control characters, which must not reach a
//! terminal. In tables, JSON documents and messages, they are printed as escapes such as `\u001b`, which are also valid
//! in JSON. In other outputs, such as games in PGN, they are escaped only on a terminal; files and pipes receive them
//! unchanged.

use std::{
    io::{self, BufWriter, IsTerminal, Stderr, StdoutLock, Write},
    iter::once,
    path::{Path, PathBuf},
};

use polybook::{
    Error, json,
    storage::{
        output::{BufferedFile, begin_text, is_standard_output},
        table::{Column, Table, TableFormat},
    },
    text::escaped,
};
use serde_json::Value;

use super::{
    Context,
    input::{check_output, ending, output_name},
    plural,
    usage::Usage,
};

/// Formats a number with one decimal place. A number exactly between two results is rounded away from 0, as on the
/// explorer's page; Rust would choose the result with the even digit.
pub fn one_decimal(number: f64) -> String {
    let is_tie = (4.0 * number.abs()) % 2.0 == 1.0;
    let number = if is_tie {
        number + 0.01_f64.copysign(number)
    } else {
        number
    };
    format!("{number:.1}")
}

/// Formats a confidence interval in percent, such as `40-60%`.
pub fn range_text([low, high]: [f64; 2]) -> String {
    format!("{low:.0}-{high:.0}%")
}

/// Writes `text` to standard output. Control characters are escaped.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_all([Ok(text.to_owned())])
}

/// Writes bytes, which need not be UTF-8, to standard output. If standard output is a terminal, control characters
/// are escaped.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = stdout(io::stdout().is_terminal());
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(not_printed)
}

/// Writes strings to standard output one by one, so that they need not all fit into memory. Control characters are
/// escaped.
pub fn print_all(texts: impl IntoIterator<Item = polybook::Result<String>>) -> anyhow::Result<()> {
    let mut out = stdout(true);
    for text in texts {
        out.write_all(text?.as_bytes()).map_err(not_printed)?;
    }
    out.flush().map_err(not_printed)
}

/// Writes a JSON document to standard output as one line.
pub fn print_json(document: &Value) -> anyhow::Result<()> {
    print(&format!("{}\n", json::to_string(document)?))
}

/// Writes a JSON object to standard output: the fields of `document`, and then a list as the last field. `list` is the
/// name of this field, and `items` are the elements of the list as JSON. The elements are written one by one, so the
/// list need not fit into memory.
pub fn print_json_list(
    document: &Value,
    list: &str,
    items: impl Iterator<Item = polybook::Result<String>>,
) -> anyhow::Result<()> {
    print_all(json_list(document, list, items)?)
}

/// Returns the parts of the JSON object that [`print_json_list`] writes.
fn json_list(
    document: &Value,
    list: &str,
    items: impl Iterator<Item = polybook::Result<String>>,
) -> anyhow::Result<impl Iterator<Item = polybook::Result<String>>> {
    let document = json::to_string(document)?;
    let fields = document.trim_end_matches('}');
    let head = format!("{fields},\"{list}\":[");
    let items = items.enumerate().map(|(number, item)| {
        let comma = if number > 0 { "," } else { "" };
        Ok(format!("{comma}{}", item?))
    });
    Ok(once(Ok(head))
        .chain(items)
        .chain(once(Ok("]}\n".to_owned()))))
}

/// Adds the message "cannot write standard output" to an error.
pub fn not_printed(err: io::Error) -> anyhow::Error {
    anyhow::Error::new(err).context("cannot write standard output")
}

/// A writer that can escape control characters.
///
/// Each call to `write` must pass whole characters. If the bytes of one character are divided between two calls, they
/// are treated as invalid UTF-8.
pub struct Shown<W> {
    out: W,
    escapes: bool,
}

fn stdout(escapes: bool) -> Shown<BufWriter<StdoutLock<'static>>> {
    let out = io::stdout().lock();
    Shown::new(BufWriter::with_capacity(1 << 16, out), escapes)
}

/// Creates a writer to standard error. Control characters are escaped.
pub fn stderr() -> Shown<Stderr> {
    Shown::new(io::stderr(), true)
}

impl<W> Shown<W> {
    /// Creates a writer to `out`. Control characters are escaped if `escapes` is `true`.
    pub fn new(out: W, escapes: bool) -> Shown<W> {
        Shown { out, escapes }
    }

    /// Consumes the writer and returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if !self.escapes {
            return self.out.write(text);
        }
        self.out.write_all(&escaped(text))?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns `true` if an output at `path` appears on a terminal.
pub fn is_shown_by_terminal(path: &Path) -> bool {
    path == Path::new("-") && io::stdout().is_terminal()
}

/// The options of a command that writes one text to standard output or to a file.
#[derive(clap::Args, Debug)]
pub struct OutputArgs {
    /// Write to this file [default: standard output]
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    pub out: PathBuf,

    /// Replace an existing file of any kind. Without this option, only an empty file is replaced
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// The options of a command that answers with text, a JSON document or a table.
#[derive(clap::Args, Debug)]
pub struct AnswerArgs {
    /// Print the answer as a JSON document
    #[arg(long)]
    pub json: bool,

    /// Write the answer to this file: as a table if its name ends in .csv, .jsonl or .parquet, as a JSON document if it
    /// ends in .json, as text if it ends in .txt or has no ending [default: standard output]
    #[arg(
        long,
        value_name = "FILE",
        default_value = "-",
        hide_default_value = true
    )]
    pub out: PathBuf,

    /// Replace an existing file of any kind. Without this option, only an empty file is replaced
    #[arg(long, requires = "out")]
    force: bool,
}

/// The form in which a command gives its answer, such as text or JSON.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AnswerForm {
    Text,
    Json,
    Table(TableFormat),
}

impl AnswerArgs {
    /// Returns the form in which the answer to a query about `sources` is written.
    ///
    /// # Errors
    ///
    /// Returns an error if the output is also a source, if `--json` contradicts the extension of the output, or if no
    /// form has this extension. `texts` contains extensions of text besides `txt`.
    pub fn form(&self, sources: &[PathBuf], texts: &[&str]) -> anyhow::Result<AnswerForm> {
        check_output(&self.out, sources, false)?;
        match TableFormat::of_path(&self.out) {
            Some(_) if self.json => {
                let usage = format!(
                    "--json writes a JSON document, but the name {} is that of a table: leave out --json, or use a name \
                     that ends in .json",
                    self.out.display()
                );
                Err(Usage(usage).into())
            }
            Some(format) => Ok(AnswerForm::Table(format)),
            None if self.json || ending(&self.out) == "json" => Ok(AnswerForm::Json),
            None if ["", "txt"]
                .iter()
                .chain(texts)
                .any(|text| ending(&self.out) == *text) =>
            {
                Ok(AnswerForm::Text)
            }
            None => {
                let texts: String = texts.iter().map(|text| format!(", .{text}")).collect();
                let usage = format!(
                    "--out {}: no form of the answer has this ending: use a name that ends in .csv, .jsonl, .parquet, \
                     .json{texts} or .txt",
                    self.out.display()
                );
                Err(Usage(usage).into())
            }
        }
    }

    /// Prints the number of moves, games or openings that were written to the file `--out`, unless `--quiet` is given.
    /// `thing` is the singular of the noun for them. Prints nothing if the answer went to standard output.
    pub fn say_written(&self, number: u64, thing: &str, context: Context) {
        if !is_standard_output(&self.out) {
            let (out, written) = (output_name(&self.out), plural(number, thing));
            context.say(&format!("{out}: {written}\n"));
        }
    }

    /// Writes an answer that is text.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        self.write_all([Ok(text.to_owned())])
    }

    /// Writes strings one by one, so that they need not all fit into memory.
    pub fn write_all(
        &self,
        texts: impl IntoIterator<Item = polybook::Result<String>>,
    ) -> anyhow::Result<()> {
        if is_standard_output(&self.out) {
            return print_all(texts);
        }
        let mut out = Output::create(&self.out, self.force)?;
        for text in texts {
            out.put(text?)?;
        }
        Ok(out.commit()?)
    }

    /// Writes a JSON document as one line.
    pub fn write_json(&self, document: &Value) -> anyhow::Result<()> {
        self.write(&format!("{}\n", json::to_string(document)?))
    }

    /// Writes a JSON object like [`print_json_list`].
    pub fn write_json_list(
        &self,
        document: &Value,
        list: &str,
        items: impl Iterator<Item = polybook::Result<String>>,
    ) -> anyhow::Result<()> {
        self.write_all(json_list(document, list, items)?)
    }

    /// Writes games byte for byte. Control characters are escaped only on a terminal.
    pub fn write_pgn(
        &self,
        texts: impl IntoIterator<Item = anyhow::Result<Vec<u8>>>,
    ) -> anyhow::Result<()> {
        if is_standard_output(&self.out) {
            return texts.into_iter().try_for_each(|text| print_bytes(&text?));
        }
        let mut out = Output::create_pgn(&self.out, self.force)?;
        for text in texts {
            out.put(text?)?;
        }
        Ok(out.commit()?)
    }

    /// Writes a table. Each item of `rows` is a JSON document from which a row is made.
    pub fn write_table(
        &self,
        format: TableFormat,
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = polybook::Result<Value>>,
    ) -> anyhow::Result<()> {
        let file = begin_text(&self.out, self.force)?;
        let mut table = Table::begin(file, format, columns)?;
        for row in rows {
            table.write_document(&row?)?;
        }
        Ok(table.commit()?)
    }
}

/// A text output of a command: standard output or a file. A file gets its final name only when it is complete.
pub struct Output(Shown<BufferedFile>);

impl Output {
    /// Creates a text output at `path`. The path `-` means standard output. If `force` is `true`, replaces any existing
    /// file. Otherwise, replaces only an empty file.
    ///
    /// Control characters are escaped. See [`create_pgn`](Output::create_pgn) for games.
    pub fn create(path: &Path, force: bool) -> polybook::Result<Output> {
        let file = begin_text(path, force)?;
        Ok(Output(Shown::new(BufferedFile::new(file), true)))
    }

    /// Creates an output for games like [`create`](Output::create), but escapes control characters only on a terminal,
    /// so that files receive the games as they were read.
    pub fn create_pgn(path: &Path, force: bool) -> polybook::Result<Output> {
        let Output(mut shown) = Output::create(path, force)?;
        shown.escapes = is_shown_by_terminal(path);
        Ok(Output(shown))
    }

    /// Returns the path of the output for error messages.
    pub fn target(&self) -> &Path {
        self.0.out.target()
    }

    pub fn put(&mut self, text: impl AsRef<[u8]>) -> polybook::Result<()> {
        let written = self.0.write_all(text.as_ref());
        written.map_err(|source| Error::Io {
            path: self.target().to_owned(),
            doing: "write",
            source,
        })
    }

    pub fn commit(self) -> polybook::Result<()> {
        self.0.into_inner().commit()
    }
}

impl Write for Output {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> Vec<u8> {
        escaped(text).into_owned()
    }

    #[test]
    fn ties_are_rounded_away_from_zero() {
        let texts = [6.25, -6.25, 0.75, 12.35, 0.05, 2.5, 100.0].map(one_decimal);
        assert_eq!(texts, ["6.3", "-6.3", "0.8", "12.3", "0.1", "2.5", "100.0"]);
    }

    #[test]
    fn control_characters_are_spelled_out() {
        let text = "Tal\u{1b}]0;x\u{7}\u{7f}\u{9b}2J\rMihail\u{0}\u{202e}\u{2066}\n";
        let expected = r"Tal\u001b]0;x\u0007\u007f\u009b2J\u000dMihail\u0000\u202e\u2066";
        assert_eq!(
            shown(text.as_bytes()),
            [expected.as_bytes(), b"\n"].concat()
        );
        // 0x9b is a control character of Latin-1, 0xfc is a letter.
        assert_eq!(shown(b"M\xfcller\x9b1m"), b"M\xfcller\\u009b1m");
        for kept in ["1. e4 e5\r\n\r\n", "À Ü ß 将 \u{1f600}\tx\n", ""] {
            assert_eq!(shown(kept.as_bytes()), kept.as_bytes());
        }
    }

    #[test]
    fn json_means_the_same() {
        let text = "\u{1b}[31m\u{9b}\u{7f}";
        let json = serde_json::to_vec(text).unwrap();
        let again: String = serde_json::from_slice(&shown(&json)).unwrap();
        assert_eq!(again, text);
    }

    #[test]
    fn a_writer_that_does_not_escape_writes_the_bytes() {
        for (escapes, expected) in [(true, &b"\\u001b"[..]), (false, b"\x1b")] {
            let mut out = Shown::new(Vec::new(), escapes);
            out.write_all(b"\x1b").unwrap();
            assert_eq!(out.into_inner(), expected);
        }
    }
}
