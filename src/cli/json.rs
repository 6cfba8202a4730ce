//! Printing JSON documents.

/// Prints one document on a line of its own.
pub fn print(document: &serde_json::Value) -> anyhow::Result<()> {
    super::print(&format!("{document}\n"))
}
