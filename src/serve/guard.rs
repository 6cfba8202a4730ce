//! Decides which requests the server answers, and how browsers may use the responses.
//!
//! A browser lets pages of another origin read the responses, or show the web page in a frame, only if `--allow-origin`
//! names this origin. Two loopholes remain, which this module closes:
//!
//! - A page may use a host name of its own that resolves to this machine (DNS rebinding). Its requests contain this
//!   host name, so the server refuses them.
//! - A page may load an address of this server as a script, an image or a frame. The page cannot read the response, but
//!   the server does the work, and the page learns whether loading succeeded. Browsers mark such requests with the
//!   header `Sec-Fetch-Site`, and the server refuses marked requests. Over plain HTTP to another machine, however,
//!   browsers do not send this header. Costly routes therefore also require the header [`OWN_HEADER`]. A page of
//!   another site cannot send it without a preflight request, which fails.

use std::{fmt, net::IpAddr, str::FromStr};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::Authority},
    response::Response,
};

use super::refusal::Refusal;

/// The request header in which a browser says whether the requesting page belongs to the same site as the server.
const FETCH_SITE: &str = "sec-fetch-site";

/// The request header in which a browser says how it will use the response, for example as a `document` or a `script`.
const FETCH_DEST: &str = "sec-fetch-dest";

/// A header that the scripts of the server's own page send with every request, and that pages of other sites cannot
/// send. Its value does not matter.
const OWN_HEADER: &str = "x-polybook";

/// The paths of routes that are costly to answer, because they read many games or write files.
const COSTLY_ROUTES: [&str; 10] = [
    "/book.bin",
    "/book.pgn",
    "/facets",
    "/games",
    "/gaps",
    "/openings",
    "/prepare",
    "/repertoire.bin",
    "/repertoire.pgn",
    "/scores",
];

/// The query parameters that make a request costly on any route, because the server must read many games to answer it.
const COSTLY_PARAMETERS: [&str; 2] = ["clocks", "duplicates"];

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The content security policy of the web page, without the origins that may show the page in a frame. It lets the page
/// load only files of this server, and forbids inline scripts and styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors";

/// The security headers of every response, in addition to the content security policy of the page. Responses with
/// status 304 contain them too, because a browser copies the headers to its cached response.
const HEADERS: [(HeaderName, &str); 2] = [
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// Protects the server from pages of other sites: refuses some requests from such pages, and adds security headers to
/// all responses.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) hosts: Hosts,
    /// The origins whose pages may read the responses.
    pub(super) origins: Vec<Origin>,
}

impl Guard {
    /// Checks whether the server may answer a request.
    ///
    /// # Errors
    ///
    /// Returns an error response if the request names a host that does not belong to this server, or if it comes from a
    /// page of another site whose origin is not allowed. Also refuses a costly request if its headers do not show
    /// whether it comes from such a page.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let (uri, headers) = (request.uri(), request.headers());
        self.hosts.check(uri, headers)?;
        if self.allows(headers.get(header::ORIGIN)) {
            return Ok(());
        }
        let is_foreign = match headers.get(FETCH_SITE) {
            Some(site) if site == "cross-site" || site == "same-site" => {
                let shown = headers.get(FETCH_DEST);
                let is_shown = shown.is_none_or(|shown| {
                    // The policy of the page names the origins that may frame it.
                    shown == "document" || shown == "iframe" && !self.origins.is_empty()
                });
                uri.path() != "/" || !is_shown
            }
            Some(_) => false,
            None => {
                let is_own = names_this_machine(headers) && has_own_origin(headers);
                is_costly(request.method(), uri) && !headers.contains_key(OWN_HEADER) && !is_own
            }
        };
        if is_foreign {
            Err(refusal_of_page(headers))
        } else {
            Ok(())
        }
    }

    /// Adds the security headers to a response. `origin` is the `Origin` header of the request, or `None` if it has
    /// none.
    pub(super) fn protect(&self, origin: Option<&HeaderValue>, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy());
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let readers = if self.allows(origin) {
            "cross-origin"
        } else {
            "same-origin"
        };
        let readers = HeaderValue::from_static(readers);
        headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, readers);
    }

    /// Returns the content security policy of the web page, which allows pages of the allowed origins to show it in a
    /// frame.
    fn policy(&self) -> HeaderValue {
        let mut policy = POLICY.as_bytes().to_vec();
        if self.origins.is_empty() {
            policy.extend(b" 'none'");
        }
        for Origin(origin) in &self.origins {
            policy.push(b' ');
            policy.extend(origin.as_bytes());
        }
        HeaderValue::from_bytes(&policy).expect("origins are values of headers")
    }

    /// Returns `true` if pages of `origin` may read the server's responses. `None` stands for a request without an
    /// `Origin` header, which is allowed only if all origins are.
    fn allows(&self, origin: Option<&HeaderValue>) -> bool {
        let mut allowed = self.origins.iter();
        allowed.any(|allowed| match origin {
            Some(origin) => allowed.allows(origin),
            None => allowed.0 == "*",
        })
    }
}

/// Creates the error response for a request that comes, or may come, from a page of another site. Its message tells the
/// author of that page, or of a client program, what to do. `headers` are the headers of the request.
fn refusal_of_page(headers: &HeaderMap) -> Refusal {
    Refusal::forbidden(match headers.get(header::ORIGIN) {
        _ if !headers.contains_key(FETCH_SITE) && has_own_origin(headers) => {
            "a page of another site may have sent this request: send the header \"X-Polybook: 1\" if your program sent \
             it"
            .to_owned()
        }
        None => "pages of other sites cannot link to this address or embed it: load it with fetch and not with mode no-cors, and start the server with --allow-origin".to_owned(),
        Some(origin) if origin == "null" => {
            "this page has no origin, perhaps because it was opened from a file: serve the page over HTTP, or start \
             the server with --allow-origin '*'"
                .to_owned()
        }
        Some(origin) => format!(
            "this server does not answer pages of other sites: start the server with --allow-origin {}",
            shown_origin(origin).unwrap_or("ORIGIN")
        ),
    })
}

/// Returns the value of an `Origin` header, if an error message can suggest it as a value of `--allow-origin`. Returns
/// `None` if the option would reject the value, or if a shell would require quotes.
fn shown_origin(header: &HeaderValue) -> Option<&str> {
    let text = header.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:/".contains(&byte);
    let is_origin = text.bytes().all(is_plain) && text.parse::<Origin>().is_ok();
    is_origin.then_some(text)
}

/// Returns `true` if the `Origin` header is missing or names this server. Otherwise, the request may come from a page
/// of another site. The check is needed for old browsers, which send `Origin` but not `Sec-Fetch-Site`.
fn has_own_origin(headers: &HeaderMap) -> bool {
    let site = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    site.is_none_or(|site| host.is_some_and(|host| site.strip_suffix(host) == Some(b"http://")))
}

/// Checks that a request that changes something comes from the server's own page or from another program, by requiring
/// the header [`OWN_HEADER`]. Pages of other origins cannot send it without a preflight request, which only routes with
/// CORS headers allow.
///
/// # Errors
///
/// Returns an error response if the header is missing.
pub(super) fn check_own_page(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.contains_key(OWN_HEADER) {
        return Ok(());
    }
    let text = format!(
        "only the page of this server may send this request: other programs add the header {OWN_HEADER}: 1"
    );
    Err(Refusal::forbidden(text))
}

/// Returns `true` if the server must read many games or write files to answer a request with this method and URI. A
/// `POST` request always counts as costly, because its body may contain many edits of a repertoire.
fn is_costly(method: &Method, uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default().as_bytes();
    *method == Method::POST
        || COSTLY_ROUTES.contains(&uri.path())
        || form_urlencoded::parse(query).any(|(name, _)| COSTLY_PARAMETERS.contains(&&*name))
}

/// Returns `true` if the `Host` header names this machine, as in `localhost:8040`. Browsers send `Sec-Fetch-Site` with
/// every request to this machine, so a request without this header comes from another program.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        host.eq_ignore_ascii_case("localhost")
            || bare_address(host).is_some_and(|address| address.is_loopback())
    })
}

/// Parses a host as an IP address, with or without square brackets. Returns `None` if it is a host name.
fn bare_address(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok()
}

/// The hosts that a request may name: the address of the server, `localhost`, and the names that the user has allowed.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// The address at which the server listens.
    pub(super) listening: IpAddr,
    /// Other host names and addresses that the user has allowed.
    pub(super) allowed: Vec<String>,
}

/// The error for a string that is not just a host name. Contains the host name within the string, if there is one, such
/// as `chess.example` in `https://chess.example/`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "use a host name without scheme, port and path: {}",
    .0.as_deref().map_or("such as chess.example".to_owned(), |name| format!("--allow-host {name}"))
)]
pub struct HostError(Option<String>);

/// Checks that `text` is a host name or an IP address, as the `Host` header of a request may contain it. Returns `text`
/// unchanged.
///
/// ```
/// use polybook::serve::host_name;
///
/// assert_eq!(host_name("chess.example")?, "chess.example");
/// let advice = "use a host name without scheme, port and path: --allow-host chess.example";
/// assert_eq!(host_name("https://chess.example/").unwrap_err().to_string(), advice);
/// # Ok::<(), polybook::serve::HostError>(())
/// ```
///
/// # Errors
///
/// Returns an error if `text` contains anything else, such as a scheme, a port, a path or a `*`. With such a value, the
/// server would accept no request.
pub fn host_name(text: &str) -> Result<String, HostError> {
    match name_in(text) {
        Some(name) if name == text => Ok(text.to_owned()),
        name => Err(HostError(name.map(str::to_owned))),
    }
}

/// Returns the host name or the IP address in `text`, which is a URL or the value of a `Host` header. Returns `None` if
/// `text` contains neither.
fn name_in(text: &str) -> Option<&str> {
    if bare_address(text).is_some() {
        return Some(text);
    }
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = match authority.find(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(is_plain) && !name.starts_with('-');
    (is_name || bare_address(name).is_some()).then_some(name)
}

impl Hosts {
    /// Checks that the host in the `Host` header belongs to this server. If the URI also contains a host, checks this
    /// host too. Returns an error response if a check fails.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Refusal::misdirected("", None));
        };
        let host = String::from_utf8_lossy(host.as_bytes());
        for named in [Some(&*host), uri.authority().map(Authority::as_str)]
            .into_iter()
            .flatten()
        {
            let authority: Option<Authority> = named.parse().ok();
            let is_ours = authority.is_some_and(|authority| {
                // The text must consist of a host and an optional port. It must not contain user information
                // (`user@`).
                let is_plain = authority.as_str() == authority.host()
                    || (authority.port_u16().is_some() && !authority.as_str().contains('@'));
                is_plain && self.accepts(authority.host())
            });
            if !is_ours {
                return Err(Refusal::misdirected(named, name_in(named)));
            }
        }
        Ok(())
    }

    /// Returns `true` if the server accepts requests for this host name or IP address.
    fn accepts(&self, host: &str) -> bool {
        if let Some(address) = bare_address(host) {
            // An address is not resolved by DNS, so it cannot be made to lead to another host. If the server listens
            // on all addresses, every address is accepted.
            let mut allowed = self.allowed.iter().filter_map(|name| bare_address(name));
            return address == self.listening
                || self.listening.is_unspecified()
                || allowed.any(|allowed| allowed == address);
        }
        let allowed = self.allowed.iter().map(String::as_str);
        allowed
            .chain(["localhost"])
            .any(|name| host.eq_ignore_ascii_case(name))
    }
}

/// An origin whose pages may read the server's responses. It consists of a scheme, a host and a port, as in a browser's
/// `Origin` header. The origin `*` allows all origins.
///
/// ```
/// use polybook::serve::Origin;
///
/// let origin: Origin = "https://Chess.example:443".parse()?;
/// assert_eq!(origin.to_string(), "https://chess.example");
/// assert!("chess.example".parse::<Origin>().is_err());
/// assert!("https://chess.example/page".parse::<Origin>().is_err());
/// assert!("http://localhost:*".parse::<Origin>().is_err());
/// # Ok::<(), polybook::serve::OriginError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin(pub(super) HeaderValue);

/// The error for a string that is not a valid [`Origin`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "use a scheme, a host and perhaps a port, such as https://chess.example or http://localhost:3000, or * for every origin"
)]
pub struct OriginError;

impl Origin {
    /// Returns `true` if this value of `--allow-origin` lets web pages of `origin` read the responses of the server.
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
        let port = authority.port_u16();
        let host_and_port = port.map(|port| format!("{}:{port}", authority.host()));
        let is_complete = authority == host_and_port.as_deref().unwrap_or(authority.host());
        let is_bare = lower == format!("{scheme}://{authority}") && !lower.contains(['@', '*']);
        // Browsers omit the default port.
        let usual = [("http", 80), ("https", 443)];
        let named = match port {
            Some(port) if usual.contains(&(scheme, port)) => {
                format!("{scheme}://{}", authority.host())
            }
            _ => lower.clone(),
        };
        let value = HeaderValue::try_from(named).map_err(|_| OriginError)?;
        let is_valid = is_bare && is_complete;
        is_valid.then_some(Origin(value)).ok_or(OriginError)
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
            allowed: ["chess.example", "192.168.1.9", "fe80::1"]
                .map(String::from)
                .to_vec(),
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.check(&"/lichess".parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn only_the_hosts_of_the_server_are_accepted() {
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
        assert!(check("127.0.0.1:8040", "192.168.1.9:80"));
        assert!(check("127.0.0.1:8040", "[fe80::1]"));
    }

    #[test]
    fn invalid_host_names_are_refused() {
        for name in ["chess.example", "a-b_c", "192.168.1.9", "::1", "[fe80::1]"] {
            assert_eq!(host_name(name).as_deref(), Ok(name));
        }
        for (text, name) in [
            ("https://chess.example", Some("chess.example")),
            ("http://chess.example:80/page?a", Some("chess.example")),
            ("chess.example/", Some("chess.example")),
            ("chess.example:8040", Some("chess.example")),
            ("http://[::1]:8040/", Some("[::1]")),
            ("127.0.0.1:8040", Some("127.0.0.1")),
            ("*.chess.example", None),
            ("user@chess.example", None),
            ("schach.exämple", None),
            ("--open", None),
            ("]", None),
            ("", None),
        ] {
            let name = name.map(str::to_owned);
            assert_eq!(host_name(text), Err(HostError(name)), "{text}");
        }
    }

    /// Browsers of before 2023 send no `Sec-Fetch-Site`.
    #[test]
    fn an_origin_alone_shows_a_page_of_another_site() {
        let guard = Guard {
            hosts: Hosts {
                listening: [127, 0, 0, 1].into(),
                allowed: Vec::new(),
            },
            origins: Vec::new(),
        };
        for (method, path, origin, is_answered) in [
            ("GET", "/book.bin", None, true),
            ("GET", "/book.bin", Some("http://127.0.0.1:8040"), true),
            ("GET", "/book.bin", Some("http://127.0.0.1:80"), false),
            ("GET", "/book.bin", Some("https://evil.example"), false),
            ("GET", "/book.bin", Some("null"), false),
            ("GET", "/lichess", Some("https://evil.example"), true),
            ("GET", "/repertoire", Some("https://evil.example"), true),
            ("POST", "/repertoire", Some("https://evil.example"), false),
        ] {
            let mut request = Request::builder()
                .method(method)
                .uri(path)
                .header(header::HOST, "127.0.0.1:8040");
            if let Some(origin) = origin {
                request = request.header(header::ORIGIN, origin);
            }
            let checked = guard.check(&request.body(()).unwrap());
            assert_eq!(checked.is_ok(), is_answered, "{method} {path} {origin:?}");
        }
    }

    #[test]
    fn only_allowed_origins_may_frame_the_page() {
        let origins = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        for (allowed, ancestors, is_framed) in [
            (&[][..], "frame-ancestors 'none'", false),
            (
                &["https://a.example", "http://localhost:5173"],
                "frame-ancestors https://a.example http://localhost:5173",
                true,
            ),
            (&["*"], "frame-ancestors *", true),
        ] {
            let guard = Guard {
                hosts: Hosts {
                    listening: [127, 0, 0, 1].into(),
                    allowed: Vec::new(),
                },
                origins: origins(allowed),
            };
            let mut response = Response::default();
            guard.protect(None, &mut response);
            let policy = &response.headers()[header::CONTENT_SECURITY_POLICY];
            let policy = policy.to_str().unwrap();
            assert!(policy.ends_with(ancestors), "{policy}");
            assert!(policy.starts_with("default-src 'none'; "), "{policy}");
            for (path, shown, is_answered) in [
                ("/", "document", true),
                ("/?embed=1", "iframe", is_framed),
                ("/", "object", *allowed == ["*"]),
                ("/lichess", "iframe", *allowed == ["*"]),
            ] {
                let request = Request::get(path)
                    .header(header::HOST, "127.0.0.1:8040")
                    .header(FETCH_SITE, "cross-site")
                    .header(FETCH_DEST, shown);
                let checked = guard.check(&request.body(()).unwrap());
                assert_eq!(checked.is_ok(), is_answered, "{path} {shown} {allowed:?}");
            }
        }
    }

    #[test]
    fn the_host_in_the_request_line_is_checked_too() {
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
