//! `polybook pgheader`: prints and changes the header of a book. Its options and output are those of the program
//! `pgheader`, which the specification of the header format describes.

use std::path::{Path, PathBuf};

use polybook::book::header::{self, HeaderError};

use super::{input::file_of, terminal::print, usage::Usage};

/// Print, add, change or delete the header of a book
#[derive(clap::Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "\
Without -s, -S or -d, the header is changed: -v replaces the list of variants, and -c replaces the comment. A book without a
header gets one with the variant \"normal\" and a default comment. -c and -d remove the checksum that polybook writes.

Examples:
  polybook pgheader -s book.bin
  polybook pgheader book.bin -c \"My book\\nFree for all\"
  polybook pgheader book.bin -v normal,fischerandom"
)]
pub struct Args {
    /// The book; - is standard input, from which a header can only be printed
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print the options, as the document of the header format describes them
    #[arg(short = 'h')]
    options: bool,

    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    /// Print the known variants
    #[arg(short = 'l')]
    list: bool,

    /// Print the header
    #[arg(short = 's')]
    show: bool,

    /// Print the raw header
    #[arg(short = 'S')]
    show_data: bool,

    /// Delete the header
    #[arg(short = 'd')]
    delete: bool,

    /// Write this comma-separated list of variants into the header
    #[arg(short = 'v', value_name = "VARIANTS")]
    variants: Option<String>,

    /// Accept variants that polybook does not know
    #[arg(short = 'f')]
    force: bool,

    /// Write this text as the comment of the header; the two characters \n mean a line break
    #[arg(short = 'c', value_name = "COMMENT")]
    comment: Option<String>,
}

/// The text that `pgheader -h` prints. It is the help of the original program `pgheader`, taken from the specification
/// of the header format.
const OPTIONS: &str = "\
pgheader <options> [<file>]
Update a header, adding a default one if necessary
<file>            input file
Options:
-h                print this help
-l                print the known variant list
-s                print the header
-S                print the header data
-d                delete the header
-v  <variants>    comma separated list of supported variants
-f                force inclusion of unknown variants
-c  <comment>     free format string, may contain newlines encoded as
                  two character strings \"\\n\"
";

pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.options {
        return print(OPTIONS);
    }
    if args.list {
        let variants = header::KNOWN_VARIANTS.join("\n");
        return print(&format!("Known variants:\n{variants}\n"));
    }
    let Some(file) = &args.file else {
        return Err(
            Usage("no book is given: give the file (-h lists the options)".to_owned()).into(),
        );
    };
    if args.show || args.show_data {
        let input = file_of(file)?;
        return print(&if args.show {
            header_text(&input)?
        } else {
            header_data(&input)?
        });
    }
    if file == Path::new("-") {
        let usage = "pgheader changes a file, so it cannot read standard input: give the file";
        return Err(Usage(usage.to_owned()).into());
    }
    if args.delete {
        return Ok(header::remove(file)?);
    }
    update(args, file)
}

/// Formats the variants and the comment in the header of the book `file`. The layout follows the examples in the
/// specification of the header format.
fn header_text(file: &Path) -> anyhow::Result<String> {
    let text = header::read(file)?;
    let header = header::parse(&text).map_err(|source| malformed(file, source))?;
    Ok(format!(
        "Variants supported:\n{}\nComment:\n{}\n",
        header.variants.join("\n"),
        header.comment
    ))
}

fn header_data(file: &Path) -> anyhow::Result<String> {
    let data = header::read_raw(file)?;
    if data.is_empty() {
        return Err(malformed(file, HeaderError::NoHeader).into());
    }
    Ok(cells(&data))
}

fn malformed(file: &Path, source: HeaderError) -> polybook::Error {
    polybook::Error::Format {
        path: file.to_owned(),
        source: source.into(),
    }
}

fn update(args: &Args, file: &Path) -> anyhow::Result<()> {
    let variants = args.variants.as_deref().map(variants);
    if let (Some(variants), false) = (&variants, args.force)
        && let Some(unknown) = variants.iter().find(|name| !header::known_variant(name))
    {
        anyhow::bail!(
            "{}: the variant \"{unknown}\" is unknown: -l lists the known variants, -f accepts any variant",
            file.display()
        );
    }
    let comment = args.comment.as_ref().map(|text| text.replace("\\n", "\n"));
    header::update(file, variants.as_deref(), comment.as_deref())?;
    Ok(())
}

/// Parses a comma-separated list of variant names. Removes spaces and converts the names to lower case.
fn variants(list: &str) -> Vec<String> {
    list.to_lowercase()
        .replace(' ', "")
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Formats the bytes of a header as a table with eight bytes per line. A byte is shown as its ASCII character or as an
/// escape such as `\n`, right-aligned in a column of five characters.
fn cells(data: &[u8]) -> String {
    let mut text = String::new();
    for row in data.chunks(8) {
        for byte in row {
            let cell = match byte {
                b'\n' => "\\n".to_owned(),
                0 => "\\0".to_owned(),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\{byte:03o}"),
            };
            text.push_str(&format!("{cell:>5}"));
        }
        text.push('\n');
    }
    text
}
