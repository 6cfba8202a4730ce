//! Replays the games of a batch. The result is an [`Outcome`], which contains the data that the outputs and the report
//! need.

use std::collections::{BTreeMap, HashMap};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Chess, Color};

use super::{
    main_line::{MainLine, Problem, VariationPly, Variations},
    needs::Needs,
    options::{MakeBook, Unfinished},
    report::{Rejection, Report, Totals, VariantRejection},
    sink::{BatchSink, CountedGame},
};
use crate::{
    chess::position::{
        Keyed, LineError, Rules, Variant, VariantChoice, exact_epd_of, game_start,
        has_inner_castling_rook, looks_like_move,
    },
    error::Result,
    formats::{
        counts::{CountRecord, KeyedIdentity},
        explorer_index::SiteId,
    },
    games::{
        board_query::Matcher,
        openings::OpeningNumber,
        pgn::{
            Batch, Date, DuplicateKeys, GameIdentity, GameReader, GameResult, Input, SkippedParts,
            SpellingTest, Tags, Token, UnknownVariants, name_hash, tag_text,
        },
        results::Wdl,
        selection::Condition,
    },
    provenance::GameCounts,
};

/// The approximate size of a batch of games, in bytes of PGN.
pub(super) const BATCH_SIZE: usize = 1 << 19;

/// Replays the games of one batch, and collects the data that the outputs and the report need.
pub(super) struct Replayer<'a> {
    options: &'a MakeBook,
    needs: &'a Needs,
    /// The main line of the current game.
    line: MainLine,
    /// The EPD of the starting position of the current game, if an output needs it. `None` for a game of standard chess
    /// without a `FEN` tag.
    start: Option<String>,
    /// The index in [`Outcome::starts`] of each starting position, keyed by its identity (a hash).
    started: HashMap<u64, usize>,
    /// The starting position of standard chess, with its key.
    usual_start: Keyed<Chess>,
    /// The file from which the batch comes.
    input: &'a Input,
    /// The offset of the batch in the input after decompression.
    batch_offset: u64,
    spelling_test: SpellingTest,
    outcome: Outcome<'a>,
}

/// Replays the games in `batch`, which is a part of the PGN file `input`. Passes each counted game to `collector`.
/// Returns the numbers of counted, filtered and rejected games, and the first rejected game if there is one.
///
/// # Errors
///
/// Returns an error if `collector` cannot add its data to the output.
pub(crate) fn replay_games(
    options: &MakeBook,
    input: &Input,
    batch: &Batch,
    collector: Box<dyn BatchSink + '_>,
) -> Result<(GameCounts, Option<Rejection>)> {
    let needs = Needs {
        game_starts: true,
        ..Needs::default()
    };
    let replayer = Replayer::new(options, &needs, input, batch.offset);
    let outcome = replayer.replay(&batch.text, |_| vec![collector]);
    outcome
        .collectors
        .into_iter()
        .try_for_each(|collector| collector.add())?;
    Ok((outcome.totals.games, outcome.rejected.into_iter().next()))
}

impl<'a> Replayer<'a> {
    pub(super) fn new(
        options: &'a MakeBook,
        needs: &'a Needs,
        input: &'a Input,
        batch_offset: u64,
    ) -> Replayer<'a> {
        Replayer {
            options,
            needs,
            line: MainLine::new(&options.selection),
            start: None,
            started: HashMap::new(),
            usual_start: Keyed::new(Chess::default()),
            input,
            batch_offset,
            spelling_test: SpellingTest::new(
                &options.selection.names(),
                options.selection.name_match(),
            ),
            outcome: Outcome::default(),
        }
    }

    /// Replays the games in `text`, the PGN of a batch, and returns the collected data. Calls `new_collectors` once,
    /// with the approximate number of half-moves in the batch, to create the collectors that the outputs need for this
    /// batch.
    pub(super) fn replay(
        mut self,
        text: &[u8],
        new_collectors: impl FnOnce(usize) -> Vec<Box<dyn BatchSink + 'a>>,
    ) -> Outcome<'a> {
        let mut games = self
            .input
            .reader(text)
            .with_variations(self.options.variations);
        // A half-move takes about eight bytes of text, including its share of the tags. Reserve a little more than
        // that. A batch that is much larger than usual contains one odd game, so it must not reserve more than two
        // usual batches.
        let plies = text.len().min(2 * BATCH_SIZE) / 7;
        if self.needs.keys {
            self.outcome.records.reserve(plies);
        }
        if self.needs.identities {
            self.outcome.identity_records.reserve(plies);
        }
        self.outcome.collectors = new_collectors(plies);
        while games.next_game() {
            self.game(&mut games);
            self.outcome.totals.games.read += 1;
        }
        for collector in &mut self.outcome.collectors {
            collector.end_batch(text, self.batch_offset);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        self.outcome.has_text = !text.trim_ascii().is_empty();
        self.outcome.skipped.add_reader(&games, self.batch_offset);
        self.outcome
    }

    /// Replays the current game of `games`. Its tags have already been read.
    fn game(&mut self, games: &mut GameReader<'_>) {
        let tags = games.tags();
        let tag_result = tags.result();
        self.outcome.recognised |= !tags.is_empty();
        self.line.clear();
        self.start = None;
        for collector in &mut self.outcome.collectors {
            collector.next_game(games, self.batch_offset);
        }
        let admitted = self.admitted(games.tags(), tag_result);
        self.note_names(games.tags(), admitted.err());
        if self.may_be_tallied(games.tags(), admitted) {
            self.play_admitted(games, admitted, tag_result);
            return;
        }
        // The totals of this game are also kept apart from those of the games in the tallies.
        let number = self.outcome.totals.games.read;
        let others = std::mem::take(&mut self.outcome.totals);
        self.outcome.totals.games.read = number;
        let (candidates, rejected) = (self.outcome.candidates.len(), self.outcome.rejected.len());
        self.play_admitted(games, admitted, tag_result);
        let mut own = std::mem::replace(&mut self.outcome.totals, others);
        own.games.read = 0;
        self.outcome.totals += &own.into_untallied();
        if let Some(candidate) = self.outcome.candidates.get_mut(candidates) {
            candidate.totals = std::mem::take(&mut candidate.totals).into_untallied();
        }
        if self.outcome.rejected.len() > rejected {
            self.outcome.untallied_rejected.push(number);
        }
    }

    /// Plays or skips the current game. `admitted` is the variant of the game or, as an error, the condition that its
    /// tags do not meet. `tag_result` is the result in the tags.
    fn play_admitted(
        &mut self,
        games: &mut GameReader<'_>,
        admitted: Result<Variant, Condition>,
        tag_result: Option<GameResult>,
    ) {
        match admitted {
            Ok(variant) => self.play_from_start(games, variant, tag_result),
            Err(condition) => {
                self.skip(games);
                self.filter(condition);
            }
        }
    }

    /// Skips the moves of a game that a filter rejected because of its tags. If nothing in the batch has been
    /// recognized as PGN yet, also checks whether the game begins with a move, which would show that the input is PGN.
    fn skip(&mut self, games: &mut GameReader<'_>) {
        if !self.outcome.recognised {
            match games.next_token() {
                Token::Move { text, .. } => self.outcome.recognised = looks_like_move(text),
                Token::End(_) => return,
                _ => {}
            }
        }
        games.skip_moves();
    }

    /// Checks whether the filters accept a game by its tags. If they do, returns the variant of the game. Otherwise,
    /// returns the first condition that the tags do not meet as an error. `tag_result` is the result in the tags, or
    /// `None` if it cannot be read.
    fn admitted(
        &mut self,
        tags: &Tags<'_>,
        tag_result: Option<GameResult>,
    ) -> Result<Variant, Condition> {
        let variant = self.variant(tags).ok_or(Condition::Variant)?;
        match self.options.selection.unmet(tags) {
            Some(condition) => Err(condition),
            None if tag_result.is_some_and(|result| !self.admits_result(tags, result)) => {
                Err(Condition::Result)
            }
            None => Ok(variant),
        }
    }

    /// Collects names of players and of events for messages about the filters by name, if the run has such filters.
    /// `unmet` is the condition that the tags of the game do not meet.
    ///
    /// If the tags meet all conditions, collects the names of players that match the filter. If they do not meet the
    /// condition on players or on the event, collects the names that do not match, because a message may suggest a
    /// similar name. Such names are no longer collected once a name has matched the filter. If the tags do not meet some
    /// condition, also collects the names that match, because a message must not suggest other names for them.
    fn note_names(&mut self, tags: &Tags<'_>, unmet: Option<Condition>) {
        let filter = &self.options.selection;
        if filter.event.is_some()
            && let Some(event) = tags.get(b"Event")
        {
            let outcome = &mut self.outcome;
            outcome.has_event = outcome.has_event || filter.admits_event(tags);
            if unmet == Some(Condition::Event)
                && !outcome.has_event
                && !outcome.other_events.contains(event)
            {
                outcome.other_events.insert(event.into());
            }
        }
        let outcome = &mut self.outcome;
        if !filter.has_names() {
            return;
        }
        for (color, tag) in [b"White", b"Black"].into_iter().enumerate() {
            if let Some(name) = tags.get(tag)
                && self.spelling_test.may_count(name)
            {
                match outcome.games_of_names.get_mut(name) {
                    Some(games) => games[color] += 1,
                    None => outcome.games_of_names.entry(name.into()).or_default()[color] += 1,
                }
            }
        }
        if unmet.is_some() && !outcome.matched_names.is_empty() {
            return;
        }
        for (value, is_match) in filter.player_tags(tags) {
            match unmet {
                None if is_match => match outcome.matched_names.get_mut(value) {
                    Some(games) => *games += 1,
                    None => _ = outcome.matched_names.insert(value.into(), 1),
                },
                Some(_) if is_match => _ = outcome.known_names.insert(value.into()),
                Some(Condition::Player) if !outcome.other_names.contains(value) => {
                    outcome.other_names.insert(value.into());
                }
                _ => (),
            }
        }
    }

    /// Counts the current game as filtered out because it does not meet `condition`.
    fn filter(&mut self, condition: Condition) {
        self.outcome.totals.games.filtered += 1;
        *self
            .outcome
            .totals
            .filtered_by
            .entry(condition)
            .or_default() += 1;
    }

    /// Plays the current game and counts its moves. The game starts in the position of its `FEN` tag or, without this
    /// tag, in the usual starting position of `variant`. `tag_result` is the result in the tags, or `None` if it cannot
    /// be read.
    fn play_from_start(
        &mut self,
        games: &mut GameReader<'_>,
        variant: Variant,
        tag_result: Option<GameResult>,
    ) {
        let fen = games.tags().fen().map(|fen| tag_text(fen).into_owned());
        // Standard chess has a position type of its own, which is the fastest.
        match (fen, variant) {
            (None, Variant::Standard) => {
                let start = self.usual_start.clone();
                self.play(games, variant, start, tag_result);
            }
            (Some(fen), Variant::Standard) => {
                self.play_from(games, variant, game_start(&fen), tag_result);
            }
            (None, _) => {
                let start = Ok((variant.start(), false));
                self.play_from(games, variant, start, tag_result);
            }
            (Some(fen), _) => {
                self.play_from(games, variant, variant.game_start(&fen), tag_result);
            }
        }
    }

    /// Plays the current game from its starting position `start`, and counts its moves. The flag in `start` is `true`
    /// if the FEN had invalid castling rights, which were removed. If `start` is an error, the game is rejected.
    /// `tag_result` is the result in the tags.
    fn play_from<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        variant: Variant,
        start: Result<(P, bool), LineError>,
        tag_result: Option<GameResult>,
    ) {
        match start {
            Ok((start, castling_dropped)) => {
                self.outcome.totals.castling_dropped += u64::from(castling_dropped);
                let start = Keyed::new(start);
                self.record_start(&start, variant);
                self.play(games, variant, start, tag_result);
            }
            Err(err) => self.reject_start(games, &err),
        }
    }

    /// Returns the variant of a game. If the run does not count games of this variant, returns `None` and records the
    /// reason for the report.
    fn variant(&mut self, tags: &Tags<'_>) -> Option<Variant> {
        // If the run counts only standard chess, Chess960 games without the `Variant` tag are not recognized as
        // Chess960 here. They are rejected later, with a message that names the variant to ask for.
        let variant = if self.options.variant.is_standard() {
            tags.named_variant()
        } else {
            tags.variant()
        };
        let filtered = match variant {
            Ok(variant) if self.admits_variant(variant) => return Some(variant),
            Ok(variant) if self.options.variant == VariantChoice::Auto => {
                VariantRejection::Unnumbered(variant)
            }
            Ok(variant) => VariantRejection::Other(variant),
            Err(_) => VariantRejection::Unknown(UnknownVariants::name(tags).unwrap_or_default()),
        };
        *self.outcome.filtered_variants.entry(filtered).or_default() += 1;
        None
    }

    /// Returns `true` if the run counts games of this variant.
    fn admits_variant(&self, variant: Variant) -> bool {
        match self.options.variant {
            VariantChoice::Only(wanted) => wanted.is_played_like(variant),
            VariantChoice::Auto => self.needs.all_variants || self.is_tallied(variant),
        }
    }

    /// Returns `true` if the tallies, from which books and counts are made, contain games of this variant. If a run
    /// counts several variants, they do not contain games of a variant without a number in the Polyglot format.
    fn is_tallied(&self, variant: Variant) -> bool {
        match self.options.variant {
            VariantChoice::Only(_) => true,
            VariantChoice::Auto => !self.needs.numbered_variants || variant.number().is_some(),
        }
    }

    /// Returns `false` if the tallies cannot contain the current game because of its variant, so that the game is read
    /// only for other outputs. `admitted` is the variant of the game or, as an error, the condition that its tags do
    /// not meet.
    fn may_be_tallied(&self, tags: &Tags<'_>, admitted: Result<Variant, Condition>) -> bool {
        match admitted {
            _ if self.options.variant.is_standard() => true,
            Ok(variant) => self.is_tallied(variant),
            Err(Condition::Variant) => true,
            Err(_) => tags.variant().map_or(true, |it| self.is_tallied(it)),
        }
    }

    /// Records the starting position of a game, if an output needs it. Must not be called for a game of standard chess
    /// without a `FEN` tag, because the starting position of such a game is not recorded.
    fn record_start<P: Rules>(&mut self, start: &Keyed<P>, variant: Variant) {
        let epd = || exact_epd_of(start.position());
        if self.needs.game_starts {
            self.start = Some(epd());
        }
        if !self.needs.starts || !self.is_tallied(variant) {
            return;
        }
        let starts = &mut self.outcome.starts;
        let index = *self
            .started
            .entry(start.exact_identity())
            .or_insert_with(|| {
                starts.push((epd().into_bytes(), 0));
                starts.len() - 1
            });
        starts[index].1 += 1;
    }

    /// Rejects the current game because its starting position cannot be read.
    fn reject_start(&mut self, games: &mut GameReader<'_>, err: &LineError) {
        let problem = Problem {
            offset: games.game_offset(),
            ply: 0,
            mv: String::new(),
            reason: err.to_string(),
        };
        games.skip_moves();
        self.reject(problem);
        if self.options.selection.board_query().is_none() {
            self.pass_rejected(games);
        }
    }

    /// Passes the current game, which was rejected, to the collectors.
    fn pass_rejected(&mut self, games: &GameReader<'_>) {
        let number = self.outcome.totals.games.read as u32;
        for collector in &mut self.outcome.collectors {
            collector.reject(number, games.offset());
        }
    }

    /// Plays the current game from the starting position `pos`, and counts it if all filters accept it. `tag_result` is
    /// the result in the tags.
    fn play<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        variant: Variant,
        mut pos: Keyed<P>,
        tag_result: Option<GameResult>,
    ) {
        let first_turn = pos.position().turn();
        let start = pos.identity();
        if let Some(matcher) = &mut self.line.matcher {
            matcher.begin(variant);
        }
        let ending = self.line.play(self.options, self.needs, &mut pos, games);
        self.outcome.recognised |= !self.line.plies.is_empty();
        let result = tag_result.or(ending.marker).unwrap_or_default();
        let opening = if self.needs.openings {
            self.line.opening(variant, pos.identity())
        } else {
            OpeningNumber::default()
        };
        let unmet = if self.admits_result(games.tags(), result) {
            let matcher = self.line.matcher.as_ref();
            let selection = &self.options.selection;
            selection.unmet_by_moves(ending.plies, opening, matcher)
        } else {
            Some(Condition::Result)
        };
        let is_whole = ending.problem.is_none();
        match (ending.problem, unmet) {
            (Some(problem), _) => {
                self.reject(problem);
                if unmet.is_some() {
                    return;
                }
                if !self.options.keep_prefix {
                    self.pass_rejected(games);
                    return;
                }
            }
            (None, Some(condition)) => {
                self.filter(condition);
                return;
            }
            (None, None) => {}
        }
        // A batch has fewer than 2^32 bytes, so the number of a game in it fits.
        let number = self.outcome.totals.games.read as u32;
        let hash = if self.needs.game_hashes {
            self.line.hash(start)
        } else {
            0
        };
        let candidate = self.begin_candidate(games.tags(), result, variant, hash, number);
        let is_tallied = self.is_tallied(variant);
        let totals = &mut self.outcome.totals;
        let contradicts = |marker| tag_result.is_some_and(|tag| tag != marker);
        totals.contradicted_results += u64::from(ending.marker.is_some_and(contradicts));
        totals.games.counted += u64::from(is_whole);
        totals.unfinished += u64::from(is_whole && result == GameResult::Unknown);
        totals.unreadable_results += u64::from(games.has_unreadable_result());
        let filter = &self.options.selection;
        totals.undated += u64::from(filter.passes_undated(games.tags()));
        totals.unrated += u64::from(filter.passes_unrated(games.tags()));
        if self.options.distinguishes_variants() {
            *totals.variants.entry(variant).or_default() += 1;
        }
        totals.null_moves += u64::from(ending.null_move);
        if is_tallied {
            self.outcome
                .count(self.needs, &self.line, result, first_turn);
            self.outcome
                .count_variations(self.needs, &self.line.variations);
        } else {
            totals.not_tallied += u64::from(is_whole);
        }
        let game = CountedGame {
            number,
            end: games.offset(),
            matches: self.line.matcher.as_ref().map_or(&[], Matcher::matches),
            variant,
            is_tallied,
            result,
            first_turn,
            start: self.start.as_deref(),
            length: ending.plies,
            hash,
            plies: &self.line.plies,
            identities: &self.line.identities,
            exact_identities: &self.line.exact_identities,
            opening,
            branches: &self.line.variations.branches,
            last_key: pos.key(),
            last_identity: pos.identity(),
            last_exact_identity: pos.exact_identity(),
            last_in_book: !has_inner_castling_rook(pos.position()),
        };
        for collector in &mut self.outcome.collectors {
            collector.count(&game);
        }
        if let Some(candidate) = candidate {
            self.end_candidate(candidate);
        }
    }

    /// Creates an entry for the current game in the list of possible duplicates, before the game is counted. Returns
    /// `None` if the run does not drop duplicates. `hash` is the hash of the game's moves, and `number` is the number
    /// of the game in the batch.
    ///
    /// While the game is counted, the entry keeps the totals of the other games of the batch, and the totals of the
    /// batch begin at zero, so that they count only this game. [`end_candidate`](Replayer::end_candidate) exchanges
    /// both totals after the game, and adds the entry to the list.
    fn begin_candidate(
        &mut self,
        tags: &Tags<'_>,
        result: GameResult,
        variant: Variant,
        hash: u64,
        number: u32,
    ) -> Option<PossibleDuplicate> {
        self.options.selection.counts_once().then(|| {
            let name = |tag: &[u8]| tags.get(tag).map(tag_text).unwrap_or_default();
            let player = |tag| self.options.selection.player_hash(&name(tag));
            let (dated_by, date) = Date::with_tag(tags).unwrap_or_default();
            let site = tags.get(b"Site").and_then(SiteId::of_tag);
            let identity = GameIdentity {
                players: [player(b"White"), player(b"Black")],
                event: name_hash(&name(b"Event")),
                result,
                variant,
                date,
                has_event_date: dated_by == b"EventDate",
                site: site.map_or(0, SiteId::number),
                moves: hash,
            };
            PossibleDuplicate {
                keys: identity.keys(),
                number,
                totals: std::mem::take(&mut self.outcome.totals),
                records: self.outcome.records.len(),
                identity_records: self.outcome.identity_records.len(),
            }
        })
    }

    /// Adds `candidate`, the entry that [`begin_candidate`](Replayer::begin_candidate) created, to the list of possible
    /// duplicates, after the game has been counted. Exchanges the totals of the entry and of the batch, so that the
    /// entry contains the totals of this game, and the batch those of its other games. Also stores in the entry how
    /// many records the game has added, so that they can be removed if it is a duplicate.
    fn end_candidate(&mut self, mut candidate: PossibleDuplicate) {
        let Outcome {
            totals,
            records,
            identity_records,
            candidates,
            ..
        } = &mut self.outcome;
        std::mem::swap(totals, &mut candidate.totals);
        candidate.records = records.len() - candidate.records;
        candidate.identity_records = identity_records.len() - candidate.identity_records;
        candidates.push(candidate);
    }

    /// Returns `true` if the run counts games with these tags and this result.
    fn admits_result(&self, tags: &Tags<'_>, result: GameResult) -> bool {
        let unfinished =
            result == GameResult::Unknown && self.options.unfinished == Unfinished::Skip;
        !unfinished && self.options.selection.admits_result(tags, result)
    }

    /// Counts the current game as rejected because of `problem`. Also stores a description of the problem for the
    /// report of the run, unless the list of rejected games of this batch is full.
    fn reject(&mut self, problem: Problem) {
        let game = self.outcome.totals.games.read;
        self.outcome.totals.games.rejected += 1;
        if self.outcome.rejected.len() < Report::MAX_DESCRIBED_GAMES {
            self.outcome.rejected.push(Rejection {
                file: self.input.path().to_owned(),
                game,
                offset: self.batch_offset + problem.offset as u64,
                ply: problem.ply,
                mv: problem.mv,
                reason: problem.reason,
            });
        }
    }
}

/// The data collected from a batch of games or from a counts directory: totals, records of the results of moves, and
/// rejected games.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    pub totals: Totals,
    /// A record for each counted half-move, under the key of its position. Empty unless the run counts by key.
    pub records: Vec<CountRecord>,
    /// A record for each counted half-move, under the [exact identity](crate::chess::position::Keyed::exact_identity)
    /// of its position. Empty unless the run counts by identity.
    pub identity_records: Vec<CountRecord>,
    /// The key and the identity of each position, if the run collects such pairs. An invalid book key is stored as 0.
    pub pairs: Vec<KeyedIdentity>,
    /// The starting positions of games, as EPDs with their numbers of games, if the run collects them. Games of
    /// standard chess without a `FEN` tag are not included.
    pub starts: Vec<(Vec<u8>, u64)>,
    /// The number of games that were filtered because of their variant.
    pub filtered_variants: BTreeMap<VariantRejection, u64>,
    /// The first rejected games, numbered from the first game of the batch.
    pub rejected: Vec<Rejection>,
    /// The numbers of those rejected games that tallies cannot contain because of their variant.
    pub untallied_rejected: Vec<u64>,
    /// Whether any text of the batch looked like PGN.
    pub recognised: bool,
    /// Whether the batch contained anything but blanks.
    pub has_text: bool,
    /// The parts of the input that were not read.
    pub skipped: SkippedParts,
    /// The names of players that match the filter by name, with their numbers of games.
    pub matched_names: FxHashMap<Box<[u8]>, u64>,
    /// Names of players that match the filter by name, in games that do not meet another condition.
    pub known_names: FxHashSet<Box<[u8]>>,
    /// Names of players that do not match the filter by name.
    pub other_names: FxHashSet<Box<[u8]>>,
    /// The numbers of games as White and as Black of the names of players that [`SpellingTest`] lets pass.
    pub games_of_names: FxHashMap<Box<[u8]>, [u64; 2]>,
    /// Whether a game meets the condition on the event.
    pub has_event: bool,
    /// Names of events that do not match the filter by event.
    pub other_events: FxHashSet<Box<[u8]>>,
    /// The data that the outputs have collected from the batch, for those outputs that use individual games.
    pub collectors: Vec<Box<dyn BatchSink + 'a>>,
    /// All counted games of the batch, in their order, if duplicates are dropped. The totals of these games are stored
    /// only here, and all records of the outcome belong to them.
    pub candidates: Vec<PossibleDuplicate>,
}

/// A counted game that must be removed from the counts if it turns out to be a duplicate of an earlier game.
pub(super) struct PossibleDuplicate {
    /// The keys by which the game is compared, or `None` if the game cannot be a duplicate.
    pub keys: Option<DuplicateKeys>,
    /// The number of the game in the batch.
    pub number: u32,
    /// The amounts that the game adds to the totals.
    pub totals: Totals,
    /// The number of records by position key that the game added to the outcome of its batch.
    pub records: usize,
    /// The number of records by identity that the game added to the outcome of its batch.
    pub identity_records: usize,
}

impl Outcome<'_> {
    /// Creates an empty outcome for a counts directory, which says that the format of the input was recognized.
    /// Otherwise, the run would reject the directory as an input that does not look like PGN.
    pub(super) fn of_counts() -> Self {
        Outcome {
            recognised: true,
            has_text: true,
            ..Outcome::default()
        }
    }

    /// Counts the half-moves of a game's main line: adds their number to the totals of the batch, and adds a record of
    /// the game's result for each half-move. `needs` determines which kinds of records are added. `line` is the main
    /// line, `result` is the result of the game, and `first_turn` is the side that moved first.
    pub(super) fn count(
        &mut self,
        needs: &Needs,
        line: &MainLine,
        result: GameResult,
        first_turn: Color,
    ) {
        self.totals.plies += line.plies.len() as u64;
        if needs.counts_unbookable() {
            self.totals.ambiguous_castling += line.not_for_books;
        }
        let stats =
            [first_turn, !first_turn].map(|turn| (turn, Wdl::of_game(result.winner(), turn)));
        let plies = line.plies.iter().enumerate();
        if needs.keys {
            let records = plies.clone().map(|(at, ply)| {
                let (turn, stats) = stats[at % 2];
                CountRecord::new(ply.key, ply.mv, turn, stats)
            });
            if line.not_for_books == 0 {
                self.records.extend(records);
            } else {
                let for_books = records.zip(&line.plies).filter(|(_, ply)| ply.in_book);
                self.records.extend(for_books.map(|(record, _)| record));
            }
        }
        if needs.shared_keys {
            let identified = line.plies.iter().zip(&line.exact_identities);
            let pairs = identified.map(|(ply, identity)| {
                let key = if ply.in_book { ply.key } else { 0 };
                KeyedIdentity::new(key, *identity)
            });
            self.pairs.extend(pairs);
        }
        if needs.identities {
            let records = plies
                .zip(&line.exact_identities)
                .map(|((at, ply), identity)| {
                    let (turn, stats) = stats[at % 2];
                    CountRecord::new(*identity, ply.mv, turn, stats)
                });
            self.identity_records.extend(records);
        }
    }

    /// Counts the half-moves in `variations`, the variations of a game: adds their number to the totals of the batch,
    /// and adds a record for each half-move, with a draw as its result. `needs` determines which kinds of records are
    /// added.
    pub(super) fn count_variations(&mut self, needs: &Needs, variations: &Variations) {
        let totals = &mut self.totals;
        totals.plies += variations.branches.len() as u64;
        totals.null_moves += variations.null_moves;
        totals.unplayable_variations += variations.unplayable;
        for branch in &variations.branches {
            let VariationPly {
                key,
                identity,
                mv,
                turn,
                in_book,
            } = *branch;
            if needs.counts_unbookable() {
                totals.ambiguous_castling += u64::from(!in_book);
            }
            // Count the half-move as a draw, because a variation has no result.
            let stats = Wdl::of_game(None, turn);
            if needs.keys && in_book {
                self.records.push(CountRecord::new(key, mv, turn, stats));
            }
            if needs.identities {
                let record = CountRecord::new(identity, mv, turn, stats);
                self.identity_records.push(record);
            }
            if needs.shared_keys {
                let key = if in_book { key } else { 0 };
                self.pairs.push(KeyedIdentity::new(key, identity));
            }
        }
    }
}
