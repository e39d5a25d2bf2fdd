//! The file of a recording. Each line is one write, so lines of concurrent exchanges never mix.
//! After the first failure nothing more is written: the existing lines stay readable.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::line::{Body, Line};
use super::{LINE_BYTES_MAX, RECORDING_BYTES_MAX, Recording, RecordingError};

/// A recording that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Locked: no other recorder can write.
    file: File,
    bytes: u64,
    lines: u64,
    exchanges: u64,
    failure: Option<RecordingError>,
}

impl Log {
    /// Opens the recording at `path`, or creates it. A truncated last line is removed.
    pub(crate) fn append(path: &Path) -> Result<Self, RecordingError> {
        let unwritable = |error: io::Error| RecordingError::Unwritable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // Checked before it is opened: opening a pipe would wait for its reader.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(unwritable(io::Error::other("not a file")));
        }
        let file = private_file(path).map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RecordingError::Busy { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(unwritable(error)),
        }
        let recording = Recording::read(path, &file)?;
        if recording.torn_line().is_some() {
            file.set_len(recording.bytes).map_err(unwritable)?;
        }
        let state = State {
            file,
            bytes: recording.bytes,
            lines: recording.lines,
            exchanges: recording.exchanges_started,
            failure: None,
        };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// Writes a request and returns the number of its exchange; `None` if recording has stopped.
    pub(crate) fn begin(&self, request: String) -> Option<u64> {
        let mut state = self.lock();
        state.exchanges += 1;
        let exchange = state.exchanges;
        self.put(&mut state, Line { exchange, body: Body::Request(request) });
        state.failure.is_none().then_some(exchange)
    }

    /// Writes a piece or the end of an exchange.
    pub(crate) fn write(&self, exchange: u64, body: Body) {
        self.put(&mut self.lock(), Line { exchange, body });
    }

    /// Stops recording: an exchange cannot be recorded.
    pub(crate) fn refuse(&self, reason: String) {
        let path = self.path.clone();
        self.lock().failure.get_or_insert(RecordingError::Unwritable { path, reason });
    }

    /// Why recording stopped.
    pub(crate) fn failure(&self) -> Option<RecordingError> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, state: &mut State, line: Line) {
        if state.failure.is_none()
            && let Err(error) = self.try_put(state, line)
        {
            state.failure = Some(error);
        }
    }

    fn try_put(&self, state: &mut State, line: Line) -> Result<(), RecordingError> {
        let path = || self.path.clone();
        let unwritable = |reason: String| RecordingError::Unwritable { path: path(), reason };
        let line = line.write().map_err(|error| unwritable(error.to_string()))?;
        if line.len() > LINE_BYTES_MAX {
            return Err(RecordingError::LineTooLong { path: path(), line: state.lines + 1 });
        }
        let bytes = state.bytes + line.len() as u64;
        if bytes > RECORDING_BYTES_MAX {
            return Err(RecordingError::TooLarge { path: path(), bytes });
        }
        // Synchronous: the write goes to the system's cache and does not wait for the disk.
        state.file.write_all(&line).map_err(|error| unwritable(error.to_string()))?;
        state.bytes = bytes;
        state.lines += 1;
        Ok(())
    }
}

/// A private file: it contains conversations.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}
