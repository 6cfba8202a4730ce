//! Practising a repertoire: which position a player is asked next, and when the position is asked again.
//!
//! A [`Deck`] contains the positions of a repertoire. Each position in which the player is to move is a *card*: the
//! player must find a move of the repertoire. A [`Schedule`] contains, for each move that was asked, how well the
//! player remembers it and the day on which it is due. [`Practice::question`] plays moves of both sides up to the next
//! card, and [`grade`] records the answer.
//!
//! The days follow the scheduler FSRS-5 (Free Spaced Repetition Scheduler) of the crate `rs-fsrs`, with its published
//! default parameters: a position is due when the probability that the player still knows the move has fallen to 90 %.
//! A position that was answered wrongly is due until it has been answered correctly, and returns sooner afterwards.
//!
//! ```
//! use polybook::{
//!     counts::Memory, position::Variant, practice::{Deck, Practice, Random, Schedule, grade, today}, progress::Meter,
//!     repertoire::{OpenOptions, OpenedSource},
//! };
//! use shakmaty::Color;
//!
//! # let directory = tempfile::tempdir()?;
//! let pgn = directory.path().join("white.pgn");
//! std::fs::write(&pgn, "1. e4 c5 2. Nf3 *")?;
//! let options = OpenOptions::new(directory.path(), Memory::default());
//! let repertoire = OpenedSource::repertoire(&pgn, &options)?;
//! let deck = Deck::new(&repertoire, Variant::Standard, Color::White, &Memory::default(), &Meter::default())?;
//! let mut schedule = Schedule::default();
//! let practice = Practice { deck: &deck, schedule: &schedule, replies: None, skipped: &[], today: today() };
//! let first = practice.question(None, 10, &mut Random::new(0))?.expect("both positions are new");
//! let graded = grade(&deck, &mut schedule, &first.position, None, today()).expect("the deck contains the position");
//! assert!(!graded.is_right && graded.due == today());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cards;
mod deck;
mod schedule;

use chrono::NaiveDate;
use shakmaty::{Move, Position, variant::VariantPosition};

use self::deck::{DeckMove, FAR, Path};
pub use self::{
    cards::{board_text, write_cards},
    deck::Deck,
    schedule::{Recall, Schedule, today},
};
pub use crate::explore::explorer::Random;
use crate::{chess::position::line_text, error::Result, explore::tree::MoveSource};

/// A line of moves from a start position of a deck.
#[derive(Clone, PartialEq, Debug)]
pub struct PracticeLine {
    /// The position in which the line begins.
    pub start: VariantPosition,
    /// The moves of both sides, which begin in the start position.
    pub moves: Vec<Move>,
}

impl PracticeLine {
    /// Returns the moves in SAN with move numbers.
    pub fn text(&self) -> String {
        line_text(&self.start, &self.moves).0
    }
}

/// A deck with the results of earlier practice, from which the next question is chosen.
pub struct Practice<'a> {
    /// The positions of the player's repertoire.
    pub deck: &'a Deck,
    /// The results of earlier practice.
    pub schedule: &'a Schedule,
    /// A source from which the frequencies of the opponents' replies are taken, or `None` to use the numbers in the
    /// repertoire.
    pub replies: Option<&'a dyn MoveSource>,
    /// The [numbers](Question::number) of the positions that are not asked now.
    pub skipped: &'a [u32],
    /// The current day.
    pub today: NaiveDate,
}

/// A position in which the player must find a move of the repertoire.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The line of moves that leads to the position.
    pub line: PracticeLine,
    /// The number of moves of the previous line that `line` begins with. It is 0 if `line` is a new line.
    pub kept: usize,
    /// The position in which a move must be found.
    pub position: VariantPosition,
    /// The number of the position in the deck. Decks of equal repertoires have equal numbers.
    pub number: u32,
    /// Whether the position was never asked before.
    pub is_new: bool,
}

/// The numbers of positions that can be asked today.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Askable {
    /// The number of positions that are due because of an answer on an earlier day, or on a later day if the clock was
    /// wrong then.
    pub due: u64,
    /// The number of positions that are due because the last answer, which was given today, was wrong.
    pub again: u64,
    /// The number of positions that were never asked.
    pub new: u64,
}

/// The reason why the player is asked about a position. The variants are in order of priority: due positions are asked
/// first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reason {
    Due,
    New,
    Again,
}

impl Practice<'_> {
    /// Counts the positions that the player can be asked about today.
    pub fn askable(&self) -> Askable {
        let mut askable = Askable::default();
        for reason in self.reasons(u64::MAX).into_iter().flatten() {
            match reason {
                Reason::Due => askable.due += 1,
                Reason::New => askable.new += 1,
                Reason::Again => askable.again += 1,
            }
        }
        askable
    }

    /// Returns the next position to ask, or `None` if no position can be asked today. Positions that are due come
    /// first, then positions that were never asked, and then those that were answered wrongly today.
    ///
    /// The question continues `line`, the line up to the last answer, if such positions can be reached from its end.
    /// Otherwise, a new line begins. The moves of the opponent are chosen at random by their frequency, from the moves
    /// that lead to positions to be asked. Positions of the player that are not asked are passed with a move of the
    /// repertoire.
    ///
    /// `new_left` is the number of positions that may be asked for the first time.
    ///
    /// # Errors
    ///
    /// Returns an error if the source of replies cannot be read.
    #[expect(
        clippy::missing_panics_doc,
        reason = "a position that leads to a target has a move that does"
    )]
    pub fn question(
        &self,
        line: Option<&PracticeLine>,
        new_left: u64,
        random: &mut Random,
    ) -> Result<Option<Question>> {
        let reasons = self.reasons(new_left);
        let Some(first) = reasons.iter().flatten().min() else {
            return Ok(None);
        };
        let targets = (0..)
            .zip(&reasons)
            .filter(|(_, reason)| reason.as_ref() == Some(first));
        let distances = self.deck.distances(targets.map(|(id, _)| id));
        let leads = |id: u32| distances[id as usize] != FAR;
        let continued = line.and_then(|line| self.deck.path_of(line));
        let continued = continued.filter(|path| leads(path.end()));
        let kept = continued.as_ref().map_or(0, |path| path.line.moves.len());
        let begun = || {
            let starts = self
                .deck
                .starts()
                .filter(|(_, id)| leads(*id))
                .collect::<Vec<_>>();
            let at = pick(starts.len(), |_| 1.0, random);
            let (start, id) = starts[at];
            Path::new(start.clone(), id)
        };
        let mut path = continued.unwrap_or_else(begun);
        while reasons[path.end() as usize].is_none() {
            let moves = self.deck.moves(path.end());
            let leading: Vec<&DeckMove> = moves.iter().filter(|mv| leads(mv.to)).collect();
            // A line that returns to its own positions would repeat itself.
            let fresh = leading.iter().filter(|mv| !path.visits(mv.to));
            let fresh: Vec<&DeckMove> = fresh.copied().collect();
            let chosen = if fresh.is_empty() {
                let nearest = leading
                    .into_iter()
                    .min_by_key(|mv| distances[mv.to as usize]);
                nearest.expect("a move leads to a position that is asked")
            } else {
                let weights = self.weights(&path, &fresh)?;
                fresh[pick(fresh.len(), |at| weights[at], random)]
            };
            path.play(chosen);
        }
        let is_new = reasons[path.end() as usize] == Some(Reason::New);
        Ok(Some(Question {
            position: path.position().clone(),
            number: path.end(),
            line: path.line,
            kept,
            is_new,
        }))
    }

    /// Returns the next day on which positions are due, and the number of these positions. Returns `None` if no
    /// position is due after today.
    pub fn next_due(&self) -> Option<(NaiveDate, u64)> {
        let later = self.deck.ids().filter_map(|id| {
            let (position, moves) = self.deck.card(id)?;
            let recall = self.schedule.recall(position, moves, self.today)?;
            (!recall.is_due(self.today)).then_some(recall.due)
        });
        later.fold(None, |next, due| match next {
            Some((day, number)) if day == due => Some((day, number + 1)),
            Some((day, _)) if day < due => next,
            _ => Some((due, 1)),
        })
    }

    /// Returns, for each position of the deck, the reason why the player can be asked about it today, or `None` if
    /// there is no reason. If `new_left` is 0, positions that were never asked are left out.
    fn reasons(&self, new_left: u64) -> Vec<Option<Reason>> {
        let reason = |id: u32| {
            if self.skipped.contains(&id) {
                return None;
            }
            let (position, moves) = self.deck.card(id)?;
            match self.schedule.recall(position, moves, self.today) {
                None => (new_left > 0).then_some(Reason::New),
                Some(recall) if !recall.is_due(self.today) => None,
                Some(recall) if recall.is_of(self.today) => Some(Reason::Again),
                Some(_) => Some(Reason::Due),
            }
        };
        self.deck.ids().map(reason).collect()
    }

    /// Returns how often each of `moves` is played at the end of `path`, as weights. If none of them was played, all
    /// weights are equal.
    fn weights(&self, path: &Path, moves: &[&DeckMove]) -> Result<Vec<f64>> {
        let is_reply = path.position().turn() != self.deck.color();
        let mut weights: Vec<f64> = match self.replies.filter(|_| is_reply) {
            None => moves.iter().map(|mv| mv.weight as f64).collect(),
            Some(replies) => {
                let played = replies.moves(path.keyed())?;
                let games = |mv: &&DeckMove| {
                    let found = played.iter().find(|played| mv.mv == played.mv.into());
                    found.map_or(0, |played| played.games()) as f64
                };
                moves.iter().map(games).collect()
            }
        };
        if weights.iter().all(|weight| *weight == 0.0) {
            weights.fill(1.0);
        }
        Ok(weights)
    }
}

/// Chooses a random index less than `len`. The probability of an index is proportional to its weight. At least one
/// weight must be positive.
fn pick(len: usize, weight: impl Fn(usize) -> f64, random: &mut Random) -> usize {
    let mut left = random.next_number() * (0..len).map(&weight).sum::<f64>();
    let chosen = (0..len).filter(|at| weight(*at) > 0.0).find(|at| {
        left -= weight(*at);
        left < 0.0
    });
    // Rounding errors can leave a tiny rest.
    chosen
        .or((0..len).rfind(|at| weight(*at) > 0.0))
        .unwrap_or(0)
}

/// The result of an answer to a question.
#[derive(Clone, PartialEq, Debug)]
pub struct Graded {
    /// Whether the answer is a move of the repertoire.
    pub is_right: bool,
    /// The moves of the repertoire in the position. The main move comes first.
    pub moves: Vec<Move>,
    /// The move with which the line continues: the answer if it is right, otherwise the main move.
    pub played: Move,
    /// The day on which the position is due next. It is the current day if the answer is wrong.
    pub due: NaiveDate,
}

/// Compares an answer with the moves of the repertoire in the position `pos`, and records the result in `schedule`.
/// `answer` is `None` if the player does not know the move. If the position is not due, the answer is compared but not
/// recorded, so that repeating a request changes nothing.
///
/// Returns `None` if `pos` is not a card of the deck.
pub fn grade(
    deck: &Deck,
    schedule: &mut Schedule,
    pos: &VariantPosition,
    answer: Option<Move>,
    today: NaiveDate,
) -> Option<Graded> {
    let (position, expected) = deck.card(deck.find(pos)?)?;
    let moves: Option<Vec<Move>> = expected.iter().map(|mv| mv.mv.to_move(pos)).collect();
    let moves = moves?;
    let right = answer.and_then(|answer| moves.iter().position(|mv| *mv == answer));
    let at = right.unwrap_or(0);
    let played = *moves.get(at)?;
    let recall = match schedule.recall(position, expected, today) {
        Some(recall) if !recall.is_due(today) => *recall,
        before => {
            let recall = Recall::after(before, right.is_some(), today);
            schedule.record(position, expected[at].mv, recall);
            recall
        }
    };
    Some(Graded {
        is_right: right.is_some(),
        moves,
        played,
        due: recall.due,
    })
}

#[cfg(test)]
mod tests;
