//! Finding positions by their Polyglot keys, by walking from known starts until the keys turn up.

use std::borrow::Cow;

use shakmaty::{Chess, Position, variant::VariantPosition};

use crate::{
    book::Book,
    error::Result,
    evals::check_room,
    position::{Variant, restored, stored},
    progress::Meter,
    storage::sort::{Memory, SpillingSet, TextSorter},
    walk::{Source, each_position},
};

/// A set of Polyglot hash keys whose positions are to be found, with the positions found so far. It finds them by
/// walking through the moves of books, databases or indexes. Data beyond its memory budget are spilled to temporary
/// files.
///
/// ```
/// use polybook::{
///     book::{Book, Entry}, position::{BookMove, Variant, key}, progress::Meter, counts::Memory, tree::Wanted,
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
    /// The number of keys whose positions are not found yet.
    left: u64,
    /// The positions that were found, each after its key.
    positions: TextSorter,
    rules: Option<VariantPosition>,
    memory: Memory,
}

/// The positions that [`Wanted::look`] has found. [`position`](FoundPositions::position) returns them by key, in
/// ascending order of keys.
pub struct FoundPositions<'a> {
    texts: Box<dyn Iterator<Item = Result<Cow<'a, [u8]>>> + 'a>,
    rules: Option<&'a VariantPosition>,
    /// The key and the text of the last position that was read.
    next: Option<(u64, String)>,
}

/// The number of bytes of the key that precedes the text of a stored position.
const KEY: usize = size_of::<u64>();

impl Wanted {
    /// Creates an empty set. `memory` is the memory budget for the keys, the positions found and the walks.
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

    /// Adds a Polyglot hash key whose position is to be found.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn add(&mut self, key: u64) -> Result<()> {
        self.left += u64::from(self.keys.insert_key(key)?);
        Ok(())
    }

    /// Searches for the wanted positions by walking from `start`: through the moves of `source`, and through replies
    /// after which `source` has a move. The search ends when all positions are found.
    ///
    /// All calls must use starting positions of the same variant.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if a temporary file cannot be written.
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

    /// Returns the positions that [`look`](Wanted::look) has found so far.
    pub fn found(&mut self) -> FoundPositions<'_> {
        FoundPositions {
            texts: Box::new(self.positions.sorted()),
            rules: self.rules.as_ref(),
            next: None,
        }
    }
}

impl FoundPositions<'_> {
    /// Returns the position with the Polyglot hash key `key`, or `None` if it was not found. The keys of all calls must
    /// be in ascending order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    #[expect(clippy::missing_panics_doc, reason = "each text begins with a key")]
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

/// Returns all positions of a book of standard chess that can be reached from the starting position: positions with
/// moves in the book, and positions after these moves. Checkmates and stalemates are left out. `memory` limits both the
/// walk and the number of positions.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if a temporary file cannot be written, or if the positions do not fit
/// in memory.
pub fn book_positions(book: &Book, memory: &Memory, meter: &Meter) -> Result<Vec<Chess>> {
    let mut positions = Vec::new();
    let mut reached = SpillingSet::new(memory.share(4));
    let start = [Ok(Variant::Standard.start())];
    each_position(book, start, memory.share(4), meter, &mut |pos| {
        let moves = Source::moves(book, pos)?;
        // The walk does not visit positions without moves.
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
