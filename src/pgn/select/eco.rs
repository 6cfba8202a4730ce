//! Ranges of ECO codes.

use std::{fmt, str::FromStr};

use super::SelectionError;

/// A range of ECO codes: `B20-B99`, `C`, `A4`, `E60`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EcoRange {
    first: [u8; 3],
    last: [u8; 3],
}

impl EcoRange {
    /// Whether a code, with or without blanks around it and further letters after it, is in the range.
    pub fn contains(&self, eco: &[u8]) -> bool {
        let Some(code) = eco.trim_ascii().first_chunk::<3>() else {
            return false;
        };
        let code = code.map(|byte| byte.to_ascii_uppercase());
        code[1..].iter().all(u8::is_ascii_digit) && (self.first..=self.last).contains(&code)
    }
}

impl fmt::Display for EcoRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |code: &[u8; 3]| String::from_utf8_lossy(code).into_owned();
        write!(f, "{}-{}", text(&self.first), text(&self.last))
    }
}

impl FromStr for EcoRange {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<EcoRange, SelectionError> {
        let error = || SelectionError::Malformed {
            text: text.to_owned(),
            what: "a range of ECO codes: write B20-B99, B2 for B20-B29, or B",
        };
        let padded = |code: &str, filler: u8| {
            let code = code.trim().as_bytes();
            let well_formed = matches!(code, [b'A'..=b'E' | b'a'..=b'e', rest @ ..]
                if rest.len() <= 2 && rest.iter().all(u8::is_ascii_digit));
            well_formed.then(|| {
                let mut full = [filler; 3];
                full[..code.len()].copy_from_slice(code);
                full.map(|byte| byte.to_ascii_uppercase())
            })
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = EcoRange {
            first: padded(first, b'0').ok_or_else(error)?,
            last: padded(last, b'9').ok_or_else(error)?,
        };
        if range.first > range.last {
            return Err(error());
        }
        Ok(range)
    }
}
