//! Answers `POST /positions` with the results of the moves in each of many positions.

use std::{
    cell::OnceCell,
    sync::atomic::Ordering,
    time::{Duration, Instant},
    vec,
};

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};

use super::{
    Refusal, Request as ParsedRequest, Route,
    body::take_body,
    client::{StopAtEnd, while_connected},
    content::{CacheKey, ResponseBody},
    refusal::ErrorAnswer,
    state::{AppState, Asker, ServerState, ShouldContinue},
};
use crate::{
    explore::explorer::{Line, UnknownName},
    json,
};

/// The maximum number of positions in a request.
pub(super) const MAX_POSITIONS: usize = 1000;

/// The maximum size of a response in bytes.
const MAX_RESPONSE: usize = 8 << 20;

/// The time after which a request gives back its worker thread, so that other requests get their turn.
const TURN: Duration = Duration::from_millis(50);

/// A request for many positions, of which some have already been answered.
struct Batch {
    /// The request, parsed for the position that is answered next.
    request: ParsedRequest,
    /// The FENs of the positions that are not answered yet.
    fens: vec::IntoIter<String>,
    /// The answers so far as a JSON list, without its closing bracket.
    answers: Vec<u8>,
    /// A name in the filters that occurs in no game, or `None` if there is none. Empty until such a name is searched
    /// for.
    unknown_name: OnceCell<Option<UnknownName>>,
}

/// Answers a list of FENs with a list of the same length and order. Each element is the answer about the position, as
/// at `/lichess`, or an error if the FEN is invalid.
pub(super) async fn positions(
    State(app): ServerState,
    Extension(client): Asker,
    mut request: Request,
) -> Result<Response, Refusal> {
    let fens = fens_in(&take_body(&mut request)?)?;
    let key = CacheKey::of(&request);
    let mut batch = Batch {
        request: app.request(&key, Route::Positions)?,
        fens: fens.into_iter(),
        answers: Vec::new(),
        unknown_name: OnceCell::new(),
    };
    app.search_first(&client, &key).await?;
    let permit = app.batches.acquire_soon(client.visitor(), 1);
    let _permit = while_connected(&client, permit).await??;
    let stop = StopAtEnd::default();
    while !batch.fens.as_slice().is_empty() {
        let turn = app.counters.queue.acquire_soon(client.visitor(), 1);
        let turn = while_connected(&client, turn).await??;
        let (state, flag) = (app.clone(), stop.0.clone());
        let work = move || {
            batch.answer_some(&state, &|| !flag.load(Ordering::Relaxed))?;
            Ok(batch)
        };
        batch = while_connected(&client, app.counters.run(turn, &client, work)).await??;
    }
    let content = ResponseBody::json_text([b"[", &*batch.answers, b"]"].concat());
    let content = client.to_be_sent(content).await?;
    let etag = content.etag();
    Ok(content.into_response(etag))
}

/// Parses the body of a request.
///
/// # Errors
///
/// Returns an error response if the body is not a JSON list of strings, or if the list is too long.
fn fens_in(body: &[u8]) -> Result<Vec<String>, Refusal> {
    let fens: Vec<String> = serde_json::from_slice(body).map_err(|err| {
        Refusal::bad(format!(
            "the body of the request is not a JSON list of FENs: {err}"
        ))
    })?;
    match fens.len() {
        ..=MAX_POSITIONS => Ok(fens),
        count => Err(Refusal::bad(format!(
            "the request contains {count} positions: send at most {MAX_POSITIONS}"
        ))),
    }
}

impl Batch {
    /// Answers as many positions as the time for one turn allows, but at least one.
    fn answer_some(
        &mut self,
        app: &AppState,
        should_continue: ShouldContinue<'_>,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        for fen in self.fens.by_ref() {
            let variant = self.request.query.line.variant();
            let answer = match Line::parse(variant, Some(&fen), "") {
                Ok(line) => {
                    self.request.query.line = line;
                    let answer = app.answer(&self.request, &self.unknown_name, should_continue)?;
                    json::to_vec(&answer)
                }
                Err(err) => json::to_vec(&ErrorAnswer {
                    error: err.to_string(),
                }),
            };
            let answer = answer.map_err(|err| Refusal::unavailable(err.to_string()))?;
            if !self.answers.is_empty() {
                self.answers.extend(b",\n");
            }
            self.answers.extend(answer);
            if self.answers.len() > MAX_RESPONSE {
                return Err(Refusal::bad(format!(
                    "the answers have more than {} MiB: send fewer positions, or request fewer moves and games",
                    MAX_RESPONSE >> 20
                )));
            }
            if begun.elapsed() >= TURN || !should_continue() {
                break;
            }
        }
        Ok(())
    }
}
