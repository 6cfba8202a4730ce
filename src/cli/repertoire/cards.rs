//! `polybook repertoire cards`: writes the positions of a repertoire as flash cards for Anki.

use std::path::PathBuf;

use polybook::{position::Variant, practice::write_cards, repertoire::MoveComments};
use serde_json::json;
use shakmaty::Color;

use super::Opener;
use crate::cli::{
    Context,
    input::{check_output, output_name},
    plural,
    position::{self, UntaggedArg},
    resources::ResourceArgs,
    terminal::{Output, OutputArgs},
};

/// Write the positions of a repertoire as flash cards for Anki, in CSV
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The front of a card shows the board and the moves before it. The back shows the moves of the repertoire and, if the repertoire is
PGN, their comments. In Anki, choose File, Import, and the file; Anki reads the separator and the columns from the first lines.
If you import a changed file again, Anki updates the cards with the same front.

Example:
  polybook repertoire cards white.pgn --color white --out white.csv")]
pub struct Args {
    /// The repertoire: a PGN file, a book or an OOBS database
    #[arg(value_name = "REPERTOIRE")]
    repertoire: PathBuf,

    /// The side of the repertoire
    #[arg(long, alias = "colour", ignore_case = true, value_parser = position::color())]
    color: Color,

    #[command(flatten)]
    output: OutputArgs,

    /// Use the rules of this variant [default: the variant of the file]
    #[arg(long, value_name = "NAME", value_parser = position::variant())]
    variant: Option<Variant>,

    #[command(flatten)]
    untagged: UntaggedArg,

    /// Print a report about the file --out as a JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    resources: ResourceArgs,
}

pub fn run(args: &Args, context: Context) -> anyhow::Result<()> {
    let out = &args.output.out;
    check_output(out, &[&args.repertoire], args.json)?;
    let mut file = Output::create(out, args.output.force)?;
    let opener = Opener::new(args.variant, &args.untagged, &args.resources, context)?;
    let (deck, repertoire) = opener.deck(&args.repertoire, args.variant, args.color)?;
    let comments = repertoire
        .pgn()
        .map(|pgn| opener.with_options(None, |options| MoveComments::of(pgn, options)));
    let comments = comments.transpose()?.unwrap_or_default();
    let comment = |pos: &_, mv| comments.of_move(pos, mv).map(str::to_owned);
    let path = file.target().to_owned();
    let cards = write_cards(&deck, &comment, &mut file, &path)?;
    file.commit()?;
    let path = output_name(out);
    let text = format!("{path}: {}\n", plural(cards, "card"));
    context.report(&text, args.json, json!({"path": path, "cards": cards}))
}
