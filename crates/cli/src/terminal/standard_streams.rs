//! Standard input and output as they are, for a protocol that is spoken on them.

use std::io;
use std::os::fd::AsFd as _;

use tokio::fs::File;

use crate::failure::Failure;

/// Both streams, without a buffer or a lock.
pub(crate) struct StandardStreams {
    pub(crate) input: File,
    pub(crate) output: File,
}

impl StandardStreams {
    pub(crate) fn open() -> Result<Self, Failure> {
        let unusable = |error: io::Error| Failure::failed(format!("cannot start: {error}"));
        let (input, output) = (io::stdin().as_fd().try_clone_to_owned(), io::stdout());
        let output = output.as_fd().try_clone_to_owned();
        let input = File::from_std(input.map_err(unusable)?.into());
        let output = File::from_std(output.map_err(unusable)?.into());
        Ok(Self { input, output })
    }
}
