//! Files on their way, with what is not written yet.

use std::{
    io::{BufWriter, IntoInnerError},
    path::PathBuf,
};

use crate::{
    error::{At, Result},
    output::{AtomicFile, Finished},
};

/// Writes what is left, and flushes the file to the disk.
pub(super) fn finish(out: BufWriter<AtomicFile>) -> Result<Finished> {
    let path = target(&out);
    let file = out.into_inner().map_err(IntoInnerError::into_error);
    file.at(path, "write")?.finish()
}

/// The file that errors name.
pub(super) fn target(out: &BufWriter<AtomicFile>) -> PathBuf {
    out.get_ref().target().to_owned()
}
