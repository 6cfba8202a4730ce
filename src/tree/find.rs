//! Finding positions by their keys, by walking to them.

use std::borrow::Cow;

use shakmaty::{Chess, Position, variant::VariantPosition};

use crate::{
    book::Book,
    error::Result,
    evals::check_room,
    position::{Variant, restored, stored},
    progress::Meter,
    sort::{Memory, SpillingSet, TextSorter},
    walk::{Source, each_position},
};

/// Positions that are wanted by their keys, and those of them that walks come to. What memory does not hold goes to
/// temporary files.
///
/// ```
/// use polybook::{
///     book::{Book, Entry}, position::{BookMove, Variant, key}, progress::Meter, tally::Memory, tree::Wanted,
/// };
///
/// let start = Variant::Standard.start();
/// let e4 = Entry { key: key(&start), mv: BookMove(0o1434), weight: 1, learn: 0 };
/// let book = Book::from_bytes(e4.to_bytes().to_vec()).expect("whole records");
/// let mut wanted = Wanted::new(Memory::default());
/// wanted.add(7)?;
/// wanted.add(key(&start))?;
/// wanted.look(&book, &start, &Meter::default())?;
/// let mut found = wanted.found();
/// assert_eq!(found.position(7)?, None);
/// assert_eq!(found.position(key(&start))?, Some(start.clone()));
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug)]
pub struct Wanted {
    keys: SpillingSet,
    found: SpillingSet,
    /// How many are not found.
    left: u64,
    /// The keys of those that are found, and the positions.
    positions: TextSorter,
    rules: Option<VariantPosition>,
    memory: Memory,
}

/// Found positions, which are asked for in ascending order of their keys.
pub struct FoundPositions<'a> {
    texts: Box<dyn Iterator<Item = Result<Cow<'a, [u8]>>> + 'a>,
    rules: Option<&'a VariantPosition>,
    /// The last that was read.
    next: Option<(u64, String)>,
}

/// The key of a position, which precedes its text.
const KEY: usize = size_of::<u64>();

impl Wanted {
    /// Nothing is wanted yet; `memory` is for all that will be.
    pub fn new(memory: Memory) -> Wanted {
        let share = memory.share(4);
        Wanted {
            keys: SpillingSet::new(share.clone()),
            found: SpillingSet::new(share.clone()),
            left: 0,
            positions: TextSorter::new(share.clone(), None),
            rules: None,
            memory: share,
        }
    }

    /// Wants the position of a key.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub fn add(&mut self, key: u64) -> Result<()> {
        self.left += u64::from(self.keys.insert_key(key)?);
        Ok(())
    }

    /// Looks for what is wanted and not found yet where lines of a source from `start` come: its own, and those in which
    /// each side gets any reply after which it knows a move. All starts are by the same rules.
    ///
    /// # Errors
    ///
    /// What the source answers, or a temporary file that cannot be written.
    pub fn look(
        &mut self,
        source: &impl Source,
        start: &VariantPosition,
        meter: &Meter,
    ) -> Result<()> {
        self.rules.get_or_insert_with(|| start.clone());
        if self.left == 0 {
            return Ok(());
        }
        let (start, memory) = ([Ok(start.clone())], self.memory.clone());
        each_position(source, start, memory, meter, &mut |pos| {
            let key = pos.key();
            if self.keys.contains_key(key)? && self.found.insert_key(key)? {
                self.left -= 1;
                let mut text = key.to_be_bytes().to_vec();
                text.extend_from_slice(stored(pos.position()).as_bytes());
                self.positions.push(&text)?;
            }
            Ok(self.left > 0)
        })
    }

    /// What was found.
    pub fn found(&mut self) -> FoundPositions<'_> {
        FoundPositions {
            texts: Box::new(self.positions.sorted()),
            rules: self.rules.as_ref(),
            next: None,
        }
    }
}

impl FoundPositions<'_> {
    /// The position of a key, if it was found. No smaller key may be asked for later.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub fn position(&mut self, key: u64) -> Result<Option<VariantPosition>> {
        while self.next.as_ref().is_none_or(|(next, _)| *next < key) {
            let Some(text) = self.texts.next().transpose()? else {
                return Ok(None);
            };
            let (next, pos) = text.split_first_chunk::<KEY>().expect("a key comes first");
            let pos = String::from_utf8_lossy(pos).into_owned();
            self.next = Some((u64::from_be_bytes(*next), pos));
        }
        let found = self.next.as_ref().filter(|(next, _)| *next == key);
        Ok(found.and_then(|(_, pos)| restored(pos, self.rules?)))
    }
}

/// The positions to which the lines of a book of standard chess lead from the start, with the start and those after its
/// last moves, but not those in which the game is over. `memory` is for what the walk needs besides.
///
/// # Errors
///
/// A book that cannot be read, or a temporary file that cannot be written.
pub fn book_positions(book: &Book, memory: &Memory, meter: &Meter) -> Result<Vec<Chess>> {
    let mut positions = Vec::new();
    let mut reached = SpillingSet::new(memory.share(4));
    let start = [Ok(Variant::Standard.start())];
    each_position(book, start, memory.share(4), meter, &mut |pos| {
        let moves = Source::moves(book, pos)?;
        // The walk does not come to positions without moves.
        let after = moves.iter().map(|mv| {
            let mut after = pos.clone();
            after.play(mv.mv);
            after
        });
        for pos in after.chain([pos.clone()]) {
            if let VariantPosition::Chess(chess) = pos.position()
                && !moves.is_empty()
                && !chess.legal_moves().is_empty()
                && reached.insert_key(pos.key())?
            {
                positions.push(chess.clone());
                check_room(positions.len(), memory, book.path())?;
            }
        }
        Ok(true)
    })?;
    Ok(positions)
}
