//! The files that are no requests, each with its reason beside it. They are kept for whoever wrote
//! them; nothing here is ever looked at again.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::name::RequestName;
use crate::response::ResponseError;
use crate::whole::write_whole;

/// Most files of one name among the rejected. After that, the first is replaced.
const SAME_NAME_MAX: usize = 100;

/// The folder of the rejected.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) descriptor: OwnedFd,
}

impl Rejected {
    /// The first free name for a file.
    pub(crate) fn place(&self, name: &RequestName) -> String {
        let is_free = |place: &String| {
            let about = statat(&self.descriptor, place, AtFlags::SYMLINK_NOFOLLOW);
            matches!(about, Err(Errno::NOENT))
        };
        places(name).find(is_free).unwrap_or_else(|| name.rejected(0))
    }

    /// Says why a file is here, in a file beside it.
    pub(crate) fn explain(&self, place: &str, error: &ResponseError) -> io::Result<()> {
        let text = format!("{}: {}\n", error.code, error.message);
        write_whole(&self.descriptor, &format!("{place}.reason.txt"), text.as_bytes())
    }
}

/// The names that a file may have among the rejected.
pub(crate) fn places(name: &RequestName) -> impl Iterator<Item = String> {
    (0..SAME_NAME_MAX).map(|nth| name.rejected(nth))
}
