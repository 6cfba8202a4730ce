//! Writes a Polyglot book as an output of a run.

use std::{iter::once, path::Path};

use crate::{
    chess::position::{Variant, VariantChoice},
    error::{Diagnosis, Error, Result},
    formats::book::{BookMaker, begin_book},
    make_book::{
        budget::Budget,
        data::CollectedData,
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        report::{BookReport, Phase},
        sink::{Plan, Sink},
    },
    storage::output::{AtomicFile, Finished},
};

struct BookSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    file: AtomicFile,
}

/// Returns a plan for writing the book, or `None` if the options request no book. Adds the data that the book
/// needs to `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    _: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.bin.as_deref()?;
    needs.keys = true;
    needs.weights = true;
    needs.starts |= options.weights.minimax.is_some() || options.eval_weights.is_some();
    needs.numbered_variants = true;
    Some(Plan::of_counts(path, move || {
        refuse_unnumbered(options, path)?;
        Ok(BookSink {
            options,
            path,
            file: begin_book(path, options.force)?,
        })
    }))
}

/// Returns an error if the options name a variant for which the Polyglot format defines no number. The positions of
/// such a variant have no keys, so a book cannot contain them. The error names `path`, the path of the book.
fn refuse_unnumbered(options: &MakeBook, path: &Path) -> Result<()> {
    match options.variant {
        VariantChoice::Only(variant) if variant.number().is_none() => Err(Error::file(
            path,
            format!(
                "a book of {variant} cannot be made, because the Polyglot format has no number for this variant: make \
                 an index or a database"
            ),
        )),
        _ => Ok(()),
    }
}

impl BookSink<'_> {
    /// Applies `--weights`, `--minimax` and `--max-loss` to the book in `counted`, and returns the changed book.
    /// `--weights` computes weights from evaluations, `--minimax` lowers weights, and `--max-loss` drops moves that
    /// lose too much according to evaluations. Returns `None` if none of these options is given.
    fn adjusted<'a>(&self, counted: &CollectedData<'a>) -> Result<Option<BookMaker<'a>>> {
        let counts = counted.counts.bytes_in_memory() as usize;
        let memory = Budget::memory_left(self.options, counts, counted.held_bytes);
        let variant = self.options.variant.only().unwrap_or_default();
        let starts = || {
            let others = counted.games.starts.all();
            let others = others.filter_map(|start| match start {
                Ok((epd, _)) => variant.parse_fen(&epd).ok().map(Ok),
                Err(err) => Some(Err(err)),
            });
            once(Ok(variant.start())).chain(others)
        };
        let mut book = None;
        if let Some(rule) = &self.options.eval_weights {
            let weighed = counted.weighed();
            book = Some(weighed.with_evals(rule, starts(), &memory, self.path)?);
        }
        if self.options.weights.minimax.is_some() {
            let weighed = book.as_ref().unwrap_or_else(|| counted.weighed());
            book = Some(weighed.with_minimax(starts(), &memory, self.path)?);
        }
        let Some(max_loss) = &self.options.max_loss else {
            return Ok(book);
        };
        let weighed = book.as_ref().unwrap_or_else(|| counted.weighed());
        let book = weighed.without_losing_moves(max_loss, variant, &memory)?;
        if book.summary().entries == 0 && !self.options.allow_empty {
            let reason = Diagnosis::new(format!("{max_loss} leaves no move in the book"))
                .advise("allow a larger loss");
            return Err(Error::Empty { reason });
        }
        Ok(Some(book))
    }

    /// Returns the header of `book`, or `None` if the options request a book without a header. The header names the
    /// variants of the games and, from `counted`, the inputs and options with which the book was made.
    fn header(&self, counted: &CollectedData<'_>, book: &BookMaker<'_>) -> Result<Option<String>> {
        if !self.options.header {
            return Ok(None);
        }
        let met = counted.games.report.totals.tallied().variants;
        let variants: Vec<&str> = match self.options.variant {
            VariantChoice::Only(variant) => vec![variant.name()],
            VariantChoice::Auto if met.is_empty() => vec![Variant::Standard.name()],
            VariantChoice::Auto => met.keys().map(|met| met.name()).collect(),
        };
        let comment = self.options.comment.as_deref();
        let header = book.header(&variants, comment, &counted.provenance);
        header
            .map(Some)
            .map_err(|err| Error::format(self.path, err))
    }
}

impl Sink for BookSink<'_> {
    fn cost(&self) -> Option<(Phase, u64)> {
        let keeps_all = self.options.move_filter.min_game <= 1;
        Some((Phase::Book, if keeps_all { 310 } else { 130 }))
    }

    fn check(&self, counted: &CollectedData<'_>) -> Result<()> {
        counted.refuse_without_moves(self.options, false)?;
        self.header(counted, counted.weighed()).map(drop)
    }

    fn write(mut self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        self.options.progress.enter(Phase::Book);
        let made = self.adjusted(counted)?;
        let book = made.as_ref().unwrap_or_else(|| counted.weighed());
        let header = self.header(counted, book)?;
        book.write(
            header.as_deref(),
            &mut self.file,
            &self.options.memory.temp_dir,
        )?;
        let (summary, losses, minimax) = (book.summary(), book.losses(), book.minimax());
        let eval_weights = book.eval_weights();
        counted.games.report.book = Some(BookReport {
            path: self.path.to_owned(),
            entries: summary.entries,
            largest_weight: summary.largest_weight,
            scale: summary.scale,
            losses,
            minimax,
            eval_weights,
        });
        self.file.finish()
    }
}
