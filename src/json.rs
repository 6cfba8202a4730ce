//! Writes JSON documents. Numbers are rounded to six decimal places, because binary fractions would otherwise appear as
//! 2.4000000000000004 instead of 2.4.

use std::io;

use serde::Serialize;
use serde_json::{
    Result, Serializer,
    ser::{CompactFormatter, Formatter},
};
use shakmaty::Color;

/// Serializes `document` as JSON, and returns the bytes. The JSON has no spaces or line breaks between tokens. Numbers
/// are rounded to six decimal places.
///
/// # Errors
///
/// Returns an error if `document` cannot be represented in JSON, for example because the keys of a map are not
/// strings.
pub fn to_vec(document: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut text, Rounding))?;
    Ok(text)
}

/// Serializes `document` as JSON, and returns the text. The JSON has no spaces or line breaks between tokens. Numbers
/// are rounded to six decimal places.
///
/// # Errors
///
/// Returns an error if `document` cannot be represented in JSON, for example because the keys of a map are not
/// strings.
pub fn to_string(document: &(impl Serialize + ?Sized)) -> Result<String> {
    Ok(String::from_utf8(to_vec(document)?).expect("JSON is UTF-8"))
}

/// The name of a color in a document.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColorName {
    White,
    Black,
}

impl From<Color> for ColorName {
    fn from(color: Color) -> ColorName {
        color.fold_wb(ColorName::White, ColorName::Black)
    }
}

/// Serializes a color as the string `white` or `black`.
pub(crate) fn color<S: serde::Serializer>(
    color: &Color,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    ColorName::from(*color).serialize(serializer)
}

/// A JSON formatter that rounds numbers to six decimal places. It writes no spaces or line breaks between tokens.
struct Rounding;

impl Formatter for Rounding {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, number: f64) -> io::Result<()> {
        CompactFormatter.write_f64(out, rounded(number))
    }
}

/// Returns `true` if `number` is 0. Serde calls this function to leave out fields that are 0.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns `number`, rounded to six decimal places. Returns it unchanged if it would become 0, or if it is too large to
/// be rounded.
pub(crate) fn rounded(number: f64) -> f64 {
    let rounded = (1e6 * number).round() / 1e6;
    if rounded.is_finite() && rounded != 0.0 {
        rounded
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_decimal_places() {
        let numbers = [
            2.400_000_000_000_000_4,
            100.0 / 3.0,
            -0.1 - 0.2,
            70.0,
            1e-9,
            1e300,
            0.0,
        ];
        assert_eq!(
            to_string(&numbers).unwrap(),
            "[2.4,33.333333,-0.3,70.0,1e-9,1e+300,0.0]"
        );
        let document = serde_json::json!({"share": 1.0 / 3.0, "text": "a\"b", "games": 7});
        assert_eq!(
            to_string(&document).unwrap(),
            r#"{"share":0.333333,"text":"a\"b","games":7}"#
        );
    }
}
