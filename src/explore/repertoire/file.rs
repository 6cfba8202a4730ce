//! Writes repertoires as PGN and as books, and edits repertoire files. [`write_prepared`] writes the lines that a
//! player should prepare as PGN.

use std::{
    io::{BufRead, Write},
    path::Path,
    sync::Arc,
};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{OpenOptions, OpenedSource, RemovedMoves, RepertoirePgn, gaps::Additions};
use crate::{
    chess::position::{BookMove, Keyed, Variant, has_inner_castling_rook, line_text},
    error::{At, Error, Result, plural},
    explore::{
        explorer::{PrepareQuery, PreparedLine},
        tree::{Branch, Limits, MoveSource, Order, Tree, TreeEvent, remark},
    },
    formats::{
        book::{
            BookMaker, Change, EditSummary, Factors, NewWeight, PositionEdit, Weights, begin_book,
            edit_book, header::with_checksum,
        },
        counts::{MoveFilter, Tally},
    },
    games::{
        pgn::{Cutter, GameWriter, StreamOptions, UNKNOWN_PLAYERS},
        results::Wdl,
    },
    progress::Meter,
    provenance::Provenance,
    storage::{
        output::{AtomicFile, BufferedFile, begin_text},
        sort::Memory,
    },
    task,
};

/// The format in which a repertoire is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RepertoireFormat {
    /// PGN games with variations. They contain the player's moves, and those replies of the opponent that the player
    /// answers.
    Pgn,
    /// A book, which contains only the player's moves.
    Book,
}

impl RepertoireFormat {
    /// Returns the format that the extension of `path` implies. The extension `.bin` implies a book, and any other
    /// extension implies PGN.
    pub fn of(path: &Path) -> RepertoireFormat {
        let extension = path.extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("bin") {
            RepertoireFormat::Book
        } else {
            RepertoireFormat::Pgn
        }
    }
}

/// An output file for a repertoire, open for writing. No other process can write the file while this value exists.
#[derive(Debug)]
pub struct RepertoireFile {
    file: AtomicFile,
    format: RepertoireFormat,
}

impl RepertoireFile {
    /// Creates an output file, whose format follows from the extension of `path`. With `force`, replaces any existing
    /// file. Without `force`, replaces only an empty file, or a book that polybook wrote if the new file is also a
    /// book.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created, or if an existing file must not be replaced.
    pub fn create(path: &Path, force: bool) -> Result<RepertoireFile> {
        let format = RepertoireFormat::of(path);
        let file = match format {
            RepertoireFormat::Pgn => begin_text(path, force),
            RepertoireFormat::Book => begin_book(path, force),
        };
        Ok(RepertoireFile {
            file: file?,
            format,
        })
    }

    /// Returns the format in which the repertoire will be written.
    pub fn format(&self) -> RepertoireFormat {
        self.format
    }
}

/// A repertoire to be written to a file, with the options for writing it.
pub struct Writing<'a> {
    /// The source of the player's moves, and of those replies of the opponent that the player answers.
    pub moves: &'a dyn MoveSource,
    /// The positions in which the lines of the repertoire start.
    pub starts: &'a [VariantPosition],
    /// The chess variant of these positions.
    pub variant: Variant,
    /// The side for which the repertoire contains moves.
    pub color: Color,
    /// The title, which becomes the comment in a book's header or the `Event` tag of PGN games.
    pub title: &'a str,
    /// The memory budget and the temporary directory for the set of visited positions.
    pub memory: &'a Memory,
    /// Receives the progress, and can cancel the writing.
    pub meter: &'a Meter,
}

impl Writing<'_> {
    /// Writes the repertoire to `out`, and returns the number of moves written.
    ///
    /// In PGN, each move is followed by the comment that the function `comment` returns for it. If `comment` is `None`,
    /// the comments of [`Tree::write_pgn`] are written. A comment on a transposition, unless it is empty, also states
    /// the line of the file whose position the transposition reaches. A book cannot contain comments.
    ///
    /// # Errors
    ///
    /// Returns an error if the repertoire cannot be read or the file cannot be written.
    pub fn write(
        &self,
        out: RepertoireFile,
        comment: Option<&dyn Fn(&Branch<'_>) -> String>,
    ) -> Result<u64> {
        match out.format {
            RepertoireFormat::Pgn => self.write_pgn(out.file, comment),
            RepertoireFormat::Book => self.write_book(out.file),
        }
    }

    /// Returns a tree for each start position of the repertoire, which contains the moves of the repertoire from this
    /// position.
    fn trees(&self) -> impl Iterator<Item = Tree<'_, &dyn MoveSource>> {
        let limits = || Limits {
            memory: self.memory.share(2),
            ..Limits::default()
        };
        let tree = move |start: &VariantPosition| {
            Tree::new(self.moves, start.clone(), limits(), self.meter)
        };
        self.starts.iter().map(tree)
    }

    fn write_pgn(
        &self,
        file: AtomicFile,
        comment: Option<&dyn Fn(&Branch<'_>) -> String>,
    ) -> Result<u64> {
        let mut out = BufferedFile::new(file);
        let path = out.target().to_owned();
        let mut moves = 0;
        for (tree, start) in self.trees().zip(self.starts) {
            let mut reached = ReachedLines::new(self, start);
            let mut with_line = |branch: &Branch<'_>| {
                let line = reached.add(branch);
                let comment = match (comment, &line) {
                    (Some(comment), _) => comment(branch),
                    (None, Some(_)) => remark(branch),
                    (None, None) => return None,
                };
                Some(match line {
                    Some(line) if !comment.is_empty() => {
                        format!("{comment}, transposition to {line}")
                    }
                    _ => comment,
                })
            };
            moves += tree.write_commented_pgn(&mut out, &path, self.title, &mut with_line)?;
        }
        out.commit()?;
        Ok(moves)
    }

    fn write_book(&self, mut file: AtomicFile) -> Result<u64> {
        let tally = Tally::new(self.memory.share(2));
        for tree in self.trees() {
            tree.walk(Order::Positions, &mut |event| {
                let TreeEvent::Move(branch) = event else {
                    return Ok(());
                };
                let pos = branch.pos.position();
                if pos.turn() != self.color || has_inner_castling_rook(pos) {
                    return Ok(());
                }
                let weight = Wdl {
                    wins: branch.mv.weight.max(1),
                    ..Wdl::default()
                };
                let mv = BookMove::from(branch.mv.mv);
                tally.add(branch.pos.key(), mv, pos.turn(), weight)
            })?;
        }
        let weights = Weights {
            factors: Factors {
                win: 1,
                draw: 0,
                loss: 0,
            },
            ..Weights::default()
        };
        let (variants, title, temp_dir) =
            ([self.variant.name()], self.title, &self.memory.temp_dir);
        task::pool(0)?.install(|| {
            let counts = tally.sort()?;
            let filter = MoveFilter::every_move();
            let maker = BookMaker::new(&counts, &filter, &weights)?;
            let title = with_checksum(title);
            let header = maker.header(&variants, Some(&title), &Provenance::default());
            let header = header.map_err(|err| Error::format(file.target(), err))?;
            maker.write(Some(&header), &mut file, temp_dir)?;
            file.commit()?;
            Ok(maker.summary().entries)
        })
    }
}

/// Remembers the line with which each position of a repertoire was first reached while the repertoire is written. A
/// comment on a transposition states this line.
struct ReachedLines<'a> {
    moves: &'a dyn MoveSource,
    start: &'a VariantPosition,
    /// The identity (a hash) of the position in which lines start.
    first: u64,
    /// Maps each position to its predecessor and the move between the two. Positions are given by their identities
    /// (hashes).
    before: FxHashMap<u64, (u64, Move)>,
    /// The maximum number of positions in `before`. A comment on a transposition to any other position states no line.
    most: usize,
}

impl<'a> ReachedLines<'a> {
    /// An estimate of the memory, in bytes, for one position.
    const BYTES_PER_POSITION: usize = 64;

    fn new(writing: &Writing<'a>, start: &'a VariantPosition) -> ReachedLines<'a> {
        ReachedLines {
            moves: writing.moves,
            start,
            first: writing.moves.position_id(&Keyed::new(start.clone())),
            before: FxHashMap::default(),
            most: writing.memory.bytes / 4 / ReachedLines::BYTES_PER_POSITION,
        }
    }

    /// Returns the line that first reached the position after `branch`, in SAN with move numbers, if `branch` is a
    /// transposition. Returns `None` if this line is unknown. If `branch` is not a transposition, remembers the
    /// position and returns `None`.
    fn add(&mut self, branch: &Branch<'_>) -> Option<String> {
        let after = self.moves.position_id(branch.after);
        if branch.is_transposition {
            return self.line(after);
        }
        if self.before.len() < self.most && after != self.first {
            let before = self.moves.position_id(branch.pos);
            self.before.entry(after).or_insert((before, branch.mv.mv));
        }
        None
    }

    fn line(&self, mut pos: u64) -> Option<String> {
        let mut line = Vec::new();
        while pos != self.first {
            let (before, mv) = self.before.get(&pos)?;
            line.push(*mv);
            pos = *before;
        }
        line.reverse();
        Some(if line.is_empty() {
            "the start".to_owned()
        } else {
            line_text(self.start, &line).0
        })
    }
}

/// Writes the repertoire `pgn` to `out` with changes: the moves in `removed` and all moves after them are left out, and
/// each line of `added` becomes a new game before the old games.
///
/// The new games come first, because the old text may end with an unterminated comment, of which they would become a
/// part.
///
/// `start` is the position in which the lines of `added` begin. `reading` contains the memory budget, and the flag that
/// cancels the reading.
///
/// # Errors
///
/// Returns an error if `pgn` cannot be read or was changed, or if the output cannot be written.
pub fn add_to_pgn(
    pgn: &RepertoirePgn,
    added: &Additions,
    removed: &RemovedMoves,
    start: &VariantPosition,
    out: RepertoireFile,
    reading: &StreamOptions,
) -> Result<()> {
    // Opening the file would block if it was replaced by a pipe.
    pgn.check_unchanged()?;
    let mut out = BufferedFile::new(out.file);
    let path = out.target().to_owned();
    let mut games = GameWriter::new(&mut out);
    for (number, line) in (1..).zip(&added.lines) {
        games
            .begin("Added answer", number, UNKNOWN_PLAYERS, start, None)
            .and_then(|()| games.words(line))
            .and_then(|()| games.end())
            .at(&path, "write")?;
    }
    let input = pgn.input();
    let mut text = input.open(&StreamOptions {
        stop: Arc::clone(&reading.stop),
        memory: input.unpacking_memory(reading.memory),
        temp_dir: reading.temp_dir.clone(),
    })?;
    let read = |err| input.error(err);
    if text.fill_buf().map_err(read)?.starts_with(BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    if !removed.is_empty() {
        let mut games = Cutter::new(text, BATCH_SIZE);
        let mut left = Vec::new();
        while let Some(batch) = games.next_batch().map_err(read)? {
            let reader = input.reader(&batch.text).with_variations(true);
            removed.cut(&batch.text, reader, &mut left);
            out.put(&left)?;
            left.clear();
        }
        pgn.check_unchanged()?;
        return out.commit();
    }
    loop {
        let part = text.fill_buf().map_err(read)?;
        if part.is_empty() {
            pgn.check_unchanged()?;
            return out.commit();
        }
        out.put(part)?;
        let read = part.len();
        text.consume(read);
    }
}

/// Returns a copy of a repertoire in PGN, without the moves in `removed` and the moves after them. Reads the PGN file
/// again, and writes the copy to the directory of `options`, which must be the options with which the file was opened.
///
/// # Errors
///
/// Returns an error if the repertoire is not a PGN file, if the file has changed since it was opened, or if it cannot
/// be read.
pub fn without_moves(
    repertoire: &OpenedSource,
    removed: &RemovedMoves,
    options: &OpenOptions<'_>,
) -> Result<OpenedSource> {
    let path = options.directory.join("edited.pgn");
    let Some(pgn) = repertoire.pgn() else {
        let problem = "the repertoire is not a PGN file, but moves can be removed only from PGN";
        return Err(Error::file(&path, problem));
    };
    let out = RepertoireFile::create(&path, true)?;
    let start = repertoire.variant().start();
    // A game without moves, because a file without games is an error.
    let game = Additions::from_lines(&start, [&[] as &[Move]]);
    let reading = StreamOptions {
        stop: Arc::clone(&options.stop),
        ..StreamOptions::within(&options.memory)
    };
    add_to_pgn(pgn, &game, removed, &start, out, &reading)?;
    // The game without moves may be the last one, and a game of Chess960 from the usual position has no tag.
    let left = OpenedSource::repertoire(&path, options)?;
    Ok(left.with_variants_of(repertoire))
}

/// The approximate size in bytes of a batch of games. A PGN file from which moves are removed is processed in such
/// batches.
const BATCH_SIZE: usize = 1 << 18;

/// The UTF-8 byte order mark. A copy of a PGN leaves it out, because it may stand only at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes the book `repertoire` to `out`, together with the moves of `added`. `memory` is the memory budget, and
/// `meter` receives the progress.
///
/// # Errors
///
/// Returns an error if `repertoire` is not a book, or if the output cannot be written.
pub fn add_to_book(
    repertoire: OpenedSource,
    added: &Additions,
    out: RepertoireFile,
    memory: &Memory,
    meter: &Meter,
) -> Result<EditSummary> {
    let variant = repertoire.variant();
    let out = out.file;
    let problem = "the output can be a book only if the repertoire is a book: end the name of the output in .pgn";
    let book = repertoire
        .into_book()
        .ok_or_else(|| Error::file(out.target(), problem))?;
    let edits = added.answers.values().map(|(pos, answer)| PositionEdit {
        pos: pos.clone(),
        changes: vec![Change::Set {
            mv: crate::chess::position::uci(pos, answer.mv),
            weight: NewWeight::Absolute(answer.weight.clamp(1, u16::MAX.into()) as u16),
        }],
    });
    let edits: Vec<PositionEdit> = edits.collect();
    edit_book(book, &edits, variant, out, memory, meter)
}

/// Writes a PGN file with the lines that a player should prepare. Each line becomes a game without a result, which
/// begins with the moves to the position of the query.
///
/// A comment in the game says how likely the line is, and how the player scores after the line. If the player has an
/// answer to the last move of the line, the game ends with this answer, and another comment says where the answer comes
/// from.
///
/// `query` names the player and the opponent, and contains the position in which the lines begin. `path` is the path of
/// the output for error messages.
///
/// # Errors
///
/// Returns an error if the output cannot be written.
pub fn write_prepared(
    query: &PrepareQuery<'_>,
    lines: &[PreparedLine],
    out: impl Write,
    path: &Path,
) -> Result<()> {
    let name = |names: &[String]| tag_text(names.first().map_or("", |name| name));
    let (player, opponent) = (name(&query.filters.player), name(&query.filters.opponent));
    let players = match query.color {
        Color::White => [&*player, &*opponent],
        Color::Black => [&*opponent, &*player],
    };
    let (event, from) = (event_of(query, ""), query.line.position());
    let start = &query.line.positions()[0];
    let (moves_before, _) = line_text(start, query.line.moves());
    let mut games = GameWriter::new(out);
    for (line, round) in lines.iter().zip(1..) {
        let opening = line.opening.map(|opening| (opening.eco, opening.name));
        let mut text = format!("{moves_before} {} {{{}}}", line.text(from), comment(line));
        if let Some((answer, numbered)) = line.answer.as_ref().zip(line.answer_text(from)) {
            text += &format!(" {numbered} {{{}}}", answer.source.word());
        }
        games
            .begin(&event, round, players, start, opening)
            .and_then(|()| games.words(text.trim_start()))
            .and_then(|()| games.end())
            .at(path, "write")?;
    }
    Ok(())
}

/// Returns the `Event` tag for the games of a preparation. It contains `which`, a description of the games, the name of
/// the opponent and, if older games count less in the probabilities, the half-life of their weights.
pub(super) fn event_of(query: &PrepareQuery<'_>, which: &str) -> String {
    let weighted = query.half_life.map_or_else(String::new, |half_life| {
        format!(", 1 in N with a half-life of {half_life}")
    });
    let opponent = query.filters.opponent.join(" or ");
    tag_text(&format!("Preparation for {opponent}{which}{weighted}"))
}

/// Returns `text` without the characters that would end the value of a tag early.
fn tag_text(text: &str) -> String {
    text.replace(['"', '\\', '\r', '\n'], "")
}

/// Returns the comment on a line that a player should prepare. It says how likely the line is, how many of the
/// opponent's and of the player's games reached its end, and how the player scored in these games. If the player has no
/// answer or no usual answer, the comment also says this.
fn comment(line: &PreparedLine) -> String {
    let games = |games, whose| match games {
        0 => format!("no game of {whose}"),
        games => format!("{} of {whose}", plural(games, "game")),
    };
    let unfinished = match line.yours.unfinished {
        0 => String::new(),
        unfinished => format!(" ({unfinished} without result)"),
    };
    let score = line.score.map(|score| format!(", {score:.1}%"));
    let gap = match (line.gap, line.line_end, &line.answer) {
        (true, ..) => ", a gap",
        (_, true, _) => ", after the end of a line of the repertoire",
        (.., None) => ", no usual answer",
        _ => "",
    };
    format!(
        "1 in {:.1}, {}, {}{unfinished}{}{gap}",
        1.0 / line.chance,
        games(line.theirs.results.games(), "theirs"),
        games(line.yours.games(), "yours"),
        score.unwrap_or_default()
    )
}
