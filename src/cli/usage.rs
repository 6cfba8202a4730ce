//! Errors in the use of the command line.

/// An error in the use of the command line that clap cannot detect. Contains the message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Returns an error if `option` contains the name of an option, which the user has given. The error message begins
    /// with this name, followed by `reason`.
    pub fn refuse(option: Option<&str>, reason: &str) -> Result<(), Usage> {
        match option {
            Some(option) => Err(Usage(format!("{option} {reason}"))),
            None => Ok(()),
        }
    }
}

/// The error message for `--explorer` without a directory, which older versions allowed.
pub const EXPLORER_DIR: &str = "--explorer needs the name of a directory: --explorer DIR writes the explorer's index, \
                                and --leveldb DIR writes an index for front-ends";
