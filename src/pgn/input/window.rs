//! Determines the window size of zstd files, which is the memory that a decoder needs.

use std::path::Path;

use crate::error::{Error, Result};

/// Checks that decompressing a zstd file takes at most `memory` bytes. The first bytes of the file, `start`, state
/// the window size of its first frame. The decoder allocates this size, rounded up to a power of two. `divisor` is
/// `Input::unpacking_divisor` of the input.
///
/// # Errors
///
/// Returns an error that says how much memory is needed.
pub(super) fn refuse_large_window(
    path: &Path,
    start: &[u8],
    memory: usize,
    divisor: u8,
) -> Result<()> {
    let Some(window) = zstd_window(start) else {
        return Ok(());
    };
    let unpacking = window.checked_next_power_of_two().unwrap_or(u64::MAX);
    if unpacking <= memory as u64 {
        return Ok(());
    }
    Err(Error::too_large(
        path,
        format!(
            "unpacking this zstd file takes {} MiB of memory, but polybook may use only {} MiB of memory for \
             unpacking: use at least --memory {}MiB, or unpack the file first",
            unpacking >> 20,
            memory >> 20,
            (unpacking >> 20).saturating_mul(divisor.into()),
        ),
    ))
}

/// Returns the window size in bytes that the first frame of a zstd file states (RFC 8878, 3.1.1.1). `start` contains
/// the first bytes of the file. Returns `None` if these bytes are not the start of a zstd file.
pub(super) fn zstd_window(start: &[u8]) -> Option<u64> {
    let [0x28, 0xb5, 0x2f, 0xfd, descriptor, rest @ ..] = start else {
        return None;
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = rest.first()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the whole content.
    let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let field = rest.get(dictionary..dictionary + size)?;
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(field);
    let content = u64::from_le_bytes(bytes);
    Some(if size == 2 { content + 256 } else { content })
}

#[cfg(all(test, feature = "compression"))]
mod tests {
    use std::io::Write;

    use super::*;

    /// Tests that a zstd frame with the largest possible window is rejected, and that its size is calculated without
    /// an overflow.
    #[test]
    fn the_largest_windows_are_refused() {
        let all_of_content = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8]].concat();
        let largest = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xff];
        for (start, window) in [
            (&all_of_content[..], u64::MAX),
            (&largest, (1 << 41) / 8 * 15),
        ] {
            assert_eq!(zstd_window(start), Some(window));
            let err = refuse_large_window(Path::new("a.zst"), start, 1 << 30, 2).unwrap_err();
            assert!(err.to_string().contains("unpack the file first"), "{err}");
        }
    }

    #[test]
    fn the_first_bytes_give_the_window() {
        for log in [10, 17, 24, 27] {
            let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
            packer.window_log(log).unwrap();
            // The encoder does not know the length of the content, so it writes a window size.
            packer.write_all(&[0; 1000]).unwrap();
            packer.flush().unwrap();
            let packed = packer.finish().unwrap();
            assert_eq!(zstd_window(&packed), Some(1 << log), "{log}");
        }
        for size in [10, 300, 70_000] {
            let packed = zstd::bulk::compress(&vec![7; size], 3).unwrap();
            assert_eq!(zstd_window(&packed), Some(size as u64));
        }
        assert_eq!(zstd_window(b"[Event \"x\"]"), None);
    }

    #[test]
    fn large_windows_are_refused() {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packer.window_log(27).unwrap();
        packer.write_all(&[0; 1000]).unwrap();
        packer.flush().unwrap();
        let packed = packer.finish().unwrap();
        let path = Path::new("x.zst");
        assert!(refuse_large_window(path, &packed, 1 << 27, 2).is_ok());
        let err = refuse_large_window(path, &packed, (1 << 27) - 1, 2).unwrap_err();
        assert!(err.to_string().contains("128 MiB"), "{err}");
    }
}
