//! Writes the games themselves as an output of a run.

use std::{
    collections::BinaryHeap,
    io::Write,
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde_json::json;
use shakmaty::{Move, variant::VariantPosition};
use siphasher::sip::SipHasher13;

use crate::{
    chess::position::{Keyed, PieceLetters, Variant, fen_of},
    error::{At, Result},
    games::{
        openings::OpeningNumber,
        pgn::{ExportFacts, GameEnd, GameReader, GameResult, Input, play_main_line, start_of},
    },
    make_book::{
        data::CollectedData,
        extract::{Extract, ExtractForm},
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        sink::{BatchSink, CountedGame, Plan, Sink},
    },
    storage::output::{BufferedFile, Finished, begin_text},
    task,
    text::escaped,
};

/// An output of games that is open for writing.
struct ExtractSink<'a> {
    extract: &'a Extract,
    /// The variant that is assumed for games without a `Variant` tag.
    untagged: Variant,
    letters: PieceLetters,
    state: Mutex<WrittenGames>,
}

/// The games that were written so far. Games are added in the order of the inputs.
struct WrittenGames {
    out: Compressed,
    path: PathBuf,
    /// The number of games that the output contains.
    games: u64,
    /// The number of games that were considered for the sample.
    offered: u64,
    /// The random sample, which consists of the games with the smallest hashes. An element is a hash, the number of the
    /// game, and the game. The game with the greatest hash is on top.
    sample: BinaryHeap<(u64, u64, WrittenGame)>,
    /// Whether control characters in the text of games are escaped.
    escapes: bool,
    /// The result to write after the last game in PGN, if its text ends without a result and no tags follow.
    open_result: Option<&'static str>,
}

/// A game in the form in which the output contains it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct WrittenGame {
    text: Vec<u8>,
    /// The result of the game, if the game is copied unchanged from a PGN input whose text for it ends without a
    /// result.
    open_result: Option<&'static str>,
}

/// An output file, which is compressed if its name has the extension of a compressed file.
enum Compressed {
    Plain(Box<BufferedFile>),
    #[cfg(feature = "compression")]
    Zstd(Box<zstd::Encoder<'static, BufferedFile>>),
    #[cfg(feature = "compression")]
    Gzip(Box<flate2::write::GzEncoder<BufferedFile>>),
}

impl Compressed {
    fn new(path: &Path, file: BufferedFile) -> Result<Compressed> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        Ok(match ending.to_str() {
            #[cfg(feature = "compression")]
            Some("zst") => {
                let encoder = zstd::Encoder::new(file, 0).at(path, "write")?;
                Compressed::Zstd(Box::new(encoder))
            }
            #[cfg(feature = "compression")]
            Some("gz") => {
                let level = flate2::Compression::default();
                Compressed::Gzip(Box::new(flate2::write::GzEncoder::new(file, level)))
            }
            #[cfg(not(feature = "compression"))]
            Some("zst" | "gz") => {
                let problem = "this build of polybook writes only plain PGN, not compressed files";
                return Err(crate::Error::file(path, problem));
            }
            _ => Compressed::Plain(Box::new(file)),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Compressed::Plain(file) => file.write_all(bytes),
            #[cfg(feature = "compression")]
            Compressed::Zstd(encoder) => encoder.write_all(bytes),
            #[cfg(feature = "compression")]
            Compressed::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self, path: &Path) -> Result<Finished> {
        let file = match self {
            Compressed::Plain(file) => *file,
            #[cfg(feature = "compression")]
            Compressed::Zstd(encoder) => encoder.finish().at(path, "write")?,
            #[cfg(feature = "compression")]
            Compressed::Gzip(encoder) => encoder.finish().at(path, "write")?,
        };
        file.finish()
    }
}

/// Returns a plan for writing games, or `None` if the options request no games. Adds the data that the output needs to
/// `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    _: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let extract = options.extract.as_ref()?;
    if let ExtractForm::Export(format) = extract.form {
        needs.openings |= format.needs_openings();
    }
    let untagged = options.inputs.first().map(Input::untagged_variant);
    Some(Plan {
        path: &extract.path,
        needs_games_reason: Some("the output contains games"),
        memory_shares: 0,
        begin: Box::new(move |_| {
            let file = BufferedFile::new(begin_text(&extract.path, options.force)?);
            let mut state = WrittenGames {
                path: file.target().to_owned(),
                out: Compressed::new(&extract.path, file)?,
                games: 0,
                offered: 0,
                sample: BinaryHeap::new(),
                escapes: extract.escapes || extract.form == ExtractForm::Json,
                open_result: None,
            };
            if extract.form == ExtractForm::Json {
                state.put(b"{\"games\":[")?;
            }
            Ok(Box::new(ExtractSink {
                extract,
                untagged: untagged.unwrap_or_default(),
                letters: options.piece_letters,
                state: Mutex::new(state),
            }))
        }),
    })
}

impl ExtractSink<'_> {
    /// Returns the text that the output contains for a game. `text` is the text of the game's batch, which begins at
    /// `batch_offset` in the input.
    fn written(&self, game: &ChosenGame, text: &[u8], batch_offset: u64) -> Vec<u8> {
        let of_game = &text[game.begin..game.end];
        match self.extract.form {
            ExtractForm::Export(format) if !game.is_broken => {
                let opening = game.opening.opening().map(|opening| {
                    let variation = &opening.name[opening.family().len()..];
                    let variation = variation.trim_start_matches([':', ',', ' ']);
                    [opening.eco, opening.family(), variation]
                });
                let facts = ExportFacts {
                    opening,
                    plies: game.plies,
                    result: game.result,
                    letters: self.letters,
                };
                format.write(of_game, self.untagged, &facts)
            }
            ExtractForm::Text | ExtractForm::Export(_) => {
                [of_game.trim_ascii_end(), b"\n\n"].concat()
            }
            ExtractForm::Json => {
                let offset = batch_offset + game.begin as u64;
                let mut found = json!({"file": null, "offset": offset});
                if game.is_broken {
                    found["broken"] = true.into();
                }
                if let Some(first) = game.matches.first() {
                    found["matches"] = game.matches.clone().into();
                    found["fen"] = self.fen(of_game, *first).into();
                }
                found.to_string().into_bytes()
            }
            ExtractForm::Count => Vec::new(),
        }
    }

    /// Returns the FEN of the position after `ply` half-moves of a game. `text` is the text of the game.
    fn fen(&self, text: &[u8], ply: u32) -> Option<String> {
        let mut reader = GameReader::new(text).with_untagged_variant(self.untagged);
        reader.next_game();
        let (_, start) = start_of(reader.tags()).ok()?;
        let mut pos = Keyed::new(start);
        let (mut plies, mut fen) = (0, None);
        let mut receive = |pos: &Keyed<VariantPosition>, _: Move, _: usize| {
            if plies == ply {
                fen = Some(fen_of(pos.position()));
            }
            plies += 1;
            fen.is_none()
        };
        play_main_line(&mut reader, self.letters, &mut pos, &mut receive);
        fen.or_else(|| Some(fen_of(pos.position())))
    }
}

/// Returns `true` if the text of a game ends with a result.
fn has_result(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let last_line = memchr::memrchr2(b'\n', b'\r', text).map_or(text, |end| &text[end..]);
    let is_usual = [&b" 1-0"[..], b" 0-1", b" 1/2-1/2", b" *"]
        .iter()
        .any(|end| text.ends_with(end));
    // The end of a comment may look like a result.
    let is_usual = is_usual && memchr::memchr2(b';', b'%', last_line).is_none();
    is_usual || {
        let mut game = GameReader::new(text);
        game.next_game() && matches!(game.skip_moves(), GameEnd::Complete(Some(_)))
    }
}

impl WrittenGames {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = if self.escapes {
            escaped(bytes)
        } else {
            bytes.into()
        };
        self.out.write_all(&bytes).at(&self.path, "write")
    }

    /// Adds a game to the output or to the random sample. The text in `text` is empty if only the number of games is
    /// written.
    fn add(&mut self, extract: &Extract, text: WrittenGame) -> Result<()> {
        let Some((most, seed)) = extract.sample else {
            return self.write(extract, &text);
        };
        let number = self.offered;
        self.offered += 1;
        let hash = SipHasher13::new_with_keys(seed, 0).hash(&number.to_le_bytes());
        let least = self.sample.peek().map(|(greatest, ..)| *greatest);
        if (self.sample.len() as u64) < most {
            self.sample.push((hash, number, text));
        } else if least.is_some_and(|greatest| hash < greatest) {
            self.sample.pop();
            self.sample.push((hash, number, text));
        }
        Ok(())
    }

    fn write(&mut self, extract: &Extract, game: &WrittenGame) -> Result<()> {
        if extract.limit.is_some_and(|limit| self.games >= limit) {
            return Ok(());
        }
        let WrittenGame { text, open_result } = game;
        if let Some(result) = self.open_result.take()
            && text.first() != Some(&b'[')
        {
            // If neither a result nor tags separated the two games, readers would join their moves to one game.
            self.put(format!("{result}\n\n").as_bytes())?;
        }
        self.open_result = *open_result;
        if extract.form == ExtractForm::Json && self.games > 0 {
            self.put(b",\n")?;
        }
        self.games += 1;
        self.put(text)
    }

    /// Writes the games of the random sample, if there is one, and the end of the output.
    fn end(&mut self, extract: &Extract) -> Result<()> {
        let mut sample = std::mem::take(&mut self.sample).into_vec();
        sample.sort_unstable_by_key(|(_, number, _)| *number);
        for (_, _, text) in sample {
            self.write(extract, &text)?;
        }
        match extract.form {
            ExtractForm::Json => self.put(format!("],\"total\":{}}}\n", self.games).as_bytes()),
            ExtractForm::Count => self.put(format!("{}\n", self.games).as_bytes()),
            ExtractForm::Text | ExtractForm::Export(_) => Ok(()),
        }
    }
}

impl Sink for ExtractSink<'_> {
    fn is_satisfied(&self) -> bool {
        let limit = self.extract.limit;
        limit.is_some_and(|limit| task::lock(&self.state).games >= limit)
    }

    fn batch(&self, _plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        Some(Box::new(ExtractBatch {
            sink: self,
            begin: 0,
            games: Vec::new(),
        }))
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let ExtractSink { extract, state, .. } = *self;
        let mut state = state.into_inner().unwrap_or_else(|err| err.into_inner());
        state.end(extract)?;
        counted.games.report.extracted = Some(state.games);
        state.out.finish(&state.path)
    }
}

/// A game of a batch that the output contains, because it meets the conditions.
struct ChosenGame {
    /// The number of the game in the batch.
    number: u32,
    begin: usize,
    end: usize,
    is_broken: bool,
    result: GameResult,
    plies: usize,
    opening: OpeningNumber,
    matches: Vec<u32>,
    /// The form in which the output contains the game. It is empty until the end of the batch.
    written: WrittenGame,
}

/// Collects the games of a batch that meet the conditions, in their order.
struct ExtractBatch<'a> {
    sink: &'a ExtractSink<'a>,
    /// The offset of the current game in the text of the batch.
    begin: usize,
    games: Vec<ChosenGame>,
}

impl BatchSink for ExtractBatch<'_> {
    fn next_game(&mut self, game: &GameReader<'_>, _batch_offset: u64) {
        self.begin = game.game_offset();
    }

    fn count(&mut self, game: &CountedGame<'_>) {
        self.games.push(ChosenGame {
            number: game.number,
            begin: self.begin,
            end: game.end,
            is_broken: false,
            result: game.result,
            plies: game.length,
            opening: game.opening,
            matches: game.matches.to_vec(),
            written: WrittenGame::default(),
        });
    }

    fn reject(&mut self, number: u32, end: usize) {
        if self.sink.extract.keep_broken {
            self.games.push(ChosenGame {
                number,
                begin: self.begin,
                end,
                is_broken: true,
                result: GameResult::Unknown,
                plies: 0,
                opening: OpeningNumber::default(),
                matches: Vec::new(),
                written: WrittenGame::default(),
            });
        }
    }

    fn end_batch(&mut self, text: &[u8], batch_offset: u64) {
        for game in &mut self.games {
            game.written.text = self.sink.written(game, text, batch_offset);
            let is_copy = match self.sink.extract.form {
                ExtractForm::Text => true,
                ExtractForm::Export(_) => game.is_broken,
                ExtractForm::Json | ExtractForm::Count => false,
            };
            if is_copy && !has_result(&text[game.begin..game.end]) {
                game.written.open_result = Some(game.result.token());
            }
        }
    }

    fn leave_out(&mut self, games: &[u32]) {
        self.games
            .retain(|game| games.binary_search(&game.number).is_err());
    }

    fn process_in_order(&mut self, input: &Path) -> Result<()> {
        let extract = self.sink.extract;
        let mut state = task::lock(&self.sink.state);
        for game in std::mem::take(&mut self.games) {
            let mut game = game.written;
            if extract.form == ExtractForm::Json {
                let file = serde_json::Value::from(input.to_string_lossy());
                let rest = &game.text[b"{\"file\":null".len()..];
                game.text = [format!("{{\"file\":{file}").as_bytes(), rest].concat();
            }
            state.add(extract, game)?;
        }
        Ok(())
    }

    fn add(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
