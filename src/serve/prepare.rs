//! Answers requests for preparing for an opponent: returns what the opponent plays, and how the user can answer.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use shakmaty::variant::VariantPosition;

use super::{
    JSON, PGN, Refusal, Request,
    content::{CacheKey, ResponseBody},
    make::{MEMORY_BUDGET, min_games},
    state::{AnsweredGames, AppState},
};
use crate::{
    chess::position::Keyed,
    explore::{
        explorer::{HALF_LIVES, MIN_REPLY_GAMES, PrepareQuery, Selection, not_indexed},
        repertoire::{write_prepared, write_prepared_tree},
    },
    progress::Meter,
    storage::sort::Memory,
};

/// The maximum value of the parameter `lines`, the number of lines to prepare that a response contains.
pub(super) const MAX_LINES: u32 = 50;

/// The number of lines to prepare in a response in PGN if the request does not contain the parameter `lines`.
const DEFAULT_PGN_LINES: u32 = 7;

/// Answers `/prepare`, which helps a player to prepare for an opponent: returns the opponent's moves in a position,
/// each with the player's results after the move and the player's answer to it. If the client prefers PGN, returns only
/// the lines to prepare, as games. Setting `stop` cancels the work.
///
/// The parameter `player` names the opponent, `color` is the opponent's color, and `me` names the player.
pub(super) fn prepare(
    app: &AppState,
    key: &CacheKey,
    stop: &Arc<AtomicBool>,
) -> Result<ResponseBody, Refusal> {
    let (request, color, me) = app.preparation(key)?;
    let Request {
        query, parameters, ..
    } = request;
    let repertoire = match parameters.text("repertoire") {
        None => None,
        Some(name) => {
            let served = app.served_repertoire(&parameters, color)?;
            let variant = query.line.variant();
            if !served.known.is_for(variant) {
                let problem = format!(
                    "the repertoire {name} contains no games of {variant}: request another variant"
                );
                return Err(Refusal::bad(problem));
            }
            Some(served.edited(&parameters, stop)?)
        }
    };
    let moves = |pos: &VariantPosition| match &repertoire {
        Some(edited) => edited.known.moves_by_weight(&Keyed::new(pos.clone())),
        None => Ok(Vec::new()),
    };
    let filters = Selection {
        player: me,
        opponent: query.filters.player,
        ..query.filters
    };
    let is_pgn = key.prefers(PGN, JSON);
    let default_lines = if is_pgn { DEFAULT_PGN_LINES } else { 0 };
    let lines = parameters.number("lines", 0..=MAX_LINES)?;
    let min_games = min_games(&parameters)?;
    let half_life = parameters.choice("halfLife", HALF_LIVES, |text| text.parse().ok())?;
    let query = PrepareQuery {
        line: query.line,
        filters: filters.clone(),
        color,
        repertoire: repertoire.as_ref().map(|_| &moves as _),
        lines: lines.unwrap_or(default_lines) as usize,
        min_games: min_games.unwrap_or(MIN_REPLY_GAMES),
        half_life,
        should_continue: &|| !stop.load(Ordering::Relaxed),
    };
    let prepared = app.explorer.prepare(&query)?;
    let has_games = prepared.theirs.results.games() > 0 && prepared.yours.results.games() > 0;
    if is_pgn {
        let lines = prepared.lines.as_deref().unwrap_or_default();
        if lines.is_empty() || !has_games {
            let should_continue = || !stop.load(Ordering::Relaxed);
            let unknown = app
                .explorer
                .unknown_name_while(&filters, &should_continue)?;
            if let Some(unknown) = unknown {
                return Err(Refusal::bad(unknown.to_string()));
            }
        }
        if lines.is_empty() {
            let pos = query.line.position();
            let problem = match app.explorer.max_ply_before(&filters, pos) {
                Some(max_ply) => not_indexed(max_ply),
                None => "there are no lines to look at first".to_owned(),
            };
            return Err(Refusal::bad(problem));
        }
        let mut games = Vec::new();
        let (path, meter) = (Path::new("prepare"), Meter::stopped_by(stop));
        write_prepared(&query, lines, &mut games, path)?;
        let memory = Memory {
            bytes: MEMORY_BUDGET,
            ..Memory::default()
        };
        write_prepared_tree(
            &app.explorer,
            &query,
            lines,
            &mut games,
            path,
            &memory,
            &meter,
        )?;
        return app.cached(key, ResponseBody::pgn(games));
    }
    let others = app.explorer.other_starts_of_players(&query)?;
    let games = AnsweredGames {
        filters: &filters,
        has_games,
        other_starts: others.map(|others| others.games),
    };
    app.answered(key, games, &prepared, stop)
}
