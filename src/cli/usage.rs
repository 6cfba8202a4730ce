//! Errors in the use of the command line.

/// An error in the command line that clap cannot detect, with the message for the user. It ends the program with the
/// exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// Returns an error if the user gave an option that is not allowed here. `option` is the name of this option, or
    /// `None` if the user did not give it. The error message consists of the name and `reason`.
    pub fn refuse(option: Option<&str>, reason: &str) -> Result<(), Usage> {
        match option {
            Some(option) => Err(Usage(format!("{option} {reason}"))),
            None => Ok(()),
        }
    }
}

/// The error message for `--explorer` without a directory, which older versions of polybook accepted.
pub const EXPLORER_DIR: &str = "--explorer needs the name of a directory: --explorer DIR writes the explorer's index, \
                                and --leveldb DIR writes an index for front-ends";
