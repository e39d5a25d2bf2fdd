//! What the shell and its worker say to each other.
//!
//! One message is one packet of a socket that keeps packets apart: JSON, and with an order to
//! start something the pipe that its output goes to. The worker shares its restrictions with what
//! it runs, so the shell believes nothing of what it says beyond the fate of the calls it was given.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use antiphon_sandbox::Policy;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest message, in bytes. An ordinary user's socket takes no packet beyond 212,960.
pub(crate) const MESSAGE_BYTES_MAX: usize = 200_000;

/// Where a worker finds its [`Setup`].
pub(crate) const SETUP: &str = "ANTIPHON_WORKER";

/// Marks everything a call starts, in its environment.
pub(crate) const MARK: &str = "ANTIPHON_CALL";

/// What a worker is started with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) stage: Stage,
    /// Its `tmp` is taken away when the worker ends.
    pub(crate) policy: Policy,
}

/// Which of the two processes of a worker this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Sees to it that everything is gone in the end.
    Guard,
    /// Is restricted, and runs commands.
    Inside,
}

/// Names one call of `bash`, for the worker and for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CallId(pub(crate) String);

/// From the shell to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Comes with the pipe for the output.
    Start { call: CallId, command: String, workdir: PathBuf },
    /// Ends everything that the call started, also after its command has ended.
    Stop { call: CallId },
}

/// From the worker to the shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It is restricted, and takes orders.
    Ready,
    /// It could not be restricted, and ends.
    Refused { reason: String },
    /// The command could not be started.
    Failed { call: CallId, reason: String },
    /// The command was not started: a place is protected no longer.
    Stale { call: CallId, path: PathBuf },
    /// The command has ended.
    Ended { call: CallId, exit: Exit },
    /// Nothing of the call is left.
    Stopped { call: CallId },
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It had started too many processes, and was ended.
    TooManyProcesses,
}

impl CallId {
    /// One that was never used before, also before a restart.
    pub(crate) fn new() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self(format!("sh-{}", random.get(..8).unwrap_or(&random)))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The packet of a message. Fails if it is too long.
pub(crate) fn packet<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let packet = serde_json::to_vec(message)?;
    if packet.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(packet)
}

/// Sends one packet, whole or not at all.
pub(crate) fn send(
    socket: impl AsFd,
    packet: &[u8],
    pipe: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let pipe = pipe.as_slice();
    if !pipe.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(pipe));
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message and the pipe that may come with it. `None` if the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got =
        retry_on_intr(|| recvmsg(&socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags))?;
    if got.bytes == 0 {
        return Ok(None);
    }
    let pipe = ancillary.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message { fds.next() } else { None }
    });
    let packet = buffer.get(..got.bytes).unwrap_or_default();
    Ok(Some((serde_json::from_slice(packet)?, pipe)))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn a_message_arrives_whole_with_its_pipe() {
        let (ours, theirs) = pair();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let command = "\"".repeat(99_000);
        let order =
            Order::Start { call: CallId::new(), command, workdir: PathBuf::from("/somewhere") };
        send(&ours, &packet(&order).unwrap(), Some(writer.as_fd())).unwrap();
        drop(writer);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (received, pipe) = receive::<Order>(&theirs, &mut buffer).unwrap().unwrap();
        assert_eq!(received, order);
        rustix::io::write(pipe.unwrap(), b"x").unwrap();
        assert_eq!(rustix::io::read(&reader, &mut [0; 8]).unwrap(), 1);
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (ours, theirs) = pair();
        drop(ours);
        assert!(receive::<Order>(&theirs, &mut [0; 64]).unwrap().is_none());
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent() {
        let reply = Reply::Refused { reason: "x".repeat(MESSAGE_BYTES_MAX) };
        assert_eq!(packet(&reply).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
