//! Sizes of memory as people write them.

/// Reads a number of bytes: `64MiB`, `1g`, `500MB`, `1048576`.
pub fn parse(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("write a size such as 64MiB or 4GiB".to_owned()),
    };
    number
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| "write a size such as 64MiB or 4GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes() {
        assert_eq!(parse("64MiB"), Ok(64 << 20));
        assert_eq!(parse("1g"), Ok(1 << 30));
        assert_eq!(parse("500 MB"), Ok(500_000_000));
        assert_eq!(parse("12"), Ok(12));
        for wrong in ["", "MiB", "-1", "1.5GiB", "99999999999TiB", "1x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
