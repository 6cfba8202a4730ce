//! A request as the answers need it.

/// What was asked, and in which form the answer is wanted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) accept: String,
}

impl Asked {
    pub(super) fn accepts(&self, media_type: &str) -> bool {
        self.accept.contains(media_type)
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        self.path.len() + self.query.len() + self.accept.len()
    }
}
