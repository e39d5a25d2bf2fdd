//! The last line of a backup: a checksum of everything before it.
//!
//! SQLite reads only the pages that the header counts, so a file with the extra line is a valid
//! database. A change of a single bit makes the checksum wrong.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Start of the line.
const LINE_START: &str = "\nantiphon-backup-1 sha256:";

/// Length of the line, in bytes: the start, the digest, the line break.
const LINE_BYTES: usize = LINE_START.len() + 64 + 1;

/// Bytes read at a time.
const READ_BYTES: usize = 1024 * 1024;

/// The checksum of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The file is unchanged: `bytes` long without the checksum.
    Valid { bytes: u64 },
    /// The file was changed.
    Wrong,
    /// The file has no checksum.
    Missing { bytes: u64 },
}

/// Appends the checksum to the file at `path` and syncs it. Returns its new length.
pub(crate) fn append_checksum(path: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let digest = digest(&mut file, u64::MAX)?;
    file.write_all(line(&digest).as_bytes())?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Verifies the checksum of a file.
pub(crate) fn verify_checksum(path: &Path) -> io::Result<Checksum> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(bytes) = length.checked_sub(LINE_BYTES as u64) else {
        return Ok(Checksum::Missing { bytes: length });
    };
    let mut found = [0; LINE_BYTES];
    file.seek(SeekFrom::Start(bytes))?;
    file.read_exact(&mut found)?;
    if !found.starts_with(LINE_START.as_bytes()) {
        return Ok(Checksum::Missing { bytes: length });
    }
    file.rewind()?;
    let expected = line(&digest(&mut file, bytes)?);
    Ok(if found == *expected.as_bytes() { Checksum::Valid { bytes } } else { Checksum::Wrong })
}

fn line(digest: &str) -> String {
    format!("{LINE_START}{digest}\n")
}

/// The digest of the next `limit` bytes, or of all that are left.
fn digest(file: &mut File, limit: u64) -> io::Result<String> {
    let (mut rest, mut digest, mut piece) = (file.take(limit), Sha256::new(), vec![0; READ_BYTES]);
    loop {
        let length = rest.read(&mut piece)?;
        if length == 0 {
            break;
        }
        digest.update(&piece[..length]);
    }
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
