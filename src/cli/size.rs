//! Sizes of memory as people write them: `64MiB`, `1g`, `500MB`.

use std::{fmt, str::FromStr};

use parse_size::Config;

/// A number of bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = &'static str;

    /// `KiB`, `k` and their like are powers of 1024; `kB` and its like are powers of 1000.
    fn from_str(text: &str) -> Result<Size, Self::Err> {
        let unit = text.trim().to_ascii_lowercase();
        let config = if unit.ends_with('b') {
            Config::new().with_decimal()
        } else {
            Config::new().with_binary()
        };
        config
            .parse_size(text)
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .map(Size)
            .ok_or("write a size such as 64MiB or 4GiB")
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let whole = UNITS
            .iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        match whole {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_back() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("1g", 1 << 30),
            ("1Ki", 1 << 10),
            ("2T", 2 << 40),
            ("500 MB", 500_000_000),
            ("3kb", 3000),
            ("1.5GiB", 3 << 29),
            ("12", 12),
            ("12b", 12),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)), "{text}");
        }
        for wrong in ["", "MiB", "-1", "99999999999TiB", "1x", "lots"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
        assert_eq!(Size(1 << 30).to_string(), "1GiB");
        assert_eq!(Size(1000).to_string(), "1000");
    }
}
