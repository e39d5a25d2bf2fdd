//! Text that is piped beside a prompt, as in `git diff | antiphon run "Review this"`.
//!
//! | standard input is                                     | then                                            |
//! |-------------------------------------------------------|-------------------------------------------------|
//! | a file                                                | it is read to its end                           |
//! | a pipe                                                | it is read to its end                           |
//! | a pipe on which nothing comes within a few seconds    | it adds nothing: it may be inherited and idle   |
//! | a pipe that goes silent without an end                | an error, in the end                            |
//! | a terminal, a device such as `/dev/null`, a socket    | it adds nothing and is not read                 |

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::input::PROMPT_BYTES_MAX;
use crate::failure::Failure;
use crate::terminal;

/// How long the first byte may take.
const FIRST_BYTE_WAIT: Duration = Duration::from_secs(3);

/// How long a pipe that has sent something may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(5 * 60);

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// What is piped beside the prompt; empty when that is nothing.
pub(super) fn read() -> Result<String, Failure> {
    // Without a standard input there is nothing to read.
    let Ok(input) = std::io::stdin().as_fd().try_clone_to_owned() else { return Ok(String::new()) };
    let input = File::from(input);
    let Ok(kind) = input.metadata().map(|about| about.file_type()) else {
        return Ok(String::new());
    };
    if !kind.is_file() && !kind.is_fifo() {
        return Ok(String::new());
    }
    let bytes = read_to_end(&input)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage("what is piped beside the prompt is not UTF-8; `< /dev/null` leaves it out")
    })
}

fn read_to_end(mut input: &File) -> Result<Vec<u8>, Failure> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        let patience = if bytes.is_empty() { FIRST_BYTE_WAIT } else { SILENCE_MAX };
        if !is_ready(input, patience) {
            if bytes.is_empty() {
                terminal::note(
                    "antiphon: nothing came on standard input: goes on with the prompt alone (`< /dev/null` says so at \
                     once)\n",
                );
                return Ok(bytes);
            }
            return Err(Failure::usage(
                "standard input is silent and does not end: close it, or leave it out with `< /dev/null`",
            ));
        }
        match input.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Failure::usage(format!("cannot read standard input: {error}")));
            }
        }
        if bytes.len() as u64 > PROMPT_BYTES_MAX {
            return Err(Failure::usage(format!(
                "what is piped beside the prompt is too long: {PROMPT_BYTES_MAX} bytes at most"
            )));
        }
    }
}

/// Whether there is something to read, or the end, within this time.
fn is_ready(input: &File, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let pause = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&pause)) {
            Ok(0) => return false,
            Err(Errno::INTR) => {}
            // The read says what is wrong.
            Ok(_) | Err(_) => return true,
        }
    }
}
