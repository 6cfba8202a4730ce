//! What is known of positions, of whatever kind the file is: repertoires, and sources of games and counts.

use std::{
    any::Any,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustc_hash::FxHashSet;
use shakmaty::{ByColor, Color, Move, Position, variant::VariantPosition};

use crate::{
    book::{Book, is_book_or_empty},
    error::{At, Error, Result},
    explorer::{Explorer, Filters},
    index::Index,
    kind::FileKind,
    make_book::{MakeBook, Progress, Report},
    pgn::{GameFilter, Games, Input, start_of},
    position::{Keyed, Variant, VariantChoice},
    progress::Meter,
    sort::Memory,
    tally::{FindableCounts, Stats, Tally},
    task,
    tree::{Event, Explored, Limits, LinesOf, Order, Replies, Source, Tree, TreeMove},
};

/// How a file is opened.
pub struct Opening<'a> {
    /// The variant to read it as, none for its own.
    pub variant: Option<Variant>,
    /// Which games of a PGN count, none for all. Only a source of games in PGN takes it.
    pub filter: Option<&'a GameFilter>,
    /// What counting games may take.
    pub memory: Memory,
    /// How many threads count, 0 for one per core.
    pub threads: usize,
    /// An empty directory for the index of games. It must stay as long as the file is open.
    pub directory: &'a Path,
    /// Is called when games begin to be counted. What it returns is dropped when they are.
    pub counting: &'a dyn Fn(Arc<Progress>) -> Box<dyn Any>,
}

/// The moves of positions, as games, an index, counts, a database or a book have them.
#[derive(Debug)]
pub struct Known {
    kind: Kind,
    variants: BTreeSet<Variant>,
    /// The PGN of a repertoire.
    pgn: Option<PathBuf>,
    /// Where its games begin, besides the starts of their variants.
    starts: Vec<VariantPosition>,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Book(Book),
    Obs(Box<crate::obs::Obs>),
    Counts(Box<FindableCounts>),
    /// Moves of a repertoire, without results.
    Lines(Box<FindableCounts>),
    Explored(Box<Explored>),
}

impl Known {
    /// Opens a repertoire: a PGN whose variations count, a book, or an OOBS database.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is none of these.
    pub fn repertoire(path: &Path, opening: &Opening<'_>) -> Result<Known> {
        if path.is_dir() {
            let problem = "a directory: a repertoire is a PGN, a book (.bin) or an OOBS database";
            return Err(Error::file(path, problem));
        }
        match Known::stored(path, opening)? {
            Some(Known {
                kind: Kind::Obs(obs),
                variants,
                ..
            }) => Ok(Known {
                kind: Kind::Lines(Box::new(opening.moves_of(&obs, &variants)?)),
                variants,
                pgn: None,
                starts: Vec::new(),
                warnings: Vec::new(),
            }),
            Some(known) => Ok(known),
            None => Ok(Known {
                pgn: Some(path.to_owned()),
                starts: opening.starts_of(path)?,
                ..Known::counted(path, MakeBook::variations, opening)?
            }),
        }
    }

    /// Opens a source: games in PGN, an index, counts, an OOBS database or a book. Games are indexed first. With
    /// `keep_prefix`, the moves before an illegal one count.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is none of these.
    pub fn source(path: &Path, keep_prefix: bool, opening: &Opening<'_>) -> Result<Known> {
        let is_filtered = opening.filter.is_some();
        let stored = match FileKind::of(path)? {
            FileKind::Counts | FileKind::Directory if is_filtered => {
                Err(Error::file(path, NO_FILTER))
            }
            FileKind::Counts => Known::counted(path, |run, _| run, opening).map(Some),
            FileKind::Directory => Known::index(path, opening).map(Some),
            _ => Known::stored(path, opening),
        };
        if let Some(known) = stored? {
            return match opening.filter {
                Some(_) => Err(Error::file(path, NO_FILTER)),
                None => Ok(known),
            };
        }
        let index = opening.directory.join("games.idx");
        let run = opening.run(path).keep_prefix(keep_prefix).allow_empty(true);
        let run = run.leveldb(&index).explorer(true);
        let run = run.game_filter(opening.filter.cloned().unwrap_or_default());
        let shown = (opening.counting)(run.progress());
        let report = run.run()?;
        drop(shown);
        let mut known = Known::index(&index, opening)?;
        known.variants = variants_of(&report);
        if opening.variant.is_none() {
            known.read_as(known.variant());
        }
        known.warnings = warnings(&report);
        Ok(known)
    }

    /// A book or a database, if it is one.
    fn stored(path: &Path, opening: &Opening<'_>) -> Result<Option<Known>> {
        let with = |kind, own: Option<Variant>| {
            Some(Known {
                kind,
                variants: BTreeSet::from([opening.variant.or(own).unwrap_or_default()]),
                pgn: None,
                starts: Vec::new(),
                warnings: Vec::new(),
            })
        };
        if FileKind::of(path)? == FileKind::Sqlite {
            let obs = crate::obs::Obs::open_verified(path)?;
            let own = obs.info().variant.parse().ok();
            return Ok(with(Kind::Obs(Box::new(obs)), own));
        }
        let is_named_book = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("bin"));
        let metadata = path.metadata().at(path, "open")?;
        if is_named_book || metadata.len() > 0 && is_book_or_empty(path)? {
            let book = Book::open_within(path, opening.memory.bytes as u64 / 2)?;
            let own = book.variant();
            return Ok(with(Kind::Book(book), own));
        }
        Ok(None)
    }

    fn index(path: &Path, opening: &Opening<'_>) -> Result<Known> {
        let index = Index::open(path)?;
        let choice = index.variant();
        let variant = opening.variant.or(choice.only()).unwrap_or_default();
        if !index.has_explorer_data()? {
            let problem = "does not have the games of each move: make it with --explorer";
            return Err(Error::file(path, problem));
        }
        drop(index);
        let explorer = Explorer::open([("games".to_owned(), path.to_owned())])?;
        let pruned = explorer.min_game(&Filters::default());
        let end = explorer.max_ply(&Filters::default());
        Ok(Known {
            kind: Kind::Explored(Box::new(Explored(explorer, variant))),
            variants: match choice.only() {
                Some(own) => BTreeSet::from([own]),
                None => Variant::ALL.into(),
            },
            pgn: None,
            starts: Vec::new(),
            warnings: [
                pruned.map(|fewest| {
                    format!(
                        "the counts lack positions in which fewer than {fewest} moves were counted"
                    )
                }),
                end.map(|ply| format!("the counts end at half-move {ply}")),
            ]
            .into_iter()
            .flatten()
            .collect(),
        })
    }

    /// Counts the moves of a PGN or a directory of counts.
    fn counted(
        path: &Path,
        how: fn(MakeBook, bool) -> MakeBook,
        opening: &Opening<'_>,
    ) -> Result<Known> {
        // The options of counts are their own.
        let run = match path.is_dir() {
            true => opening.run(path).variant(VariantChoice::default()),
            false => opening.run(path).keep_prefix(true),
        };
        let run = how(run, true);
        let shown = (opening.counting)(run.progress());
        let (counts, report) = run.count()?;
        let counts = task::pool(opening.threads)?.install(|| FindableCounts::new(counts))?;
        drop(shown);
        let mut variants = variants_of(&report);
        variants.extend(opening.variant);
        Ok(Known {
            kind: Kind::Counts(Box::new(counts)),
            variants,
            pgn: None,
            starts: Vec::new(),
            warnings: warnings(&report),
        })
    }

    /// Whether it has positions of a variant.
    pub fn is_for(&self, variant: Variant) -> bool {
        self.variants.iter().any(|own| own.is_played_like(variant))
    }

    /// Its variant, of several the first.
    pub fn variant(&self) -> Variant {
        self.variants.first().copied().unwrap_or_default()
    }

    /// Reads a source as games of a variant of a repertoire: of several, the first that the source has. Returns it.
    ///
    /// # Errors
    ///
    /// A source without games of a variant of the repertoire.
    pub fn read_for(&mut self, repertoire: &Known) -> Result<Variant> {
        let mut own = repertoire.variants.iter().copied();
        let shared = own.find(|own| self.is_for(*own));
        let variant = shared.ok_or_else(|| {
            let variant = repertoire.variant();
            let problem = format!("the source has no games of the repertoire's variant, {variant}");
            Error::file("--against", problem)
        })?;
        self.read_as(variant);
        Ok(variant)
    }

    fn read_as(&mut self, variant: Variant) {
        if let Kind::Explored(explored) = &mut self.kind {
            explored.1 = variant;
        }
    }

    /// Where the lines of a side begin: at the start of a variant or, if there are none, where its games begin.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn start(&self, variant: Variant, color: Color) -> Result<VariantPosition> {
        let usual = variant.start();
        let own = self.starts.iter();
        let own = own.filter(|start| start.variant() == usual.variant());
        for start in std::iter::once(&usual).chain(own) {
            let pos = Keyed::new(start.clone());
            if !LinesOf(self, color).moves(&pos)?.is_empty() {
                return Ok(start.clone());
            }
        }
        Ok(usual)
    }

    /// Where any of its lines may begin.
    pub(super) fn starts(&self) -> impl Iterator<Item = VariantPosition> {
        let usual = self.variants.iter().map(|variant| variant.start());
        usual.chain(self.starts.iter().cloned())
    }

    /// The PGN that it is, if it is a repertoire of one.
    pub fn pgn(&self) -> Option<&Path> {
        self.pgn.as_deref()
    }

    /// What was odd about its games, a line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Says so if a repertoire seems to be of the other side: by the header of a book, or because the side has several moves
    /// in many more positions than the other.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn color_warning(&self, color: Color) -> Result<Option<String>> {
        let other = color.other();
        let is_for = format!("Repertoire for {other}");
        if let Kind::Book(book) = &self.kind
            && book
                .header()
                .is_ok_and(|header| header.comment.contains(&is_for))
        {
            return Ok(Some(format!("the repertoire is for {other} by its header")));
        }
        let mut several = ByColor { white: 0, black: 0 };
        let meter = Meter::default();
        for start in self.starts() {
            let limits = Limits {
                moves: Some(WALKED),
                ..Limits::default()
            };
            let mut moves = 0;
            Tree::new(Replies(self), start, limits, &meter).walk(
                Order::Positions,
                &mut |event| {
                    match event {
                        Event::Position { .. } => moves = 0,
                        Event::Move(branch) => {
                            moves += 1;
                            let turn = branch.pos.position().turn();
                            *several.get_mut(turn) += u64::from(moves == 2);
                        }
                        _ => (),
                    }
                    Ok(())
                },
            )?;
        }
        let [own, replies] = [color, other].map(|color| *several.get(color));
        Ok((own > 3 + 4 * replies).then(|| {
            format!(
                "the repertoire seems to be for {other}: it has several moves of {color} in {own} positions, of {other} in {replies}"
            )
        }))
    }

    /// Whether its moves have results, and not weights alone.
    pub fn has_results(&self) -> bool {
        !matches!(self.kind, Kind::Book(_))
    }

    /// The explorer of its games, if it has games: an index of counts has none.
    pub(crate) fn explorer(&self) -> Option<&Explorer> {
        match &self.kind {
            Kind::Explored(explored) => {
                let has_games = explored
                    .0
                    .about()
                    .sources
                    .iter()
                    .any(|source| !source.counts);
                has_games.then_some(&explored.0)
            }
            _ => None,
        }
    }

    /// The book that it is.
    pub(super) fn into_book(self) -> Option<Book> {
        match self.kind {
            Kind::Book(book) => Some(book),
            _ => None,
        }
    }
}

impl Opening<'_> {
    fn run(&self, path: &Path) -> MakeBook {
        MakeBook::new([Input::file(path)])
            .variant(VariantChoice::Auto)
            .memory(self.memory.bytes)
            .threads(self.threads)
            .temp_dir(&self.memory.temp_dir)
    }

    /// Where the games of a PGN begin, besides the starts of their variants.
    fn starts_of(&self, path: &Path) -> Result<Vec<VariantPosition>> {
        let games = Games {
            inputs: &[Input::file(path)],
            memory: self.memory.clone(),
            threads: self.threads,
            meter: &Meter::default(),
        };
        let (mut starts, mut seen) = (Vec::new(), FxHashSet::default());
        games.for_each(
            |_, reader| {
                let start = start_of(reader.tags());
                reader.skip_moves();
                Ok(start
                    .ok()
                    .filter(|(variant, start)| *start != variant.start()))
            },
            |_, start| {
                let new =
                    start.filter(|(_, start)| seen.insert(Keyed::new(start.clone()).identity()));
                starts.extend(new.map(|(_, start)| start));
                Ok(())
            },
        )?;
        Ok(starts)
    }

    /// The active rows of a database, which are found faster so: every position of many games is looked up.
    fn moves_of(
        &self,
        obs: &crate::obs::Obs,
        variants: &BTreeSet<Variant>,
    ) -> Result<FindableCounts> {
        let variant = variants.first().copied().unwrap_or_default();
        let tally = Tally::new(self.memory.share(2));
        for row in obs.rows()? {
            let row = row?;
            let pos = variant.parse_position(&row.epd).ok();
            let Some(pos) = pos.filter(|_| row.is_active()) else {
                continue;
            };
            let Some(mv) = crate::obs::legal_move(&pos, &row.mv) else {
                continue;
            };
            // A move without games is in it too.
            let games = Stats {
                wins: row.stats.games().max(1),
                ..Stats::default()
            };
            let turn = pos.turn();
            tally.add(Keyed::new(pos).identity(), mv, turn, games)?;
        }
        task::pool(self.threads)?.install(|| FindableCounts::new(tally.seal()?))
    }
}

/// How many moves are looked at to see whose a repertoire is.
const WALKED: u64 = 10_000;

/// Of a source that cannot be filtered.
const NO_FILTER: &str = "not PGN: only games in PGN can be filtered here";

/// The variants of the games that counted; standard chess without games.
fn variants_of(report: &Report) -> BTreeSet<Variant> {
    match report.totals.variants.is_empty() {
        true => BTreeSet::from([Variant::Standard]),
        false => report.totals.variants.keys().copied().collect(),
    }
}

fn warnings(report: &Report) -> Vec<String> {
    let rejected = report.totals.games.rejected;
    let first = report.rejected.first();
    let first = first.map(|first| format!("{rejected} rejected, the first: {first}"));
    report.warnings.iter().cloned().chain(first).collect()
}

/// A book's moves of weight 0 are not known: they are never played.
impl Source for Known {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match &self.kind {
            Kind::Book(book) => {
                let mut moves = Source::moves(book, pos)?;
                moves.retain(|mv| mv.weight > 0);
                Ok(moves)
            }
            Kind::Obs(obs) => Source::moves(obs.as_ref(), pos),
            Kind::Counts(counts) => moves_of(counts, pos, |mv, stats| {
                TreeMove::known(mv, stats.games(), Some(stats))
            }),
            Kind::Lines(counts) => moves_of(counts, pos, |mv, stats| {
                TreeMove::known(mv, stats.games(), None)
            }),
            Kind::Explored(explored) => explored.moves(pos),
        }
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        match &self.kind {
            Kind::Book(book) => book.node(pos),
            _ => pos.identity(),
        }
    }
}

fn moves_of(
    counts: &FindableCounts,
    pos: &Keyed<VariantPosition>,
    known: impl Fn(Move, Stats) -> TreeMove,
) -> Result<Vec<TreeMove>> {
    let counted = counts.moves(pos)?.into_iter();
    let legal = counted.filter_map(|count| Some((count.mv.to_move(pos.position())?, count.stats)));
    let mut moves: Vec<TreeMove> = legal.map(|(mv, stats)| known(mv, stats)).collect();
    // A stable sort: of equal ones, that of the smallest number comes first.
    moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
    Ok(moves)
}
