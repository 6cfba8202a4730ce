//! Names of variants as values of options.

use std::{ffi::OsStr, path::Path};

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use polybook::{
    book::Book,
    index::Index,
    obs::Obs,
    position::{Variant, VariantChoice},
};

use super::input;

/// Takes any text, and lists the usual names for help and completion. Variants have more spellings than these.
#[derive(Clone, Debug)]
struct Names {
    with_auto: bool,
}

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Variant::ALL.into_iter().map(|variant| match variant {
            // Better known than the name of the protocol.
            Variant::Standard => "standard",
            other => other.name(),
        });
        let auto = self.with_auto.then_some("auto");
        Some(Box::new(names.chain(auto).map(PossibleValue::new)))
    }
}

/// Reads the name of a variant.
pub fn name() -> impl TypedValueParser<Value = Variant> {
    Names { with_auto: false }.try_map(|name| name.parse::<Variant>())
}

/// Reads the name of a variant, or `auto` for each game's own.
pub fn name_or_auto() -> impl TypedValueParser<Value = VariantChoice> {
    Names { with_auto: true }.try_map(|name| name.parse::<VariantChoice>())
}

/// The variants in the header of a book, empty without one.
pub fn of_book(book: &Book) -> Vec<String> {
    let header = book.header();
    header.map_or_else(|_| Vec::new(), |header| header.variants)
}

/// The variant in a database.
pub fn of_database(obs: &Obs) -> Vec<String> {
    vec![obs.info().variant.clone()]
}

/// Refuses a variant that a file does not list, as positions of several variants can share a key. A file without a
/// known variant accepts any.
pub fn refuse_other(argument: &Path, own: &[String], asked: Variant) -> anyhow::Result<()> {
    let known: Vec<Variant> = own.iter().filter_map(|name| name.parse().ok()).collect();
    if known.is_empty() || known.iter().any(|own| own.is_played_like(asked)) {
        return Ok(());
    }
    anyhow::bail!(
        "{}: is for {}, not for {}: use --variant with a variant of the file",
        input::name(argument),
        own.join(", "),
        asked.name()
    )
}

/// The same for an index without the explorer's data. One of several variants answers only for those with keys of
/// their own.
pub fn refuse_other_of_index(index: &Index, asked: Variant) -> anyhow::Result<()> {
    match index.variant().only() {
        Some(own) => refuse_other(index.path(), &[own.name().to_owned()], asked),
        None if asked.number().is_none_or(|number| number == 0) => anyhow::bail!(
            "{}: has games of several variants whose positions share keys: make it again with --explorer, which keeps \
             them apart",
            index.path().display()
        ),
        None => Ok(()),
    }
}
