//! Warnings about parts of an input that were skipped, such as games of unknown variants.

use std::{collections::BTreeMap, path::Path};

use super::{GameReader, Tags};
use crate::error::counted;

/// Data for warnings about parts of an input that were skipped because they do not belong to any game.
#[derive(Clone, Default)]
pub(crate) struct SkippedParts {
    /// A description of the files in a zip archive that were not read.
    pub files: Option<String>,
    /// The byte offset, in the decompressed input, of the first text that does not belong to any game.
    pub stray_text: Option<u64>,
    /// The byte offset, in the decompressed input, of the first line between tags that is not a tag pair.
    pub bad_tag: Option<u64>,
}

impl SkippedParts {
    /// Records the parts that `reader` skipped. `offset` is the offset in the decompressed input at which the text of
    /// `reader` begins.
    pub fn add_reader(&mut self, reader: &GameReader<'_>, offset: u64) {
        let place = |at: usize| offset + at as u64;
        self.stray_text = self.stray_text.or(reader.stray_text().map(place));
        self.bad_tag = self.bad_tag.or(reader.bad_tag().map(place));
    }

    /// Adds `later`, the skipped parts of a later section of the same input, to `self`. For each kind of part, keeps
    /// only the first offset.
    pub fn join(&mut self, later: SkippedParts) {
        self.files = self.files.take().or(later.files);
        self.stray_text = self.stray_text.or(later.stray_text);
        self.bad_tag = self.bad_tag.or(later.bad_tag);
    }

    /// Returns one warning for each kind of part that was skipped. The warnings name `file`.
    pub fn warnings(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        let at = |what, offset: Option<u64>| {
            offset.map(|offset| {
                format!("{file}: {what} was skipped, the first time at byte {offset}")
            })
        };
        let files = self.files.as_ref().map(|files| format!("{file}: {files}"));
        let warnings = [
            files,
            at("text that belongs to no game", self.stray_text),
            at("a line among the tags that is not a tag pair", self.bad_tag),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// The maximum number of unknown variants that warnings name. It is limited because every game of an input may name a
/// different variant.
pub(crate) const NAMED_VARIANTS: usize = 20;

/// The numbers of games that were skipped because their variant is unknown, one number for each unknown variant.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct UnknownVariants {
    games: BTreeMap<String, u64>,
    /// The number of games whose variants are not listed by name.
    more: u64,
}

impl UnknownVariants {
    /// Returns the name in the `Variant` tag of a game if polybook does not know the variant, otherwise `None`. The
    /// name is shortened to 40 characters.
    pub fn name(tags: &Tags<'_>) -> Option<String> {
        let is_unknown = tags.named_variant().is_err();
        is_unknown.then(|| {
            let name = String::from_utf8_lossy(tags.get(b"Variant").unwrap_or_default());
            name.trim().chars().take(40).collect()
        })
    }

    /// Adds `games` to the number of skipped games of the unknown variant `name`.
    pub fn add(&mut self, name: String, games: u64) {
        let is_full = self.games.len() >= NAMED_VARIANTS;
        match is_full && !self.games.contains_key(&name) {
            true => self.more += games,
            false => *self.games.entry(name).or_default() += games,
        }
    }

    /// Adds the numbers of games in `other` to those in `self`, variant by variant.
    pub fn join(&mut self, other: UnknownVariants) {
        for (name, games) in other.games {
            self.add(name, games);
        }
        self.more += other.more;
    }

    /// Returns one warning for each unknown variant. The warning states the number of its games.
    pub fn warnings(&self) -> Vec<String> {
        let named = self.games.iter();
        let named = named.map(|(name, games)| unknown_variant(Some(name), *games));
        let more = (self.more > 0).then(|| unknown_variant(None, self.more));
        named.chain(more).collect()
    }

    /// Returns all [warnings](UnknownVariants::warnings) as one string that can be appended to an error message. A
    /// semicolon precedes each warning.
    pub fn in_error(&self) -> String {
        let warnings = self.warnings().into_iter();
        warnings.map(|warning| format!("; {warning}")).collect()
    }
}

/// Returns a warning that `games` games of the unknown variant `name` were skipped. If `name` is `None`, the games
/// belong to several variants that are not named.
pub(crate) fn unknown_variant(name: Option<&str>, games: u64) -> String {
    let games = counted(games, "game");
    match name {
        Some(name) => format!(
            "{games} of the unknown variant \"{}\" left out; if these games are standard chess, remove the tag Variant",
            name.escape_debug()
        ),
        None => format!("{games} of further unknown variants left out"),
    }
}
