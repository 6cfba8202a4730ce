//! The text of a header, as the format's document has it.

use super::error::HeaderError;

/// The first line of every header.
pub const MAGIC: &str = "@PG@";

/// The version of the headers that [`create`] makes.
pub const VERSION: &str = "1.0";

/// The variants that headers may name without being forced to, as the Chess Engine Communication
/// Protocol spells them.
pub const KNOWN_VARIANTS: &[&str] = &[
    "normal",
    "wildcastle",
    "nocastle",
    "fischerandom",
    "bughouse",
    "crazyhouse",
    "losers",
    "suicide",
    "giveaway",
    "twokings",
    "kriegspiel",
    "atomic",
    "3check",
    "xiangqi",
    "shogi",
    "capablanca",
    "gothic",
    "falcon",
    "shatranj",
    "courier",
    "knightmate",
    "berolina",
    "janus",
    "caparandom",
    "cylinder",
    "super",
    "great",
    "makruk",
    "seirawan",
    "grand",
    "spartan",
    "unknown",
];

/// What a header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The names of the variants the book is for.
    pub variants: Vec<String>,
    /// Free text, of several lines perhaps.
    pub comment: String,
}

/// Whether a variant is one of [`KNOWN_VARIANTS`].
pub fn known_variant(name: &str) -> bool {
    KNOWN_VARIANTS.contains(&name)
}

/// Makes the text of a header.
///
/// # Errors
///
/// [`HeaderError::BadParameter`] for a variant name that is empty or not of printable ASCII without
/// blanks and capitals, and for a comment with a null byte.
pub fn create<S: AsRef<str>>(variants: &[S], comment: &str) -> Result<String, HeaderError> {
    if let Some(wrong) = variants.iter().find(|name| !is_variant(name.as_ref())) {
        return Err(HeaderError::BadParameter(format!(
            "\"{}\" cannot be a variant: write lower-case letters, digits and signs without blanks",
            wrong.as_ref().escape_debug()
        )));
    }
    if comment.contains('\0') {
        return Err(HeaderError::BadParameter(
            "the comment contains a null character".to_owned(),
        ));
    }
    let mut text = format!(
        "{MAGIC}\n{VERSION}\n{}\n{}",
        variants.len() + 1,
        variants.len()
    );
    for name in variants {
        text.push('\n');
        text.push_str(name.as_ref());
    }
    text.push('\n');
    text.push_str(comment);
    Ok(text)
}

/// Reads the text of a header. Later versions may have more predefined fields, which are skipped.
///
/// # Errors
///
/// [`HeaderError::BadHeader`] says what is malformed.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let bad = |what| Err(HeaderError::BadHeader(what));
    let mut lines = text.split('\n');
    if lines.next() != Some(MAGIC) {
        return bad("it does not begin with @PG@");
    }
    if !lines.next().is_some_and(is_version) {
        return bad("the version is not <number>.<number>");
    }
    let Some(fields) = lines.next().and_then(number) else {
        return bad("the number of fields is not a number");
    };
    let Some(count) = lines.next().and_then(number) else {
        return bad("the number of variants is not a number");
    };
    if count >= fields {
        return bad("it has more variants than fields");
    }
    let mut variants = Vec::new();
    for _ in 0..count {
        match lines.next() {
            Some(name) if is_variant(name) => variants.push(name.to_owned()),
            Some(_) => {
                return bad("a variant has a name with blanks, capitals or unprintable signs");
            }
            None => return bad("it has fewer variants than it says"),
        }
    }
    for _ in 1 + count..fields {
        match lines.next() {
            Some(field) if field.trim_matches(' ') == field => {}
            Some(_) => return bad("a predefined field begins or ends with a blank"),
            None => return bad("it has fewer fields than it says"),
        }
    }
    Ok(Header {
        variants,
        comment: lines.collect::<Vec<_>>().join("\n"),
    })
}

fn is_version(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Digits without a leading zero.
fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

fn number(text: &str) -> Option<u64> {
    if is_number(text) {
        text.parse().ok()
    } else {
        None
    }
}

fn is_variant(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn assert_bad(text: &str) {
        assert!(
            matches!(parse(text), Err(HeaderError::BadHeader(_))),
            "{text:?}"
        );
    }

    #[test]
    fn examples_of_the_document() {
        let header = parse("@PG@\n1.0\n3\n2\nnormal\nsuicide\n(normally comments here)").unwrap();
        assert_eq!(header.variants, ["normal", "suicide"]);
        let later = "@PG@\n1.1\n4\n2\nnormal\nsuicide\n[somenewfield]\n(normally comments here)";
        assert_eq!(parse(later).unwrap(), header);
    }

    #[test]
    fn parsing_is_strict() {
        assert_bad("");
        assert_bad("\u{feff}@PG@\n1.0\n2\n1\nnormal");
        assert_bad("@PG@\r\n1.0\r\n2\r\n1\r\nnormal");
        for version in [
            "1", "1,0", "00.0", "10.01", "1.", ".1", " 1.0", "1.0.0", "a.b",
        ] {
            assert_bad(&format!("@PG@\n{version}\n2\n1\nnormal\nx"));
        }
        for version in ["1.0", "2.0", "0.0", "10.0", "10.10"] {
            assert!(
                parse(&format!("@PG@\n{version}\n2\n1\nnormal")).is_ok(),
                "{version}"
            );
        }
        for count in [
            "",
            "0",
            "01",
            "1",
            "-2",
            "+2",
            "2 ",
            "18446744073709551616",
            "4294967296",
        ] {
            assert_bad(&format!("@PG@\n1.0\n{count}\n1\nnormal"));
        }
        for count in ["", "01", "2", "4294967295"] {
            assert_bad(&format!("@PG@\n1.0\n2\n{count}\nnormal"));
        }
        assert_bad("@PG@\n1.0\n4294967296\n4294967295\nnormal");
        for name in [
            "",
            " normal",
            "nor mal",
            "Normal",
            "norm\u{e4}l",
            "normal\r",
        ] {
            assert_bad(&format!("@PG@\n1.0\n2\n1\n{name}\nx"));
        }
        assert_bad("@PG@\n1.1\n3\n1\nnormal\n padded\ncomment");
        assert!(parse("@PG@\n1.0\n1\n0\ncomment").is_ok());
    }

    #[test]
    fn what_no_header_can_hold() {
        for name in ["", "Normal", "a b", "a\nb", "\u{e4}"] {
            assert!(
                matches!(create(&[name], ""), Err(HeaderError::BadParameter(_))),
                "{name}"
            );
        }
        assert!(create(&["normal"], "a\0b").is_err());
    }

    proptest! {
        #[test]
        fn what_is_created_is_parsed(
            variants in proptest::collection::vec("[!-@\\[-~]{1,12}", 0..5),
            comment in "[^\0]*",
        ) {
            let text = create(&variants, &comment).unwrap();
            prop_assert_eq!(parse(&text).unwrap(), Header { variants, comment });
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "(@PG@\n)?([0-9.]{0,3}\n){0,3}(\\PC|\n){0,40}") {
            let _ = parse(&text);
        }
    }
}
