//! Errors of recordings.

use std::path::PathBuf;

use super::{LINE_BYTES_MAX, RECORDING_BYTES_MAX};

/// Why a recording cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// It does not exist, is not a file, or may not be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// Path of the recording.
        path: PathBuf,
        /// What the system reports.
        reason: String,
    },
    /// The disk is full, the folder is missing or not writable, or an exchange cannot be recorded.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// Path of the recording.
        path: PathBuf,
        /// What the system reports, or what cannot be recorded.
        reason: String,
    },
    /// Another recorder is writing to it.
    #[error("{} is being written by another recorder", path.display())]
    Busy {
        /// Path of the recording.
        path: PathBuf,
    },
    /// It has, or would have, more than [`RECORDING_BYTES_MAX`].
    #[error("{} is too large: {bytes} bytes of {RECORDING_BYTES_MAX}", path.display())]
    TooLarge {
        /// Path of the recording.
        path: PathBuf,
        /// Its size in bytes, or what it would be.
        bytes: u64,
    },
    /// A line has, or would have, more than [`LINE_BYTES_MAX`].
    #[error("{}, line {line}: more than {LINE_BYTES_MAX} bytes", path.display())]
    LineTooLong {
        /// Path of the recording.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// A line is not valid.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// Path of the recording.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with the line.
        reason: String,
    },
}
