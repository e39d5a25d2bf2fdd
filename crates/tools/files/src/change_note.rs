//! Tells later whether a change of a file happened: digests of the file before and after it, recorded with
//! the start of the call.
//!
//! | the file now             | the change                                                      |
//! |--------------------------|-----------------------------------------------------------------|
//! | is as it would be after  | happened                                                        |
//! | is as it was before      | did not happen: it runs, and only from that same state           |
//! | is anything else         | unknown                                                         |

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use antiphon_core::port::CutOffOutcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How much of a SHA-256 digest is recorded, in bytes. Enough to tell states of one file apart.
const DIGEST_BYTES: usize = 16;

/// What is recorded before a file is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeNote {
    before: FileDigest,
    after: FileDigest,
    /// The task had read the file as it was before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    seen: bool,
}

/// Digest of the name and the contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FileDigest(String);

/// Whether the task had read the file before it changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Yes,
    No,
}

/// How a file compares with a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    AsBefore,
    AsAfter,
    Different,
}

impl FileDigest {
    /// The digest of a file that does not exist.
    pub(crate) fn of_no_file(name: &Path) -> Self {
        Self::finished(Self::begun(name, 0))
    }

    /// The digest of a file with these contents.
    pub(crate) fn of_file<'a>(name: &Path, contents: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Self::begun(name, 1);
        for part in contents {
            digest.update(part);
        }
        Self::finished(digest)
    }

    fn begun(name: &Path, exists: u8) -> Sha256 {
        let name = name.as_os_str().as_bytes();
        Sha256::new()
            .chain_update((name.len() as u64).to_le_bytes())
            .chain_update(name)
            .chain_update([exists])
    }

    fn finished(digest: Sha256) -> Self {
        let mut text = String::with_capacity(2 * DIGEST_BYTES);
        for byte in digest.finalize().iter().take(DIGEST_BYTES) {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }
}

impl ChangeNote {
    pub(crate) fn new(before: FileDigest, after: FileDigest, seen: Seen) -> Self {
        Self { before, after, seen: seen == Seen::Yes }
    }

    /// Reads a recorded note. `None` when there is none, or one that another version wrote.
    pub(crate) fn read(recorded: Option<&Value>) -> Option<Self> {
        Self::deserialize(recorded?).ok()
    }

    /// The note as it is recorded.
    pub(crate) fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }

    pub(crate) fn compare(&self, now: &FileDigest) -> Compared {
        if *now == self.after {
            Compared::AsAfter
        } else if *now == self.before {
            Compared::AsBefore
        } else {
            Compared::Different
        }
    }

    /// Whether the file is still as it was when the note was made.
    pub(crate) fn is_before(&self, now: &FileDigest) -> bool {
        *now == self.before
    }

    pub(crate) fn was_seen(&self) -> bool {
        self.seen
    }
}

/// The outcome for a file that is neither as before nor as after the call.
pub(crate) fn different(name: &str) -> CutOffOutcome {
    let known = format!(
        "{name} is neither as it was before the call nor as the call would leave it: another program \
         has changed or removed it. Read it first."
    );
    CutOffOutcome::Unknown { known }
}

/// The outcome for a file that cannot be looked at.
pub(crate) fn unreadable(reason: &str) -> CutOffOutcome {
    CutOffOutcome::Unknown { known: format!("A look at the file was not possible: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(contents: &str) -> FileDigest {
        FileDigest::of_file(Path::new("a"), [contents.as_bytes()])
    }

    #[test]
    fn a_digest_distinguishes_names_contents_and_absence() {
        let name = Path::new("a");
        assert_eq!(file("xy"), FileDigest::of_file(name, [b"x".as_slice(), b"y"]));
        let others = [
            file("x"),
            FileDigest::of_file(Path::new("b"), [b"xy".as_slice()]),
            FileDigest::of_no_file(name),
            FileDigest::of_file(Path::new("ax"), [b"y".as_slice()]),
        ];
        assert!(others.iter().all(|other| *other != file("xy")), "{others:?}");
        assert_ne!(FileDigest::of_no_file(name), FileDigest::of_file(name, []));
    }

    #[test]
    fn a_note_is_read_back_and_a_foreign_one_is_none() {
        let note = ChangeNote::new(file("x"), file("y"), Seen::Yes);
        assert_eq!(ChangeNote::read(note.to_value().as_ref()), Some(note.clone()));
        assert_eq!(note.compare(&file("y")), Compared::AsAfter);
        assert_eq!(note.compare(&file("x")), Compared::AsBefore);
        assert_eq!(note.compare(&file("z")), Compared::Different);
        for foreign in [serde_json::json!({}), serde_json::json!("x"), Value::Null] {
            assert_eq!(ChangeNote::read(Some(&foreign)), None);
        }
        assert_eq!(ChangeNote::read(None), None);
    }
}
