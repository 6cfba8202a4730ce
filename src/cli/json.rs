//! Printing JSON documents.

use std::io::{self, Write};

use serde::Serialize;

/// Prints one document on a line of its own.
pub fn print(document: &impl Serialize) -> anyhow::Result<()> {
    super::print(&format!("{}\n", serde_json::to_string(document)?))
}

/// Prints a document that may be too long to be held in memory.
pub fn print_long(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = super::terminal::stdout();
    serde_json::to_writer(&mut out, document)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(super::not_printed)
}
