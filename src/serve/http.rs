//! HTTP connections: accepting them, limiting their number and their time, and closing them.

use std::{
    convert::Infallible,
    io,
    net::{self, TcpListener},
    thread,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::{
    Request,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpStream,
    runtime::Builder,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    time::{Instant, sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use super::{
    Refusal,
    client::{Client, Clients},
    form::{is_form_refused, receive_form},
    guard::Guard,
    log::{Logging, Served},
};

/// The maximum size of a request's headers, in bytes. hyper does not accept a lower limit.
const MAX_REQUEST_HEAD: usize = 8 << 10;

/// The maximum time that a client may take to send all headers of a request. It is also the maximum time for which a
/// connection may be idle between two requests.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time for which the server waits for a client that does not read its response. Without this limit, such
/// clients would occupy connections and memory forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of tokio scheduler ticks after which a thread checks for new events. In one tick, the server sends up to
/// 16 responses to a client that pipelines requests. With tokio's default of 61 ticks, other clients would therefore
/// wait for seconds. Checking more often has no measurable cost.
const EVENT_INTERVAL: u32 = 4;

/// The maximum time for which a shutdown waits for requests that are still being answered.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A handle that stops a running server. It can be cloned and used on another thread.
///
/// ```
/// let stop = polybook::serve::Stop::default();
/// let other = stop.clone();
/// std::thread::spawn(move || other.stop());
/// ```
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Stop {
        Stop(watch::Sender::new(false))
    }
}

impl Stop {
    /// Makes the server stop accepting requests. Returns immediately.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until [`stop`](Stop::stop) is called.
    pub(super) async fn stopped(&self) {
        // The channel cannot close while `self` exists.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// The parts of the server that all connections share: the guard that checks requests, the routes, and the log.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) guard: Guard,
    pub(super) routes: Router,
    pub(super) log: Option<Logging>,
}

/// An accepted connection, in the form in which it is passed to the thread that will serve it. It consists of the
/// client, the stream, and a watcher, which lets a shutdown wait for the connection to end.
type AcceptedClient = (Client, net::TcpStream, Watcher);

/// The channels that pass accepted connections to the threads that serve them. There is one channel for each thread. A
/// thread ends when its channel is dropped.
pub(super) type Threads = Vec<UnboundedSender<AcceptedClient>>;

/// Starts `count` threads that serve connections. Each thread has a tokio runtime of its own. A single multi-threaded
/// runtime would wait forever if the operating system could not start all of its threads.
pub(super) fn start(count: usize, site: &Site) -> io::Result<Threads> {
    let start_one = |_| {
        let runtime = Builder::new_current_thread()
            .event_interval(EVENT_INTERVAL)
            .enable_all()
            .build()?;
        let (sender, arrivals) = unbounded_channel();
        let serving = serve_arrivals(arrivals, site.clone());
        let thread = thread::Builder::new().name("connections".to_owned());
        thread.spawn(move || runtime.block_on(serving))?;
        Ok(sender)
    };
    (0..count).map(start_one).collect()
}

/// Serves the connections that arrive through the channel `arrivals`. Ends when the sender of the channel is dropped.
async fn serve_arrivals(mut arrivals: UnboundedReceiver<AcceptedClient>, site: Site) {
    while let Some((client, stream, watcher)) = arrivals.recv().await {
        // If the conversion fails, the connection is broken and cannot be answered.
        if let Ok(stream) = TcpStream::from_std(stream) {
            tokio::spawn(watcher.watch(connection(client, stream, site.clone())));
        }
    }
}

/// Accepts connections and distributes them evenly among the threads, until `stop` is triggered. Then waits for at most
/// [`SHUTDOWN_TIMEOUT`] until the requests that are still being answered are complete.
pub(super) async fn serve(listener: TcpListener, threads: &Threads, stop: &Stop) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let connections = GracefulShutdown::new();
    let mut clients = Clients::new(listener.local_addr()?.ip());
    let accept = async {
        for thread in threads.iter().cycle() {
            let permit = clients.connection_permit().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    if let Some((client, stream)) = clients.enter(permit, stream, address.ip()) {
                        // The receivers exist as long as `threads`, so sending cannot fail.
                        let _ = thread.send((client, stream, connections.watcher()));
                    }
                }
                // Too many files are open, or the connection was closed before it was accepted. Trying again later
                // may succeed.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.stopped() => {}
    }
    // Answers that take longer end when the program exits.
    let _ = timeout(SHUTDOWN_TIMEOUT, connections.shutdown()).await;
    Ok(())
}

/// Returns a future that answers all requests of one connection. `client` is attached to each of these requests, so
/// that routes can read it.
fn connection(
    client: Client,
    stream: TcpStream,
    site: Site,
) -> impl GracefulConnection<Error = hyper::Error> + Send {
    // Answers are written in one piece, so Nagle's algorithm would only delay them. If this fails, the stream is
    // closed.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = service_fn(move |request: Request<_>| {
        let (site, client) = (site.clone(), client.clone());
        async move { Ok::<_, Infallible>(site.answer(request.map(Body::new), client).await) }
    });
    http1::Builder::new()
        .max_buf_size(MAX_REQUEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
}

impl Site {
    /// Answers a request, adds the security headers to the response, and logs the request.
    async fn answer(self, request: Request<Body>, client: Client) -> Response {
        let start = Instant::now();
        let log = self.log.clone();
        let logged = log.map(|log| (log, request.method().to_string(), request.uri().to_string()));
        let origin = request.headers().get(header::ORIGIN).cloned();
        let guard = self.guard.clone();
        let mut response = self.checked(request, client).await.into_response();
        guard.protect(origin.as_ref(), &mut response);
        if let Some((log, method, path)) = logged {
            log.note(Served {
                method,
                path,
                status: response.status().as_u16(),
                time: start.elapsed(),
                left_out: 0,
            });
        }
        response
    }

    /// Answers a request if the [`Guard`] accepts it. First waits until the limits of `client` allow another request.
    ///
    /// # Errors
    ///
    /// Returns an error response if the guard rejects the request, or if too many requests are waiting. Also returns an
    /// error response if the client accepts no content coding of the server.
    async fn checked(self, request: Request<Body>, client: Client) -> Result<Response, Refusal> {
        self.guard.check(&request)?;
        let _own = client.address_permit().await?;
        // Requests whose forms arrive slowly hold only the permits of their address and of the bytes that have arrived,
        // so they do not block other clients.
        let (mut request, _form) = receive_form(request, &client).await;
        // A refused form needs no work, so it is answered even if the server is busy.
        let _permit = match is_form_refused(&request) {
            true => None,
            false => Some(client.server_permit().await?),
        };
        request.extensions_mut().insert(client);
        let Ok(response) = TowerToHyperService::new(self.routes).call(request).await;
        match response.status() {
            // The compression layer returns this status together with the uncompressed body.
            StatusCode::NOT_ACCEPTABLE => Err(Refusal::no_coding()),
            _ => Ok(response),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, net::IpAddr, pin::Pin};

    use axum::routing::get;

    use super::{
        super::{
            form::{form_as_query, tests::unfinished},
            guard::Hosts,
        },
        *,
    };

    /// Returns the output of a future if it is available immediately.
    async fn immediate<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        // If a task never yields, tokio makes its operations wait after some time.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    /// Returns a site with a route that accepts forms and a route that does not.
    fn site() -> Site {
        let posted = async |request| form_as_query(request).map(|_| "answer");
        Site {
            guard: Guard {
                hosts: Hosts {
                    listening: [127, 0, 0, 1].into(),
                    allowed: Vec::new(),
                },
                origins: Vec::new(),
            },
            routes: Router::new()
                .route("/gaps", get(async || "answer").post(posted))
                .route("/facets", get(async || "answer")),
            log: None,
        }
    }

    /// Returns the future that answers a request of `client`.
    fn answer(
        mut request: Request<Body>,
        client: &Client,
    ) -> Pin<Box<impl Future<Output = Result<Response, Refusal>> + use<>>> {
        let host = "localhost".parse().unwrap();
        request.headers_mut().insert(header::HOST, host);
        Box::pin(site().checked(request, client.clone()))
    }

    fn get_request() -> Request<Body> {
        Request::get("/gaps").body(Body::empty()).unwrap()
    }

    /// Runs `test` with a connection of each of `count` clients, which have different addresses. `listening` is the
    /// address of the server.
    fn with_clients(listening: IpAddr, count: u8, test: impl AsyncFnOnce(Vec<Client>)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut clients = Clients::new(listening);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut entered = Vec::new();
            for address in 0..count {
                let stream = TcpStream::connect(listener.local_addr().unwrap());
                let (stream, permit) = (stream.await.unwrap(), clients.connection_permit().await);
                entered.extend(clients.enter(permit, stream, [10, 0, 0, address].into()));
            }
            let clients = entered.iter().map(|(client, _)| client.clone());
            test(clients.collect()).await;
        });
    }

    #[test]
    fn forms_that_do_not_arrive_do_not_block_other_clients() {
        with_clients([0, 0, 0, 0].into(), 9, async |clients| {
            let mut waiting = Vec::new();
            for client in &clients[..8] {
                for _ in 0..32 {
                    let mut request = answer(unfinished(100, false), client);
                    assert!(immediate(request.as_mut()).await.is_none());
                    waiting.push(request);
                }
            }
            // Requests with unfinished forms count toward the limit of their address.
            let of_address = immediate(answer(get_request(), &clients[0]).as_mut()).await;
            assert!(of_address.is_none());
            let other = immediate(answer(get_request(), &clients[8]).as_mut()).await;
            assert_eq!(other.unwrap().unwrap().status(), StatusCode::OK);
        });
    }

    #[test]
    fn forms_of_all_clients_together_are_limited() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            let client = &clients[0];
            let mut waiting = Vec::new();
            let refusal = loop {
                let mut request = answer(unfinished(48 << 10, false), client);
                match immediate(request.as_mut()).await {
                    None => waiting.push(request),
                    Some(answered) => break answered,
                }
                assert!(waiting.len() <= (16 << 20) / (48 << 10));
            };
            assert_eq!(refusal.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
            // Requests without a form, and forms that are still empty, need no permits.
            let get = immediate(answer(get_request(), client).as_mut()).await;
            assert_eq!(get.unwrap().unwrap().status(), StatusCode::OK);
            let mut empty = answer(unfinished(0, false), client);
            assert!(immediate(empty.as_mut()).await.is_none());
            drop(waiting.pop());
            let mut request = answer(unfinished(48 << 10, false), client);
            assert!(immediate(request.as_mut()).await.is_none());
        });
    }

    #[test]
    fn forms_need_permits_for_their_encoded_bytes() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            for (form, bytes) in [("edits=e4", 8), ("edits=%FF", 15), ("edits=\u{e9}", 12)] {
                let mut request = unfinished(0, false);
                *request.body_mut() = Body::from(form);
                let (_, permits) = receive_form(request, &clients[0]).await;
                assert_eq!(permits.unwrap().num_permits(), bytes, "{form}");
            }
        });
    }

    #[test]
    fn a_broken_connection_is_not_called_a_long_form() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            for bytes in [0, 100] {
                let answered =
                    immediate(answer(unfinished(bytes, true), &clients[0]).as_mut()).await;
                let response = answered.unwrap().unwrap();
                assert_eq!(response.status(), StatusCode::BAD_REQUEST);
                let text = axum::body::to_bytes(response.into_body(), 1000)
                    .await
                    .unwrap();
                assert!(
                    text.starts_with(b"the form cannot be received: "),
                    "{text:?}"
                );
            }
        });
    }

    #[test]
    fn forms_are_received_only_where_they_are_accepted() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            let mut request = unfinished(100, false);
            *request.uri_mut() = "/facets".parse().unwrap();
            let answered = immediate(answer(request, &clients[0]).as_mut()).await;
            let status = answered.unwrap().unwrap().status();
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            // A form that is too long is refused even if the server cannot answer any other request.
            let mut taken = Vec::new();
            for _ in 0..256 {
                taken.push(clients[0].server_permit().await.unwrap());
            }
            let valid = immediate(answer(get_request(), &clients[0]).as_mut()).await;
            assert!(valid.is_none());
            let too_long =
                immediate(answer(unfinished((48 << 10) + 1, false), &clients[0]).as_mut()).await;
            let status = too_long.unwrap().unwrap().status();
            assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        });
    }
}
