//! Connections: accepting them, their limits, and ending them.

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use super::{
    Refusal,
    addresses::Addresses,
    client::Client,
    log::{Logging, Served},
    patient::Patient,
    stop::Stop,
};

/// The longest request, headers and all, in bytes. (The least that hyper takes.)
const LONGEST_REQUEST: usize = 8 << 10;

/// How long a request may take to arrive, and a connection may wait for the next one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many requests are answered at once. More wait.
const AT_ONCE: usize = 256;

/// How many connections there may be, if there may be as many open files; those beyond wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;

/// How many connections there may be however few open files.
#[cfg(unix)]
const LEAST_CONNECTIONS: usize = 8;

/// How long answers under way may take at the end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Accepts connections until `stop` says so, and then waits for the answers that are under way.
pub(super) async fn serve(
    listener: TcpListener,
    routes: Router,
    log: Option<Logging>,
    stop: &Stop,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let routes = limited(routes, log);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(most_connections()));
    // On this machine all clients have the same address.
    let addresses = (!listener.local_addr()?.ip().is_loopback()).then(Addresses::default);
    let accept = async {
        loop {
            let place = Arc::clone(&places).acquire_owned().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    let counted = addresses.as_ref().map(|all| all.enter(address.ip()));
                    let (Ok((client, stream)), None | Some(Some(_))) =
                        (Client::of(stream), &counted)
                    else {
                        continue;
                    };
                    let connection = connection(client, stream, routes.clone());
                    let connection = connections.watch(connection);
                    tokio::spawn(async move {
                        // Nothing can be answered on a connection that breaks.
                        let _ = connection.await;
                        drop((place, counted));
                    });
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

/// How many connections there may be: each takes two open files, and half of those that there may be are for an index,
/// some for the games and the program itself.
#[cfg(unix)]
fn most_connections() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    let files = usize::try_from(soft / 2).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 2).clamp(LEAST_CONNECTIONS, MOST_CONNECTIONS)
}

/// Elsewhere the system has no limit that matters.
#[cfg(not(unix))]
fn most_connections() -> usize {
    MOST_CONNECTIONS
}

/// A connection whose requests carry their client.
fn connection(
    client: Client,
    stream: TcpStream,
    routes: Router,
) -> impl GracefulConnection<Error = hyper::Error> + Send {
    // Answers are written whole: waiting for more to send only delays them. A stream that refuses is gone.
    let _ = stream.set_nodelay(true);
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client.clone());
        routes.call(request)
    });
    http1::Builder::new()
        .max_buf_size(LONGEST_REQUEST)
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(Patient::new(stream)), service)
}

/// Routes that answer a bounded number of requests at once and report each to a log.
fn limited(routes: Router, log: Option<Logging>) -> Router {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let limited = move |request: Request, next: Next| {
        let (places, log) = (Arc::clone(&places), log.clone());
        async move {
            let start = Instant::now();
            let described = log
                .as_ref()
                .map(|_| (request.method().to_string(), request.uri().to_string()));
            let response = within(&places, request, next).await;
            if let (Some(log), Some((method, path))) = (log, described) {
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
    };
    routes.layer(middleware::from_fn(limited))
}

/// Answers when there is a place.
async fn within(places: &Semaphore, request: Request, next: Next) -> Response {
    match timeout(PATIENCE, places.acquire()).await {
        Ok(Ok(_place)) => next.run(request).await,
        _ => Refusal::unavailable("too many requests at once: ask again").into_response(),
    }
}
