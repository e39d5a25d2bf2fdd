//! The right to change the file of keys: one process at a time, and the file is whole at any time.
//!
//! A change is written beside the file, made durable, and renamed into its place. A crash leaves the
//! old file or the new one, and at most a `.new` beside it that the next writer takes away.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, fchmod, flock, fstat, fsync, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::place::Place;
use crate::ring_error::{RingError, unusable};
use crate::stamp::{Sight, Stamp};

/// How long another process may hold the file before a change is given up.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How often it is tried meanwhile.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The right to change the file, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock<'a> {
    place: &'a Place,
    folder: OwnedFd,
    _file: OwnedFd,
}

impl<'a> Lock<'a> {
    /// Waits until nobody else changes the file. Makes its folder if there is none.
    pub(crate) fn take(place: &'a Place) -> Result<Self, RingError> {
        let folder = place.make_folder()?;
        let name = place.beside(".lock");
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let until = Instant::now() + LOCK_WAIT;
        let file = openat(&folder, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| unusable(place.path())(format!("its `.lock`: {error}")))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { place, folder, _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(RingError::Busy { path: place.path().display().to_string() });
                }
                Err(error) => return Err(unusable(place.path())(error.to_string())),
            }
        }
    }

    /// What is in the file; `None` when it is not there.
    pub(crate) fn read(&self) -> Result<Option<(Sight, Vec<u8>)>, RingError> {
        self.place.read_in(&self.folder)
    }

    /// Writes the file anew. When this returns it is durable; if it fails, the file is the old one or
    /// the new one.
    pub(crate) fn write(&self, text: &[u8]) -> Result<Sight, RingError> {
        let hidden = self.place.beside(".new");
        self.write_by(&hidden, text).map_err(|error| {
            // It may not be there.
            let _ = unlinkat(&self.folder, &hidden, AtFlags::empty());
            unusable(self.place.path())(error.to_string())
        })
    }

    fn write_by(&self, hidden: &OsStr, text: &[u8]) -> io::Result<Sight> {
        // One that a crash left behind.
        match unlinkat(&self.folder, hidden, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.folder, hidden, flags, own)?);
        fchmod(&file, own)?;
        file.write_all(text)?;
        file.sync_all()?;
        renameat(&self.folder, hidden, &self.folder, self.place.name())?;
        fsync(&self.folder)?;
        // Being renamed has changed it.
        let stamp = Stamp::of(&fstat(&file)?);
        Ok(Sight::new(stamp, file))
    }
}
