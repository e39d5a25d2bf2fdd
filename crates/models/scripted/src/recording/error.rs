//! What can be wrong with a recording.

use std::path::PathBuf;

use super::{LINE_BYTES_MAX, RECORDING_BYTES_MAX};

/// What can be wrong with a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It is not there, not a file, or not for us.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The disk is full, the folder is missing or not for us, or there is something that cannot
    /// be recorded.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// What the system said, or what cannot be recorded.
        reason: String,
    },
    /// Somebody else is recording to it.
    #[error("{} is being written by another recorder", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// It has, or would have, more than [`RECORDING_BYTES_MAX`].
    #[error("{} is too large: {bytes} bytes of {RECORDING_BYTES_MAX}", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Its size, or what it would be.
        bytes: u64,
    },
    /// A line has, or would have, more than [`LINE_BYTES_MAX`].
    #[error("{}, line {line}: more than {LINE_BYTES_MAX} bytes", path.display())]
    LineTooLong {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
    },
    /// A line that no recorder writes.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
}
