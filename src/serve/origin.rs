//! Web sites that may read answers.

use std::{fmt, str::FromStr};

use axum::http::{HeaderValue, Uri};

/// An origin whose pages may read the answers: scheme, host and port as a browser names them, or `*` for all.
///
/// ```
/// use polybook::serve::Origin;
///
/// let origin: Origin = "https://Chess.example:443".parse()?;
/// assert_eq!(origin.to_string(), "https://chess.example");
/// assert!("chess.example".parse::<Origin>().is_err());
/// assert!("https://chess.example/page".parse::<Origin>().is_err());
/// # Ok::<(), polybook::serve::OriginError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin(HeaderValue);

/// A text that is no origin.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "write an origin such as https://chess.example or http://localhost:3000, without a path, or *"
)]
pub struct OriginError;

impl Origin {
    /// Whether these are the pages of all origins.
    pub(super) fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// What a browser sends as `Origin`.
    pub(super) fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Origin, OriginError> {
        if text == "*" {
            return Ok(Origin(HeaderValue::from_static("*")));
        }
        let lower = text.to_ascii_lowercase();
        let uri: Uri = lower.parse().map_err(|_| OriginError)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(OriginError);
        };
        let is_bare = lower == format!("{scheme}://{authority}") && !lower.contains('@');
        // Browsers leave out the usual port.
        let usual = [("http", 80), ("https", 443)];
        let named = match authority.port_u16() {
            Some(port) if usual.contains(&(scheme, port)) => {
                format!("{scheme}://{}", authority.host())
            }
            _ => lower.clone(),
        };
        let value = HeaderValue::try_from(named).map_err(|_| OriginError)?;
        is_bare.then_some(Origin(value)).ok_or(OriginError)
    }
}
