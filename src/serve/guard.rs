//! Which hosts a request may name, and which origins' pages may read the answers.
//!
//! A browser does not let a page of another origin read the answers, unless `--allow-origin` names it. Such a page could
//! only read them if its own name resolved to this machine (DNS rebinding). Its requests then name that host, and are
//! refused.

use std::{fmt, net::IpAddr, str::FromStr};

use axum::http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

use super::refusal::Refusal;

/// The hosts that a server accepts.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    pub(super) listening: IpAddr,
    /// Names besides `localhost`.
    pub(super) allowed: Vec<String>,
}

impl Hosts {
    /// Lets a request pass if every host that it names is one of ours.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Refusal::misdirected(""));
        };
        let host = String::from_utf8_lossy(host.as_bytes());
        for named in [Some(&*host), uri.authority().map(Authority::as_str)]
            .into_iter()
            .flatten()
        {
            let authority: Option<Authority> = named.parse().ok();
            let is_ours = authority.is_some_and(|authority| {
                // Nothing but a host, with a port or without.
                let is_plain = authority.as_str() == authority.host()
                    || (authority.port_u16().is_some() && !authority.as_str().contains('@'));
                is_plain && self.accepts(authority.host())
            });
            if !is_ours {
                return Err(Refusal::misdirected(named));
            }
        }
        Ok(())
    }

    fn accepts(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            // An address is not resolved, so it cannot be another host's. A wildcard bind accepts any IP address.
            return address == self.listening || self.listening.is_unspecified();
        }
        let allowed = self.allowed.iter().map(String::as_str);
        allowed
            .chain(["localhost"])
            .any(|name| host.eq_ignore_ascii_case(name))
    }
}

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
pub struct Origin(pub(super) HeaderValue);

/// A text that is no origin.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "write an origin such as https://chess.example or http://localhost:3000, without a path, or *"
)]
pub struct OriginError;

impl Origin {
    /// Whether a page of an origin may read the answers.
    pub(super) fn allows(&self, origin: &HeaderValue) -> bool {
        self.0 == "*" || self.0 == origin
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn check(listening: &str, host: &str) -> bool {
        let listening: SocketAddr = listening.parse().unwrap();
        let hosts = Hosts {
            listening: listening.ip(),
            allowed: vec!["chess.example".to_owned()],
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.check(&"/lichess".parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn only_our_own_names_pass() {
        for host in [
            "127.0.0.1:8040",
            "127.0.0.1",
            "localhost:1",
            "LocalHost",
            "Chess.Example:443",
        ] {
            assert!(check("127.0.0.1:8040", host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "10.0.0.1",
            "[::1]",
            "a@localhost",
            "localhost:x",
        ] {
            assert!(!check("127.0.0.1:8040", host), "{host}");
        }
        assert!(check("[::1]:8040", "[::1]:8040"));
        assert!(check("0.0.0.0:8040", "192.168.1.5:8040"));
        assert!(!check("0.0.0.0:8040", "evil.example"));
    }

    #[test]
    fn an_address_in_the_request_line_counts_too() {
        let hosts = Hosts {
            listening: [127, 0, 0, 1].into(),
            allowed: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        assert!(hosts.check(&"/".parse().unwrap(), &headers).is_err());
        headers.insert(header::HOST, "localhost".parse().unwrap());
        assert!(
            hosts
                .check(&"http://localhost/".parse().unwrap(), &headers)
                .is_ok()
        );
        assert!(
            hosts
                .check(&"http://evil/".parse().unwrap(), &headers)
                .is_err()
        );
        headers.append(header::HOST, "evil".parse().unwrap());
        assert!(hosts.check(&"/".parse().unwrap(), &headers).is_err());
    }
}
