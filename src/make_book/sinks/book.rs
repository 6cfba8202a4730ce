//! The Polyglot book among the outputs of a run.

use std::path::Path;

use crate::{
    book,
    error::{Error, Result},
    make_book::{
        counted::Counted,
        needs::Needs,
        options::MakeBook,
        progress::Phase,
        report::BookReport,
        sink::{Plan, Sink},
    },
    output::{AtomicFile, Finished},
    position::{Variant, VariantChoice},
};

struct BookSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    file: AtomicFile,
}

/// The book, if there is to be one.
pub(super) fn plan<'a>(options: &'a MakeBook, needs: &mut Needs) -> Option<Plan<'a>> {
    let path = options.bin.as_deref()?;
    needs.keys = true;
    needs.weights = true;
    needs.numbered_variants = true;
    Some(Plan::of_counts(path, move || {
        refuse_unnumbered(options, path)?;
        let may_replace = |old: &Path| book::check_replaceable(old, options.force);
        Ok(BookSink {
            options,
            path,
            file: AtomicFile::create_over(path, may_replace)?,
        })
    }))
}

/// Refuses a variant without keys.
fn refuse_unnumbered(options: &MakeBook, path: &Path) -> Result<()> {
    match options.variant {
        VariantChoice::Only(variant) if variant.number().is_none() => Err(Error::file(
            path,
            format!(
                "no book of {variant} can be made, because the Polyglot format has no number for it and so its positions \
                 have no keys; an index or a database can"
            ),
        )),
        _ => Ok(()),
    }
}

impl BookSink<'_> {
    /// The header, `None` if there is to be none.
    fn header(&self, counted: &Counted<'_>) -> Result<Option<String>> {
        if !self.options.header {
            return Ok(None);
        }
        let met = &counted.report.totals.variants;
        let variants: Vec<&str> = match self.options.variant {
            VariantChoice::Only(variant) => vec![variant.name()],
            VariantChoice::Auto if met.is_empty() => vec![Variant::Standard.name()],
            VariantChoice::Auto => met.keys().map(|met| met.name()).collect(),
        };
        let comment = self.options.comment.as_deref();
        let header = counted
            .weighed()
            .header(&variants, comment, &counted.provenance);
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

    fn check(&self, counted: &Counted<'_>) -> Result<()> {
        counted.refuse_without_moves(self.options, false)?;
        self.header(counted).map(drop)
    }

    fn write(mut self: Box<Self>, counted: &mut Counted<'_>) -> Result<Finished> {
        self.options.progress.enter(Phase::Book);
        let header = self.header(counted)?;
        let book = counted.weighed();
        book.write(header.as_deref(), &mut self.file, &self.options.temp_dir)?;
        let summary = book.summary();
        counted.report.book = Some(BookReport {
            path: self.path.to_owned(),
            entries: summary.entries,
            largest_weight: summary.largest_weight,
            scale: summary.scale,
        });
        self.file.finish()
    }
}
