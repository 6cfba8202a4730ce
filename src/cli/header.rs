//! The header of a book that is being made.

/// The header of a book that is being made.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Header of the book")]
pub struct HeaderArgs {
    /// Text for the book's header, instead of the book's origin
    #[arg(long, value_name = "TEXT", conflicts_with = "no_header")]
    pub comment: Option<String>,

    /// Write a book without a header
    #[arg(long)]
    pub no_header: bool,
}

impl HeaderArgs {
    /// The option that was given.
    pub fn given(&self) -> Option<&'static str> {
        match self.no_header {
            true => Some("--no-header"),
            false => self.comment.is_some().then_some("--comment"),
        }
    }
}
