//! Connections: accepting them, their limits, and ending them.

use std::{
    convert::Infallible,
    io,
    net::{self, TcpListener},
    thread,
    time::Duration,
};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::{
    Request,
    body::Incoming,
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
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant, sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use super::{
    Refusal, Stop,
    client::{Client, Clients},
    guard::Guard,
    log::{Logging, Served},
};

/// The longest request, headers and all, in bytes. (The least that hyper takes.)
const LONGEST_REQUEST: usize = 8 << 10;

/// How long a request may take to arrive, and a connection may wait for the next one.
const ARRIVING: Duration = Duration::from_secs(10);

/// How long a write may wait for a client that does not read. Without that, clients that never read would keep
/// their connections and answers for ever.
const UNREAD: Duration = Duration::from_secs(5);

/// After how many turns a thread looks who has sent something. A client that sends many requests at once has 16 of them
/// answered in a turn, and the usual 61 turns let the others wait for seconds. Looking costs too little to be measured.
const TURNS: u32 = 4;

/// How long answers under way may take at the end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// What answers the requests of all connections.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) guard: Guard,
    pub(super) routes: Router,
    pub(super) log: Option<Logging>,
}

/// A connection that a thread is to serve.
type Arrival = (Client, net::TcpStream, Watcher);

/// Threads that serve connections, and end when this is dropped.
pub(super) type Threads = Vec<UnboundedSender<Arrival>>;

/// Starts threads, each with a runtime of its own: one runtime of several threads would wait for ever for those that the
/// system does not give.
pub(super) fn start(count: usize, site: &Site) -> io::Result<Threads> {
    let start_one = |_| {
        let runtime = Builder::new_current_thread()
            .event_interval(TURNS)
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

async fn serve_arrivals(mut arrivals: UnboundedReceiver<Arrival>, site: Site) {
    while let Some((client, stream, watcher)) = arrivals.recv().await {
        // Nothing can be answered on a connection that breaks.
        if let Ok(stream) = TcpStream::from_std(stream) {
            tokio::spawn(watcher.watch(connection(client, stream, site.clone())));
        }
    }
}

/// Accepts connections until `stop` says so, and then waits for the answers that are under way.
pub(super) async fn serve(listener: TcpListener, threads: &Threads, stop: &Stop) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let connections = GracefulShutdown::new();
    let mut clients = Clients::new(listener.local_addr()?.ip());
    let accept = async {
        for thread in threads.iter().cycle() {
            let place = clients.place().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    if let Some((client, stream)) = clients.enter(place, stream, address.ip()) {
                        // The threads are there as long as `threads`.
                        let _ = thread.send((client, stream, connections.watcher()));
                    }
                }
                // Too many open files, or a connection that is gone already.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.stopped() => {}
    }
    // Those that take longer end with the program.
    let _ = timeout(LAST_ANSWERS, connections.shutdown()).await;
    Ok(())
}

/// A connection whose requests carry their client.
fn connection(
    client: Client,
    stream: TcpStream,
    site: Site,
) -> impl GracefulConnection<Error = hyper::Error> + Send {
    // Answers are written whole: waiting for more to send only delays them. A stream that refuses is gone.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    let service = service_fn(move |request| {
        let (site, client) = (site.clone(), client.clone());
        async move { Ok::<_, Infallible>(site.answer(request, client).await) }
    });
    http1::Builder::new()
        .max_buf_size(LONGEST_REQUEST)
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVING)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
}

impl Site {
    /// Answers a request and reports it to the log.
    async fn answer(self, request: Request<Incoming>, client: Client) -> Response {
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

    /// Answers a request that the guard lets pass, once there is a permit for it.
    async fn checked(
        self,
        mut request: Request<Incoming>,
        client: Client,
    ) -> Result<Response, Refusal> {
        self.guard.check(&request)?;
        let _place = client.place_for_request().await?;
        request.extensions_mut().insert(client);
        let Ok(response) = TowerToHyperService::new(self.routes).call(request).await;
        match response.status() {
            // Of the layer that packs answers, with the unpacked answer as its body.
            StatusCode::NOT_ACCEPTABLE => Err(Refusal::no_coding()),
            _ => Ok(response),
        }
    }
}
