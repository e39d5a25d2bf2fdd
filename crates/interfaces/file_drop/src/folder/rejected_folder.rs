//! The folder of rejected files, each with a file that states the reason. They are kept for their
//! author; nothing here is ever read.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::folder::atomic::write_response_file;
use crate::folder::name::RequestName;
use crate::response::ResponseError;

/// Most rejected files of one name. After that, the first is replaced.
const SAME_NAME_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct RejectedFolder {
    pub(crate) descriptor: OwnedFd,
}

impl RejectedFolder {
    /// The first free name for a rejected file.
    pub(crate) fn free_name(&self, name: &RequestName) -> String {
        let is_free = |target: &String| {
            let stat = statat(&self.descriptor, target, AtFlags::SYMLINK_NOFOLLOW);
            matches!(stat, Err(Errno::NOENT))
        };
        rejected_names(name).find(is_free).unwrap_or_else(|| name.rejected(0))
    }

    /// Writes the reason to a file with the ending `.reason.txt`.
    pub(crate) fn explain(&self, target: &str, error: &ResponseError) -> io::Result<()> {
        let text = format!("{}: {}\n", error.code, error.message);
        write_response_file(&self.descriptor, &format!("{target}.reason.txt"), text.as_bytes())
    }
}

/// The names that a rejected file may get, in order.
pub(crate) fn rejected_names(name: &RequestName) -> impl Iterator<Item = String> {
    (0..SAME_NAME_MAX).map(|nth| name.rejected(nth))
}
