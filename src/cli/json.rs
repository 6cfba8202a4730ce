//! Printing JSON documents.

use serde::Serialize;

/// Prints one document on a line of its own.
pub fn print(document: &impl Serialize) -> anyhow::Result<()> {
    super::print(&format!("{}\n", serde_json::to_string(document)?))
}
