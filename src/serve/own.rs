//! Routes that are polybook's own: what the page needs besides the counts of a position.

use super::{
    Parameters, Refusal, Route, content::Content, response_cache::CacheKey, state::AppState,
};
use crate::explorer::SuggestField;

/// How many names are suggested if the request does not say.
const SUGGESTED: u32 = 8;

impl AppState {
    /// Names that a text may mean.
    pub(super) fn suggest(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let own = ["field", "text", "limit", "source"];
        let parameters = Parameters::parse_only(&key.query, &own)?;
        let field = parameters.choice("field", |name| match name {
            "player" => Some(SuggestField::Player),
            "event" => Some(SuggestField::Event),
            "opening" => Some(SuggestField::Opening),
            _ => None,
        })?;
        let missing = || Refusal::bad("field: missing; write player, event or opening");
        let text = parameters.text("text").unwrap_or_default();
        let limit = parameters.number("limit")?.unwrap_or(SUGGESTED) as usize;
        let source = parameters.filled("source")?;
        self.check_source(source)?;
        if let Some(needs) = self.explorer.lacks_games(source, "names")
            && field != Some(SuggestField::Opening)
        {
            return Err(Refusal::bad(needs.to_string()));
        }
        let found = self
            .explorer
            .suggest(field.ok_or_else(missing)?, text, limit, source)?;
        self.kept(key, Content::json(&found)?)
    }

    /// How many games each value of a filter would give.
    pub(super) fn facets(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Facets)?.query;
        let facets = self.explorer.facets(&query.line, &query.filters)?;
        self.kept(key, Content::json(&facets)?)
    }

    /// Results by the groups of ratings.
    pub(super) fn scores(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Scores)?.query;
        let scores = self.explorer.scores(&query.line, &query.filters)?;
        self.kept(key, Content::json(&scores)?)
    }
}
