//! Inputs that are one file. Where the command line has `-`, standard input is copied to a temporary file first,
//! because books and databases are read from any place.

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::Context as _;
use tempfile::TempPath;

use super::{errors::Usage, signals};

/// Where the copy of standard input is.
static COPY: OnceLock<PathBuf> = OnceLock::new();

/// A file that a command reads.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    /// Removes the copy of standard input.
    _copy: Option<TempPath>,
}

impl InputFile {
    /// The file that an argument means.
    pub fn of(argument: &Path) -> anyhow::Result<InputFile> {
        if argument != Path::new("-") {
            return Ok(InputFile {
                path: argument.to_owned(),
                _copy: None,
            });
        }
        if COPY.get().is_some() {
            return Err(Usage("- is given twice, and there is one standard input".to_owned()).into());
        }
        let copy = copied().context("cannot copy standard input to a temporary file")?;
        Ok(InputFile {
            path: copy.to_path_buf(),
            _copy: Some(copy),
        })
    }

    /// The file to open.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn copied() -> io::Result<TempPath> {
    let file = tempfile::Builder::new().prefix("polybook-").tempfile()?;
    signals::remove_at_end(file.path());
    COPY.get_or_init(|| file.path().to_owned());
    let (mut file, path) = file.into_parts();
    io::copy(&mut io::stdin().lock(), &mut file)?;
    Ok(path)
}

/// How messages name an argument.
pub fn name(argument: &Path) -> String {
    if argument == Path::new("-") {
        "standard input".to_owned()
    } else {
        argument.display().to_string()
    }
}

/// How messages name an output.
pub fn output_name(argument: &Path) -> String {
    if argument == Path::new("-") {
        "standard output".to_owned()
    } else {
        argument.display().to_string()
    }
}

/// A message that names standard input instead of its copy.
pub fn with_given_names(message: &str) -> String {
    match COPY.get() {
        Some(copy) => message.replace(&*copy.to_string_lossy(), "standard input"),
        None => message.to_owned(),
    }
}
