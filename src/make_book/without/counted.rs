//! Stands in for `counted.rs` where the feature `parquet` is left out: all inputs are games then.

use super::{MakeBook, sinks::Plan};
use crate::{
    error::Result,
    pgn::Input,
    provenance::{Games, Provenance},
};

pub(super) struct CountedInputs;

impl CountedInputs {
    pub(super) fn open(_run: &MakeBook) -> Result<CountedInputs> {
        Ok(CountedInputs)
    }

    pub(super) fn adapted(&self, run: &MakeBook) -> Result<MakeBook> {
        Ok(run.clone())
    }

    pub(super) fn refuse_for_games(&self, _plans: &[Plan<'_>]) -> Result<()> {
        Ok(())
    }

    pub(super) fn has(&self, _input: usize) -> bool {
        false
    }

    pub(super) fn size(&self, _number: usize, input: &Input) -> Option<u64> {
        input.size()
    }

    pub(super) fn provenance(&self, run: &MakeBook, games: Games) -> Provenance {
        Provenance {
            inputs: run.inputs.iter().map(Input::name).collect(),
            games: Some(games),
            options: run.option_text(),
        }
    }
}
