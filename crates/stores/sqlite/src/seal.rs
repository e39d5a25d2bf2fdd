//! The last line of a backup: a digest of everything before it.
//!
//! SQLite reads as many pages as the first one says, and passes over what follows, so a sealed file
//! is a database like any other. A file that was changed by a single bit does not fit its seal.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// What a seal begins with.
const MARK: &str = "\nantiphon-backup-1 sha256:";

/// How long it is, in bytes: the mark, the digest, the end of the line.
const SEAL_BYTES: usize = MARK.len() + 64 + 1;

/// How much is read at a time.
const PIECE_BYTES: usize = 1024 * 1024;

/// What became of the seal of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It is as it was made: `bytes` long without the seal.
    Whole { bytes: u64 },
    /// It was changed since.
    Broken,
    /// It has none.
    None { bytes: u64 },
}

/// Seals the file at `path`, which is on the disk then. Says how long it is.
pub(crate) fn seal(path: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let digest = digest(&mut file, u64::MAX)?;
    file.write_all(line(&digest).as_bytes())?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Looks at the seal of a file.
pub(crate) fn look(path: &Path) -> io::Result<Seal> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(bytes) = length.checked_sub(SEAL_BYTES as u64) else {
        return Ok(Seal::None { bytes: length });
    };
    let mut found = [0; SEAL_BYTES];
    file.seek(SeekFrom::Start(bytes))?;
    file.read_exact(&mut found)?;
    if !found.starts_with(MARK.as_bytes()) {
        return Ok(Seal::None { bytes: length });
    }
    file.rewind()?;
    let expected = line(&digest(&mut file, bytes)?);
    Ok(if found == *expected.as_bytes() { Seal::Whole { bytes } } else { Seal::Broken })
}

fn line(digest: &str) -> String {
    format!("{MARK}{digest}\n")
}

/// The digest of the next `limit` bytes, or of all there are.
fn digest(file: &mut File, limit: u64) -> io::Result<String> {
    let (mut rest, mut digest, mut piece) = (file.take(limit), Sha256::new(), vec![0; PIECE_BYTES]);
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
