//! Makes text safe for terminals, shells and spreadsheets. Text from games, files and requests can contain characters
//! that control a terminal instead of being shown, blanks that separate words in a shell, and cells that a spreadsheet
//! executes as formulas.

use std::borrow::Cow;

/// Returns `true` if `c` may control a terminal instead of being shown: if it is a control character, a line separator,
/// or a character that changes the direction of the text after it.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the escape sequence for a character, such as `\u001b`. It has the same meaning in a JSON string.
pub fn escape(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}

/// Replaces control characters, and characters that change the direction of text, with escape sequences such as
/// `\u001b`. Tabs and line ends are kept.
pub fn escaped(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return Cow::Borrowed(text);
    }
    let mut shown = Vec::with_capacity(text.len() + 16);
    let mut put = |character: char, bytes: &[u8], is_shown: bool| {
        if is_shown {
            shown.extend_from_slice(bytes)
        } else {
            shown.extend(escape(character).into_bytes())
        }
    };
    for chunk in text.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(character) = characters.next() {
            let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
            let is_shown = !is_unsafe(character) || "\n\t".contains(character) || is_line_end;
            put(
                character,
                character.encode_utf8(&mut [0; 4]).as_bytes(),
                is_shown,
            );
        }
        // A terminal with the encoding Latin-1 interprets a single byte from 0x80 to 0x9f as a control character.
        for byte in chunk.invalid() {
            put(char::from(*byte), &[*byte], !is_unsafe(char::from(*byte)));
        }
    }
    Cow::Owned(shown)
}

/// Quotes a word of a shell command if the shell requires quotation marks around it. The user copies the command to a
/// terminal, which could execute control characters, so each of them is replaced with `?`. On Windows, all other
/// characters that cannot be quoted are replaced with `?`, too.
pub fn shell_word(word: &str) -> String {
    if cfg!(windows) {
        windows_word(word)
    } else {
        unix_word(word)
    }
}

fn unix_word(word: &str) -> String {
    let word = word.replace(is_unsafe, "?");
    if is_plain(&word, b"_./:@%+,=-") {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Quotes a word for both the Command Prompt and PowerShell. The only quotation marks that both know are double quotes,
/// between which the Command Prompt replaces `%NAME%`, and PowerShell replaces `$NAME` and evaluates `$(COMMAND)` and
/// backticks. PowerShell treats typographic double quotes like `"`.
fn windows_word(word: &str) -> String {
    let has_effect = |c| is_unsafe(c) || "\"%$`\u{201c}\u{201d}\u{201e}".contains(c);
    let word = word.replace(has_effect, "?");
    if is_plain(&word, br"_./:+=-\") {
        return word;
    }
    // A program reads a backslash before a double quote as an escape of the quote, and two backslashes as one.
    let last_backslashes = word.len() - word.trim_end_matches('\\').len();
    format!("\"{word}{}\"", r"\".repeat(last_backslashes))
}

/// Returns `true` if a word need not be quoted: if it consists of letters and digits in ASCII, and the characters in
/// `plain`.
fn is_plain(word: &str, plain: &[u8]) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || plain.contains(&byte);
    !word.is_empty() && word.bytes().all(is_plain)
}

/// Quotes the path of a file as an argument of a shell command. If the path begins with a hyphen, prepends `./`, so
/// that the command does not mistake the path for an option.
pub fn shell_path(path: &str) -> String {
    let directory = if path.starts_with('-') { "./" } else { "" };
    shell_word(&format!("{directory}{path}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, unix, windows) in [
            ("games.pgn", "games.pgn", "games.pgn"),
            ("Tal, M", "'Tal, M'", "\"Tal, M\""),
            ("e4,e5", "e4,e5", "\"e4,e5\""),
            ("", "''", "\"\""),
            ("a'b", r"'a'\''b'", "\"a'b\""),
            (r"C:\my games\", r"'C:\my games\'", r#""C:\my games\\""#),
            ("x\" & calc \"", "'x\" & calc \"'", "\"x? & calc ?\""),
            (
                "%CMDCMDLINE:~-1%&calc",
                "'%CMDCMDLINE:~-1%&calc'",
                "\"?CMDCMDLINE:~-1?&calc\"",
            ),
            ("$(calc)`n\u{201d}", "'$(calc)`n\u{201d}'", "\"?(calc)?n?\""),
            ("x\u{3}\ncalc\n", "'x??calc?'", "\"x??calc?\""),
        ] {
            assert_eq!(unix_word(word), unix);
            assert_eq!(windows_word(word), windows);
        }
    }

    proptest! {
        #[test]
        fn no_word_on_windows_leaves_its_quotes(word in any::<String>()) {
            let quoted = windows_word(&word);
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let is_quoted = inner.is_some();
            let inner = inner.unwrap_or(&quoted);
            prop_assert!(!inner.contains(|c| is_unsafe(c) || "\"%$`\u{201c}\u{201d}\u{201e}".contains(c)), "{quoted}");
            prop_assert!(is_quoted || !inner.contains([' ', '&', '|', '<', '>', '^', ';', '(', ',']), "{quoted}");
            let backslashes = inner.len() - inner.trim_end_matches('\\').len();
            prop_assert!(!is_quoted || backslashes.is_multiple_of(2), "{quoted}");
        }
    }
}

#[cfg(feature = "obs")]
pub use self::csv_writer::CsvWriter;

#[cfg(feature = "obs")]
mod csv_writer {
    use std::{borrow::Cow, io, io::Write};

    use super::{escape, is_unsafe};

    /// A writer of comma-separated values that are safe to open in a spreadsheet.
    ///
    /// Control characters are [escaped](super::escape). If a spreadsheet would execute a cell as a formula, an
    /// apostrophe is written before it, except before numbers.
    #[derive(Debug)]
    pub struct CsvWriter<W: Write>(csv::Writer<W>);

    impl<W: Write> CsvWriter<W> {
        /// Creates a buffered writer to `out`.
        pub fn new(out: W) -> CsvWriter<W> {
            let mut builder = csv::WriterBuilder::new();
            let builder = builder.has_headers(false).buffer_capacity(1 << 16);
            CsvWriter(builder.from_writer(out))
        }

        /// Writes a row.
        ///
        /// # Errors
        ///
        /// Returns an error if the output cannot be written.
        pub fn write_row<'a>(
            &mut self,
            cells: impl IntoIterator<Item = Cow<'a, str>>,
        ) -> io::Result<()> {
            for cell in cells {
                self.0
                    .write_field(safe(&cell).as_bytes())
                    .map_err(io_error)?;
            }
            self.0.write_record(None::<&[u8]>).map_err(io_error)
        }

        /// Writes all buffered rows, and returns the output.
        ///
        /// # Errors
        ///
        /// Returns an error if the output cannot be written.
        pub fn into_inner(self) -> io::Result<W> {
            self.0.into_inner().map_err(|err| err.into_error())
        }
    }

    /// Returns the I/O error that an error of the crate `csv` contains. The caller needs it to recognize that the
    /// reader of a pipe has closed the pipe.
    fn io_error(err: csv::Error) -> io::Error {
        match err.into_kind() {
            csv::ErrorKind::Io(err) => err,
            kind => io::Error::other(format!("{kind:?}")),
        }
    }

    /// Returns the text to write in a cell so that a spreadsheet shows `text` unchanged.
    fn safe(text: &str) -> Cow<'_, str> {
        // The last four are the full-width forms of the first four.
        const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];
        let is_formula =
            text.starts_with(FORMULA) && !text.parse().is_ok_and(|number: f64| number.is_finite());
        if !is_formula && !text.contains(is_unsafe) {
            return text.into();
        }
        let mut safe = String::from(if is_formula { "'" } else { "" });
        for c in text.chars() {
            if is_unsafe(c) {
                safe.push_str(&escape(c))
            } else {
                safe.push(c)
            }
        }
        safe.into()
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        fn written(row: &[&str]) -> String {
            let mut csv = CsvWriter::new(Vec::new());
            csv.write_row(row.iter().copied().map(Cow::from)).unwrap();
            String::from_utf8(csv.into_inner().unwrap()).unwrap()
        }

        #[test]
        fn formulas_become_text_and_numbers_stay() {
            for (cell, expected) in [
                ("=1+1", "'=1+1"),
                ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
                ("-", "'-"),
                ("-inf", "'-inf"),
                ("@SUM(A1)", "'@SUM(A1)"),
                ("\t=1", "'\\u0009=1"),
                ("\r=1", "'\\u000d=1"),
                ("＝1", "'＝1"),
                ("-0.35", "-0.35"),
                ("+5", "+5"),
                ("Tal, M", "\"Tal, M\""),
                ("a=b", "a=b"),
                (
                    "\u{1b}[31mTal\u{9b}\u{202e}",
                    "\\u001b[31mTal\\u009b\\u202e",
                ),
            ] {
                assert_eq!(written(&[cell]), format!("{expected}\n"), "{cell:?}");
            }
            assert_eq!(written(&["-3", "1.5", "", "a"]), "-3,1.5,,a\n");
        }

        proptest! {
            #[test]
            fn no_cell_contains_a_control_character_or_a_formula(cell in "[=+@\\-\t\r\n\u{1b}\u{9b}\u{202e}a1,\"]{0,6}") {
                let text = written(&[&*cell]);
                let mut reader = csv::ReaderBuilder::new();
                let mut reader = reader.has_headers(false).flexible(true).from_reader(text.as_bytes());
                let record = reader.records().next().unwrap().unwrap();
                let read = &record[0];
                prop_assert!(!read.contains(is_unsafe), "{read:?}");
                let is_number = read.parse::<f64>().is_ok();
                prop_assert!(is_number || !read.starts_with(['=', '+', '-', '@']), "{read:?}");
            }
        }
    }
}
