//! PGN of every variant. The first byte chooses the variant and the second the options; the rest is the PGN file.

use polybook::position::{Variant, VariantChoice};

use super::{Room, choice, pgn_outputs::check};

pub fn run(data: &[u8]) {
    let (variant, rest) = choice(data);
    let (options, pgn) = choice(rest);
    let number = usize::from(variant) % (Variant::ALL.len() + 1);
    let variant = match Variant::ALL.get(number) {
        Some(&variant) => VariantChoice::Only(variant),
        None => VariantChoice::Auto,
    };
    check(&Room::new(), pgn, variant, options);
}
