//! The descriptions of the explorer's indexes.

use serde::{Deserialize, Serialize};

use super::Paging;
use crate::index::layout::parse_number;

/// The version of the layout that this version of polybook reads and writes for an explorer's index of games.
///
/// An index contains hashes of names that [`folded`](crate::pgn::folded) has normalized. If the normalization changes,
/// the version must also be increased.
const VERSION: u64 = 8;

/// The description of an explorer's index of games. It is encoded as decimal numbers, separated by vertical bars.
/// A list contains items about one subject, such as the games of one position. A page is an entry that contains
/// several lists.
///
/// | field | meaning |
/// |---|---|
/// | 0 | the version of the layout: 8 |
/// | 1 | the number of leading bits in which the keys of all lists of a page agree |
/// | 2 | the number of positions |
/// | 3 | the total number of items in all lists |
/// | 4 | the number of names |
/// | 5 | the last half-move of a game that is counted; only with `--max-ply` |
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// The rule by which lists are assigned to pages.
    pub paging: Paging,
    /// The number of positions.
    pub positions: u64,
    /// The total number of items in all lists.
    pub items: u64,
    /// The number of names.
    pub names: u32,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    pub max_ply: Option<usize>,
}

impl Contents {
    /// Creates a description of an index. `items` is the total number of items in all lists. `names` is the number of
    /// player and event names. If `max_ply` is not `None`, only this many half-moves of each game were counted. The
    /// number of positions is 0 until the caller sets it.
    pub fn new(items: u64, names: u32, max_ply: Option<usize>) -> Contents {
        Contents {
            paging: Paging::for_items(items),
            positions: 0,
            items,
            names,
            max_ply,
        }
    }

    /// Encodes the description as the value of a LevelDB entry.
    pub fn write(&self) -> Vec<u8> {
        let bits = self.paging.bits();
        let (positions, items, names) = (self.positions, self.items, self.names);
        let end = self.max_ply.map(|ply| format!("|{ply}"));
        let end = end.unwrap_or_default();
        format!("{VERSION}|{bits}|{positions}|{items}|{names}{end}").into_bytes()
    }

    /// Returns `true` if the encoded description `value` states a version of the layout that this version of polybook
    /// cannot read. Returns `false` if the version is the same, or if `value` is malformed.
    pub fn is_of_other_version(value: &[u8]) -> bool {
        let version = value.split(|byte| *byte == b'|').next();
        version
            .and_then(parse_number)
            .is_some_and(|version: u64| version != VERSION)
    }

    /// Decodes the description of an index. Returns `None` if it is malformed, or if it states another version of the
    /// layout.
    pub fn parse(value: &[u8]) -> Option<Contents> {
        let mut fields = value.split(|byte| *byte == b'|');
        let mut number = || parse_number::<u64>(fields.next()?);
        if number()? != VERSION {
            return None;
        }
        let contents = Contents {
            paging: Paging::of_bits(u32::try_from(number()?).ok()?)?,
            positions: number()?,
            items: number()?,
            names: u32::try_from(number()?).ok()?,
            max_ply: match fields.next() {
                Some(ply) => Some(parse_number(ply)?),
                None => None,
            },
        };
        fields.next().is_none().then_some(contents)
    }
}

/// The version of the layout that this version of polybook reads and writes for an index of counts.
const COUNTED_VERSION: u32 = 2;

/// The greatest length in bytes of the encoded description of an index of counts. A longer description is rejected as
/// malformed before it is parsed.
const MAX_DESCRIPTION_BYTES: usize = 4 << 20;

/// The limits for the names of inputs in the description of an index of counts: the greatest number of names, and their
/// greatest total length in bytes. The second limit leaves room for JSON, which may encode one byte as six.
const MAX_INPUT_NAMES: (usize, usize) = (1000, 256 << 10);

/// The greatest number of games, positions or rows that the description of an index of counts may state. The limit
/// ensures that the sum of these numbers over several indexes cannot overflow.
const MAX_TOTAL: u64 = 1 << 50;

/// The description of an index of counts. Such an index contains game results, counted for each move of each position,
/// but no games. The description is encoded as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountedContents {
    version: u32,
    /// The number of leading bits in which the keys of all positions of a page agree.
    bits: u32,
    /// The number of positions.
    pub positions: u64,
    /// The number of rows of all positions.
    pub rows: u64,
    /// The first and the last year of the counted games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// Whether there are rows without a move, for games that end in a position.
    #[serde(default)]
    pub has_ends: bool,
    /// The number of counted games, or `None` if the counts do not state it.
    pub games: Option<u64>,
    /// The minimum number of moves that were counted in a position. Positions with fewer moves were pruned.
    pub min_game: u64,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ply: Option<usize>,
    /// The names of the inputs. If there are too many, the last element states how many were omitted.
    pub inputs: Vec<String>,
}

/// The origin of the counts in an index of counts: the names of the inputs from which the counts were made, the number
/// of games, and the limits that applied when the games were counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSources {
    /// The number of counted games, or `None` if the counts do not state it.
    pub games: Option<u64>,
    /// The minimum number of moves that were counted in a position. Positions with fewer moves were pruned.
    pub min_game: u64,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    pub max_ply: Option<usize>,
    /// The names of the inputs.
    pub inputs: Vec<String>,
}

impl CountedContents {
    /// Creates the description of an index of counts. `paging` is the rule that groups positions in pages (entries with
    /// several positions). `about` describes the origin of the counts. The numbers of positions and rows are 0 until
    /// the caller sets them.
    pub fn new(paging: Paging, about: CountsSources) -> CountedContents {
        let mut inputs = about.inputs;
        let mut bytes = 0;
        let fit = inputs.iter().take(MAX_INPUT_NAMES.0).take_while(|name| {
            bytes += name.len();
            bytes <= MAX_INPUT_NAMES.1
        });
        let fit = fit.count();
        if fit < inputs.len() {
            let more = format!("and {} more", inputs.len() - fit);
            inputs.splice(fit.., [more]);
        }
        CountedContents {
            version: COUNTED_VERSION,
            bits: paging.bits(),
            positions: 0,
            rows: 0,
            years: None,
            has_ends: false,
            games: about.games.filter(|games| *games <= MAX_TOTAL),
            min_game: about.min_game,
            max_ply: about.max_ply,
            inputs,
        }
    }

    /// Encodes the description as JSON, for the value of a LevelDB entry.
    #[expect(clippy::missing_panics_doc, reason = "numbers and texts are JSON")]
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    /// Decodes the description of an index of counts. Returns `None` if it is malformed, or if it states another
    /// version of the layout.
    pub fn parse(value: &[u8]) -> Option<CountedContents> {
        if value.len() > MAX_DESCRIPTION_BYTES {
            return None;
        }
        let contents: CountedContents = serde_json::from_slice(value).ok()?;
        let numbers = [
            contents.positions,
            contents.rows,
            contents.games.unwrap_or(0),
        ];
        let are_years = |[first, last]: [u16; 2]| 1 <= first && first <= last && last <= 9999;
        let is_readable = contents.version == COUNTED_VERSION
            && numbers.iter().all(|number| *number <= MAX_TOTAL)
            && contents.years.is_none_or(are_years);
        (is_readable && Paging::of_bits(contents.bits).is_some()).then_some(contents)
    }

    /// Returns the rule by which the index groups positions in pages. A page is an entry with several positions.
    ///
    /// # Panics
    ///
    /// Panics if the description was neither created by [`new`](CountedContents::new) nor decoded by
    /// [`parse`](CountedContents::parse).
    pub fn paging(&self) -> Paging {
        Paging::of_bits(self.bits).expect("it was checked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_contents_come_back() {
        let about = CountsSources {
            games: Some(7),
            min_game: 5,
            max_ply: Some(30),
            inputs: vec!["a.pgn".to_owned()],
        };
        let contents = CountedContents {
            years: Some([1999, 2024]),
            has_ends: true,
            ..CountedContents::new(Paging::for_items(1 << 20), about)
        };
        assert_eq!(
            CountedContents::parse(&contents.write()),
            Some(contents.clone())
        );
        assert_eq!(contents.paging(), Paging::for_items(1 << 20));
        let of = |change: fn(&mut CountedContents)| {
            let mut other = contents.clone();
            change(&mut other);
            CountedContents::parse(&other.write())
        };
        let changes: [fn(&mut CountedContents); 8] = [
            |other| other.version = 1,
            |other| other.bits = 99,
            |other| other.positions = u64::MAX,
            |other| other.rows = MAX_TOTAL + 1,
            |other| other.games = Some(u64::MAX),
            |other| other.years = Some([9999, 0]),
            |other| other.years = Some([2000, 10_000]),
            |other| other.inputs = vec!["a".repeat(MAX_DESCRIPTION_BYTES)],
        ];
        for change in changes {
            assert_eq!(of(change), None);
        }
        assert_eq!(CountedContents::parse(b"{}"), None);
    }

    #[test]
    fn many_names_of_inputs_are_shortened() {
        let inputs_of = |inputs: Vec<String>| {
            let about = CountsSources {
                games: Some(u64::MAX),
                inputs,
                ..CountsSources::default()
            };
            let contents = CountedContents::new(Paging::for_items(1), about);
            let read = CountedContents::parse(&contents.write()).unwrap();
            assert_eq!(read.games, None);
            read.inputs
        };
        let many = inputs_of((0..1003).map(|number| number.to_string()).collect());
        assert_eq!(
            (many.len(), &*many[999], &*many[1000]),
            (1001, "999", "and 3 more")
        );
        assert_eq!(inputs_of(vec!["\u{1}".repeat(1 << 20)]), ["and 1 more"]);
    }

    /// Ties the normalization of names to the version of the layout, because an index contains hashes of normalized
    /// names. If this test fails because names are normalized in another way, increase `VERSION`, and `GENERATION` in
    /// `serve::cache`.
    #[test]
    fn names_are_folded_as_the_layout_requires() {
        let names = [
            "Weiß,  Jürgen",
            "Σίσυφος",
            "Işık",
            "İnan",
            "Nguye\u{302}\u{303}n",
            "Ἀΐδης",
            "Æther \\\"X\\\"",
        ];
        let folded = names.map(crate::pgn::folded);
        let of_layout = [
            "weiss, jürgen",
            "σίσυφοσ",
            "işik",
            "i\u{307}nan",
            "nguyễn",
            "ἀΐδησ",
            "æther \"x\"",
        ];
        assert_eq!((VERSION, folded), (8, of_layout.map(str::to_owned)));
    }

    #[test]
    fn contents_come_back() {
        let contents = Contents {
            paging: Paging::for_items(5_000_000),
            positions: 4_000_000,
            items: 5_000_000,
            names: 12,
            max_ply: None,
        };
        assert_eq!(contents.write(), b"8|16|4000000|5000000|12");
        for max_ply in [None, Some(30)] {
            let contents = Contents {
                max_ply,
                ..contents
            };
            assert_eq!(Contents::parse(&contents.write()), Some(contents));
        }
        for malformed in [
            "",
            "7",
            "7|16|1|1|1",
            "8|99|1|1|1",
            "8|16|1|1|x",
            "8|16|1|1|1|",
            "8|16|1|1|1|1|1",
        ] {
            assert_eq!(Contents::parse(malformed.as_bytes()), None, "{malformed}");
        }
        for (value, is_other) in [("7|16|1|1|1", true), ("8|16|1|1|x", false), ("x", false)] {
            assert_eq!(Contents::is_of_other_version(value.as_bytes()), is_other);
        }
    }
}
