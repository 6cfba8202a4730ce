//! Answers that were given lately: most requests of an explorer are for the same few positions.

use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use super::{answer::Content, asked::Asked};

/// How many bytes of answers are kept.
const KEPT: u64 = 16 << 20;

/// About the size of an answer, which only decides how much the cache reserves.
const USUAL: usize = 4 << 10;

/// Parts of the cache, each behind its own lock. With few of them the largest answers still fit into one.
const PARTS: usize = 8;

/// The latest answers, by what was asked.
pub(super) struct Given(Cache<Asked, Content, Size>);

#[derive(Clone)]
struct Size;

impl Weighter<Asked, Content> for Size {
    fn weight(&self, asked: &Asked, content: &Content) -> u64 {
        // The places of both in the tables, and what allocating takes.
        const BESIDES: usize = 256;
        (asked.size() + content.size() + BESIDES) as u64
    }
}

impl Default for Given {
    fn default() -> Given {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(KEPT as usize / USUAL)
            .weight_capacity(KEPT)
            .shards(PARTS)
            .build()
            .expect("all that it needs is given");
        Given(Cache::with_options(
            options,
            Size,
            Default::default(),
            Default::default(),
        ))
    }
}

impl Given {
    pub(super) fn get(&self, asked: &Asked) -> Option<Content> {
        self.0.get(asked)
    }

    /// Keeps an answer, which other answers may push out.
    pub(super) fn keep(&self, asked: &Asked, content: &Content) {
        self.0.insert(asked.clone(), content.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: usize) -> Asked {
        Asked {
            path: "/lichess".to_owned(),
            query: format!("moves={number}"),
            accept: String::new(),
        }
    }

    #[test]
    fn answers_are_kept_up_to_a_bound() {
        let given = Given::default();
        let content = Content::pgn(vec![b'x'; 10_000]);
        for number in 0..5_000 {
            given.keep(&asked(number), &content);
        }
        assert!(given.get(&asked(4_999)).is_some());
        let kept = (0..5_000).filter(|number| given.get(&asked(*number)).is_some());
        let kept = kept.count() as u64;
        assert!((500..=KEPT / 10_000).contains(&kept), "{kept}");
    }
}
