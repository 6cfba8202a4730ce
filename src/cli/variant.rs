//! Names of variants as values of options.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use polybook::position::{Variant, VariantChoice};

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
