//! Errors in the use of the command line.

/// An error in the command line that clap cannot detect. It contains the message for the user. The exit status of the
/// program is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Returns an error if `option` is `Some`. `option` contains the name of an option that the user gave but must not
    /// use here. The error message consists of this name and `reason`.
    pub fn refuse(option: Option<&str>, reason: &str) -> Result<(), Usage> {
        match option {
            Some(option) => Err(Usage(format!("{option} {reason}"))),
            None => Ok(()),
        }
    }
}

/// The error message if the user gave `--explorer` without a directory, which older versions of polybook accepted.
pub const EXPLORER_DIR: &str = "--explorer needs the name of a directory: --explorer DIR writes the explorer's index, \
                                and --leveldb DIR writes an index for front-ends";
