//! Reading, damaging and writing the files of a directory.

use std::{borrow::Cow, fs, path::Path};

/// Files by name. Unmodified files are borrowed.
pub type Files = Vec<(String, Cow<'static, [u8]>)>;

/// Returns all files of a directory, by name.
pub fn files_of(dir: &Path) -> Files {
    let mut files: Files = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let bytes: &'static [u8] = fs::read(entry.path()).unwrap().leak();
            (name, Cow::Borrowed(bytes))
        })
        .collect();
    files.sort();
    files
}

/// Writes files into a new directory.
pub fn write_files(dir: &Path, files: &Files) {
    fs::create_dir(dir).unwrap();
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// Modifies bytes of the files. Each group of four bytes in `edits` gives a file, an offset and a new value. For files whose
/// offsets do not fit into two bytes, the last byte also contributes to the offset.
pub fn edit(files: &mut Files, edits: &[u8]) {
    let count = files.len();
    for edit in edits.chunks_exact(4).take(32) {
        let (_, bytes) = &mut files[usize::from(edit[0] & 0x7f) % count];
        let place = match bytes.len() >> u16::BITS {
            0 => usize::from(u16::from_be_bytes([edit[1], edit[2]])) % (bytes.len() + 1),
            _ => {
                let share = u32::from_be_bytes([0, edit[1], edit[2], edit[3]]);
                ((share as u64 * bytes.len() as u64) >> 24) as usize
            }
        };
        if edit[0] & 0x80 != 0 {
            bytes.to_mut().truncate(place);
        } else if place < bytes.len() {
            bytes.to_mut()[place] ^= edit[3];
        }
    }
}
