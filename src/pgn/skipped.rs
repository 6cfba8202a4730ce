//! Warnings about parts of an input that are not read.

use std::path::Path;

use super::GameReader;

/// The parts of an input that were skipped because they are not games.
#[derive(Clone, Default)]
pub(crate) struct SkippedParts {
    /// A description of the files of a zip archive that are not read.
    pub files: Option<String>,
    /// The offset of the first text that does not belong to any game, in the unpacked input, in bytes.
    pub stray_text: Option<u64>,
    /// The offset of the first line among tags that is not a tag pair, in the unpacked input, in bytes.
    pub bad_tag: Option<u64>,
}

impl SkippedParts {
    /// Adds the parts that a reader of games skipped. `offset` is the offset of the reader's text in the decompressed
    /// input.
    pub fn add_reader(&mut self, reader: &GameReader<'_>, offset: u64) {
        let place = |at: usize| offset + at as u64;
        self.stray_text = self.stray_text.or(reader.stray_text().map(place));
        self.bad_tag = self.bad_tag.or(reader.bad_tag().map(place));
    }

    /// Adds the parts that were skipped in a later section of the same input. Only the first offset of each kind is
    /// kept.
    pub fn join(&mut self, later: SkippedParts) {
        self.files = self.files.take().or(later.files);
        self.stray_text = self.stray_text.or(later.stray_text);
        self.bad_tag = self.bad_tag.or(later.bad_tag);
    }

    /// Returns a warning for each kind of part that was skipped. Each warning names the file.
    pub fn warnings(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        let at = |what, offset: Option<u64>| {
            offset.map(|offset| format!("{file}: {what} was skipped, first at byte {offset}"))
        };
        let files = self.files.as_ref().map(|files| format!("{file}: {files}"));
        let warnings = [
            files,
            at("text that belongs to no game", self.stray_text),
            at("a line among the tags is not a tag pair and", self.bad_tag),
        ];
        warnings.into_iter().flatten().collect()
    }
}
