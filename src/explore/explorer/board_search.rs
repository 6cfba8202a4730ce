//! Finds the games in which a query about the board, such as a pattern of pieces, matches a position. An index does not
//! store the moves of games, so the games are replayed from their PGN.

use std::sync::Arc;

use rayon::prelude::*;
use shakmaty::Chess;

use super::{found_games::GameSet, open_index::OpenIndex};
use crate::{
    chess::position::{Keyed, PieceLetters, Rules, Variant, game_start},
    error::Result,
    formats::fork_index::IndexedFile,
    games::{
        board_query::{BoardQuery, Matcher},
        pgn::{GameReader, LineStop, play_main_line, tag_text},
    },
    progress::Meter,
};

/// The total size in bytes of the game texts that all threads replay in one batch. A search can be cancelled only
/// between two batches, so the batches are small: a long query needs much time for each position.
const BATCH_BYTES: usize = 256 << 10;

impl OpenIndex {
    /// Returns `true` if a previous search has already found the games that match `query`, so that no game needs to be
    /// replayed.
    #[cfg(feature = "serve")]
    pub(super) fn knows_games_with(&self, query: &BoardQuery) -> bool {
        self.games() == 0 || self.found_games.get(query).is_some()
    }

    /// Returns the games in which `query` matches a position of the main line. Replays all games of the index, unless
    /// an earlier call has found the games. Games whose positions are not indexed are left out.
    ///
    /// `should_continue` is called repeatedly, and returns `false` to cancel the search. `meter` shows how many games
    /// have been searched.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged, or if a PGN file is missing or has changed. Returns
    /// [`Error::Interrupted`](crate::Error::Interrupted) if `should_continue` returns `false`.
    pub(super) fn games_with(
        &self,
        query: &BoardQuery,
        meter: &Meter,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<GameSet> {
        if self.games() == 0 {
            return Ok(Arc::default());
        }
        if let Some(games) = self.found_games.get(query) {
            return Ok(games);
        }
        meter.add_total(self.games());
        let mut found = vec![0_u64; self.rows.len().div_ceil(64)];
        let mut add = |batch: &mut Vec<GameToReplay>| {
            let holding = batch.par_iter().map_init(
                || query.matcher(),
                |matcher, game| game.holds(matcher).then_some(game.id as usize),
            );
            for id in holding.flatten().collect::<Vec<_>>() {
                found[id / 64] |= 1 << (id % 64);
            }
            batch.clear();
        };
        let (mut batch, mut bytes, mut done) = (Vec::new(), 0, 0);
        let variant = |id: u32| self.rows.traits[id as usize].variant();
        let is_indexed = |id: u32| variant(id).is_some();
        self.index
            .for_each_text(&is_indexed, should_continue, |id, file, text| {
                bytes += text.len();
                batch.push(GameToReplay {
                    id,
                    text,
                    variant: variant(id).unwrap_or_default(),
                    letters: piece_letters(file),
                });
                if bytes >= BATCH_BYTES {
                    add(&mut batch);
                    bytes = 0;
                    meter.advance(u64::from(id) - done);
                    done = u64::from(id);
                }
                Ok(())
            })?;
        add(&mut batch);
        meter.advance(self.games() - done);
        let games = found.into();
        self.found_games.keep(query, &games);
        Ok(games)
    }
}

/// Returns the language in which the games of `file` name their pieces, as it was set when the file was indexed.
fn piece_letters(file: &IndexedFile) -> PieceLetters {
    let mut words = file.options.split_ascii_whitespace();
    words.find(|word| word.trim_start_matches('-') == "piece-letters");
    let letters = words.next().and_then(|letters| letters.parse().ok());
    letters.unwrap_or_default()
}

/// A game to replay in a search for the positions that a query matches.
struct GameToReplay {
    id: u32,
    text: Vec<u8>,
    variant: Variant,
    letters: PieceLetters,
}

impl GameToReplay {
    /// Returns `true` if the query of `matcher` matches a position of the game.
    fn holds(&self, matcher: &mut Matcher) -> bool {
        let mut game = GameReader::new(&self.text).with_untagged_variant(self.variant);
        if !game.next_game() {
            return false;
        }
        matcher.begin(self.variant);
        let fen = game.tags().fen().map(|fen| tag_text(fen).into_owned());
        // Standard chess has a position type of its own, which is the fastest.
        match (fen, self.variant) {
            (None, Variant::Standard) => self.visit(&mut game, Chess::default(), matcher),
            (Some(fen), Variant::Standard) => {
                if let Ok((start, _)) = game_start(&fen) {
                    self.visit(&mut game, start, matcher);
                }
            }
            (None, variant) => self.visit(&mut game, variant.start(), matcher),
            (Some(fen), variant) => {
                if let Ok((start, _)) = variant.game_start(&fen) {
                    self.visit(&mut game, start, matcher);
                }
            }
        }
        matcher.has_matched()
    }

    /// Plays through `game` and evaluates the query in each position, until it matches one.
    fn visit<P: Rules>(&self, game: &mut GameReader<'_>, start: P, matcher: &mut Matcher) {
        let mut pos = Keyed::new(start);
        let mut receive = |pos: &Keyed<P>, mv, _: usize| {
            !matcher.visit(pos.position(), Some(mv)) && !matcher.is_over()
        };
        let stop = play_main_line(game, self.letters, &mut pos, &mut receive);
        if !matches!(stop, LineStop::Receiver) {
            matcher.visit(pos.position(), None);
        }
    }
}
