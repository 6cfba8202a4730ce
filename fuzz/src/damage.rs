//! The files of a directory that is sound, to be damaged.

use std::{borrow::Cow, fs, path::Path};

/// Files by name. Those that nothing changed are not copied.
pub type Files = Vec<(String, Cow<'static, [u8]>)>;

/// All files of a directory, by name.
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

/// Bytes changed here and there: each four bytes say in which file, where, and to what. In a file that two bytes cannot
/// say the places of, the last one says both.
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
