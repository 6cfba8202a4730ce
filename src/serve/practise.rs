//! Answers `/practise`: asks the visitor for the moves of a repertoire, and records the answers.

use std::sync::{Arc, atomic::AtomicBool};

use axum::{Extension, extract, extract::State, response::Response};
use serde::Serialize;

use super::{
    Parameters, Refusal, Request, Route,
    board::{PositionRules, WrittenMove},
    body::form_as_query,
    client::{Client, READING, StopAtEnd, while_wanted},
    content::{CacheKey, ResponseBody},
    guard::check_own_page,
    make::side,
    state::AppState,
};
use crate::{
    chess::position::{BookMove, fen_of, read_move},
    explore::{
        explorer::Line,
        practice::{Askable, Practice, PracticeLine, Question, Random, grade, today},
        repertoire::OpenedSource,
        tree::played,
    },
};

/// The maximum value of the parameter `new`, the number of new positions to practise.
pub(super) const MOST_NEW: u32 = 10_000;

/// The number of new positions to practise if the request has no parameter `new`.
pub(super) const DEFAULT_NEW: u32 = 10;

/// The response to a request for practice.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PracticeAnswer {
    #[serde(flatten)]
    askable: Askable,
    /// The result of the answer in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    graded: Option<GradedAnswer>,
    /// The next position, or `None` if nothing is left to ask.
    question: Option<AskedPosition>,
    /// The next day with due positions, or `None` if no position is due after today.
    next: Option<NextDue>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NextDue {
    /// The number of days from today.
    days: i64,
    /// The number of positions that are due on this day.
    positions: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GradedAnswer {
    right: bool,
    /// The moves of the repertoire. The main move comes first.
    moves: Vec<WrittenMove>,
    /// The move with which the line continues.
    played: WrittenMove,
    /// The number of days until the position is asked again.
    days: i64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AskedPosition {
    #[serde(flatten)]
    rules: PositionRules,
    /// The position in which the line starts, or `None` for the usual one.
    start: Option<String>,
    /// The number of moves of the line that belong to the line of the request.
    kept: usize,
    is_new: bool,
    /// The number of the position, by which a request skips it.
    number: u32,
}

/// Answers `POST /practise`, whose parameters are a form: asks one question and, with the parameter `answer`, records
/// the answer to the previous question.
pub(super) async fn answer(
    State(app): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    request: extract::Request,
) -> Result<Response, Refusal> {
    check_own_page(request.headers())?;
    let request = form_as_query(request)?;
    let key = CacheKey::of(&request);
    app.search_first(&client, &key).await?;
    let stop = StopAtEnd::default();
    let (state, flag) = (Arc::clone(&app), Arc::clone(&stop.0));
    let work = move || practise(&state, &key, &flag);
    let content = app.readers.content(&client, work);
    let too_long = || Refusal::unavailable("finding the next position takes too long");
    let content = while_wanted(&client, READING, content, too_long).await??;
    Ok(content.answer_from_files(request.headers()))
}

/// Records the answer to the last position of the line, if the parameter `answer` contains one, and chooses the next
/// position. An empty answer means that the player does not know the move. Positions in the parameter `skip` are not
/// chosen. The games that pass the filters say how often opponents play their moves. Setting `stop` cancels the search
/// for positions.
fn practise(
    app: &AppState,
    key: &CacheKey,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let Request {
        query, parameters, ..
    } = app.request(key, Route::Practise)?;
    let color = side(&parameters)?;
    let new_left = parameters
        .number("new", 0..=MOST_NEW)?
        .unwrap_or(DEFAULT_NEW);
    let skipped = skipped(&parameters)?;
    let served = app.served_repertoire(&parameters, color)?;
    if !served.practise {
        let problem = "this server records no practice for its own repertoires, because several visitors would share the \
                       results: drop your repertoire on the page";
        return Err(Refusal::bad(problem));
    }
    let edited = served.edited(&parameters, stop)?;
    let variant = edited.known.variant();
    if !variant.is_played_like(query.line.variant()) {
        let problem = format!("the repertoire is for {variant}: request this variant");
        return Err(Refusal::bad(problem));
    }
    let deck = edited.deck(color, stop)?;
    let today = today();
    let mut line = PracticeLine {
        start: query.line.positions()[0].clone(),
        moves: query.line.moves().to_vec(),
    };
    let (schedule, graded) = match parameters.text("answer") {
        None => (served.results.read()?, None),
        Some(text) => {
            let pos = query.line.position();
            let mv = match text {
                "" => None,
                text => Some(
                    read_move(pos, text.as_bytes())
                        .map_err(|err| Refusal::bad(format!("{text}: {err}")))?,
                ),
            };
            let unknown = || Refusal::bad("the repertoire has no move in this position");
            let (schedule, graded) = served.results.update(&app.recording, |schedule| {
                grade(&deck, schedule, pos, mv, today).ok_or_else(unknown)
            })?;
            line.moves.push(graded.played);
            let written = |mv: &shakmaty::Move| WrittenMove::new(pos, *mv);
            let graded = GradedAnswer {
                right: graded.is_right,
                moves: graded.moves.iter().map(written).collect(),
                played: written(&graded.played),
                days: (graded.due - today).num_days(),
            };
            (schedule, Some(graded))
        }
    };
    let replies = OpenedSource::filtered(&app.explorer, variant, &query.filters);
    let practice = Practice {
        deck: &deck,
        schedule: &schedule,
        replies: Some(&replies),
        skipped: &skipped,
        today,
    };
    let question = practice.question(Some(&line), new_left.into(), &mut Random::new(0))?;
    let answer = PracticeAnswer {
        askable: practice.askable(),
        graded,
        next: practice.next_due().map(|(day, positions)| NextDue {
            days: (day - today).num_days(),
            positions,
        }),
        question: question
            .map(|question| asked(&question, &query.line))
            .transpose()?,
    };
    let games = played(
        &app.explorer,
        variant,
        query.line.position(),
        &query.filters,
    )?;
    let games = app.answered_games(&query, !games.is_empty(), stop)?;
    app.with_reasons(games, &answer, stop)
}

/// Returns the numbers of the positions in the parameter `skip`, which is a list separated by commas.
fn skipped(parameters: &Parameters) -> Result<Vec<u32>, Refusal> {
    let numbers = parameters.text("skip").unwrap_or_default().split(',');
    let numbers = numbers.filter(|number| !number.is_empty());
    let numbers: Result<_, _> = numbers.map(str::parse).collect();
    numbers.map_err(|_| {
        Refusal::bad("the parameter skip must contain numbers of positions, separated by commas")
    })
}

/// Creates the description of a question for the web page. `line` must be a line of the same variant.
fn asked(question: &Question, line: &Line) -> Result<AskedPosition, Refusal> {
    let PracticeLine { start, moves } = &question.line;
    let variant = line.variant();
    let start = (*start != variant.start()).then(|| fen_of(start));
    let words = moves.iter().map(|mv| BookMove::from(*mv).to_string());
    let play = words.collect::<Vec<_>>().join(" ");
    let line = Line::parse(variant, start.as_deref(), &play);
    let line = line.map_err(|err| Refusal::bad(err.to_string()))?;
    Ok(AskedPosition {
        rules: PositionRules::new(&line),
        start,
        kept: question.kept,
        is_new: question.is_new,
        number: question.number,
    })
}
