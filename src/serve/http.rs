//! Connections: accepting them, their limits, and ending them.

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use super::{
    Refusal,
    answering::Answering,
    log::{Log, Served},
    routes,
    stop::Stop,
};

/// The longest request, headers and all, in bytes. (The least that hyper takes.)
const LONGEST_REQUEST: usize = 8 << 10;

/// How long a request may take to arrive, and a connection may wait for the next one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many requests are answered at once. More wait.
const AT_ONCE: usize = 256;

/// How many connections there may be; those beyond wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;

/// How long answers under way may take at the end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Accepts connections until `stop` says so, and then waits for the answers that are under way.
pub(super) async fn serve(
    listener: TcpListener,
    answering: Arc<Answering>,
    log: Option<Log>,
    stop: &Stop,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let routes = limited(routes::routes(answering), log);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let accept = async {
        loop {
            let place = Arc::clone(&places).acquire_owned().await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connections.watch(connection(stream, routes.clone()));
                    tokio::spawn(async move {
                        // Nothing can be answered on a connection that breaks.
                        let _ = connection.await;
                        drop(place);
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
    let _ = timeout(LAST_ANSWERS, connections.shutdown()).await;
    Ok(())
}

type Connection = http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>>;

fn connection(stream: TcpStream, routes: Router) -> Connection {
    // Answers are written whole: waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    http1::Builder::new()
        .max_buf_size(LONGEST_REQUEST)
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
}

/// Routes that answer a bounded number of requests at once and tell a log of each.
fn limited(routes: Router, log: Option<Log>) -> Router {
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
                log(&Served {
                    method,
                    path,
                    status: response.status().as_u16(),
                    time: start.elapsed(),
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
