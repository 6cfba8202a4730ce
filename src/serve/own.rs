//! Routes that Lichess's explorer does not have, which the page needs besides the counts of a position.

use super::{
    Parameters, Refusal, Route, content::Content, response_cache::CacheKey, state::AppState,
};
use crate::explorer::SuggestField;

/// The default number of suggested names.
const SUGGESTED: u32 = 8;

impl AppState {
    /// Returns the names that best match a text.
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

    /// Returns the number of games that each value of a filter would select.
    pub(super) fn facets(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Facets)?.query;
        let facets = self.explorer.facets(&query.line, &query.filters)?;
        self.kept(key, Content::json(&facets)?)
    }

    /// Returns the results by rating group.
    pub(super) fn scores(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Scores)?.query;
        let scores = self.explorer.scores(&query.line, &query.filters)?;
        self.kept(key, Content::json(&scores)?)
    }

    /// Returns the openings of the games of a position.
    pub(super) fn openings(&self, key: &CacheKey) -> Result<Content, Refusal> {
        let query = self.request(key, Route::Openings)?.query;
        let openings = self.explorer.openings(&query.line, &query.filters)?;
        self.kept(key, Content::json(&openings)?)
    }
}
