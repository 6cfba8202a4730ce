//! A cache of recent answers. Most requests concern the same few positions.

use axum::{extract::Request, http::header};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use super::content::Content;

/// The maximum total size of the cached answers, in bytes.
const KEPT: u64 = 16 << 20;

/// The typical size of an answer in bytes, from which the cache estimates how many entries to reserve.
const USUAL: usize = 4 << 10;

/// The number of shards of the cache, each with its own lock. It is small enough that the largest answers fit into one
/// shard.
const PARTS: usize = 8;

/// A request and the accepted media types, which identify an answer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) accept: String,
}

/// The recent answers. New answers evict old ones when the cache is full.
pub(super) type ResponseCache = Cache<CacheKey, Content, Size>;

/// Measures the size of cache entries.
#[derive(Clone)]
pub(super) struct Size;

impl CacheKey {
    pub(super) fn of(request: &Request) -> CacheKey {
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept = accept.filter_map(|value| value.to_str().ok());
        CacheKey {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept: accept.collect::<Vec<_>>().join(","),
        }
    }

    /// Returns `true` if the client names a media type as acceptable, and no less than `other`.
    pub(super) fn prefers(&self, media_type: &str, other: &str) -> bool {
        let quality = self.quality(media_type);
        quality > 0.0 && quality >= self.quality(other)
    }

    /// Returns the quality value of a media type that the client names, from 0 (not acceptable) to 1; 0 if the client
    /// does not name the type.
    fn quality(&self, media_type: &str) -> f32 {
        let mut ranges = self.accept.split(',').map(|range| range.split(';'));
        let range = ranges.find_map(|mut range| {
            let name = range.next()?.trim();
            name.eq_ignore_ascii_case(media_type).then_some(range)
        });
        let quality = range.map(|mut range| {
            range.find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                name.trim().eq_ignore_ascii_case("q").then_some(value)
            })
        });
        match quality {
            None => 0.0,
            Some(None) => 1.0,
            Some(Some(quality)) => quality.trim().parse().unwrap_or(1.0),
        }
    }
}

impl Weighter<CacheKey, Content> for Size {
    fn weight(&self, key: &CacheKey, content: &Content) -> u64 {
        // The entries in the tables of the cache, and the overhead of allocations.
        const BESIDES: usize = 256;
        let asked = key.path.len() + key.query.len() + key.accept.len();
        (asked + content.size() + BESIDES) as u64
    }
}

/// Creates an empty cache.
pub(super) fn response_cache() -> ResponseCache {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(KEPT as usize / USUAL)
        .weight_capacity(KEPT)
        .shards(PARTS)
        .build()
        .expect("all that it needs is given");
    Cache::with_options(options, Size, Default::default(), Default::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: usize) -> CacheKey {
        CacheKey {
            path: "/lichess".to_owned(),
            query: format!("moves={number}"),
            accept: String::new(),
        }
    }

    #[test]
    fn the_size_of_the_cache_is_bounded() {
        let cache = response_cache();
        let content = Content::pgn(vec![b'x'; 10_000]);
        for number in 0..5_000 {
            cache.insert(asked(number), content.clone());
        }
        assert!(cache.get(&asked(4_999)).is_some());
        let kept = (0..5_000).filter(|number| cache.get(&asked(*number)).is_some());
        let kept = kept.count() as u64;
        assert!((500..=KEPT / 10_000).contains(&kept), "{kept}");
    }
}
