//! The messages between the shell and its worker.
//!
//! One message is one packet of a SEQPACKET socket: JSON, and with a start request the pipe for the
//! output. The worker has the same restrictions as the commands it runs, so the shell trusts its
//! messages only about the calls it gave to the worker.

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
use uuid::Uuid;

/// Longest message, in bytes. The socket of an ordinary user takes no packet beyond 212,960.
pub(crate) const MESSAGE_BYTES_MAX: usize = 200_000;

/// The environment variable that contains the [`Setup`] of a worker.
pub(crate) const SETUP: &str = "ANTIPHON_WORKER";

/// The environment variable that marks every process of a call.
pub(crate) const CALL_VARIABLE: &str = "ANTIPHON_CALL";

/// The environment variable with the id of a call, for its commands: the same in every process, such as
/// for a key that makes a request idempotent.
pub(crate) const CALL_UUID_VARIABLE: &str = "ANTIPHON_CALL_ID";

/// Startup configuration of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) role: WorkerRole,
    /// Its `tmp` is removed when the worker ends.
    pub(crate) policy: Policy,
}

/// Role of one of the two processes of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerRole {
    /// Unrestricted. Removes every process and file that is left at the end.
    Guard,
    /// Restricted. Runs commands.
    Inner,
}

/// Id of one call of `bash`, for the worker and for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CallId(pub(crate) String);

/// From the shell to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sent with the pipe for the output.
    Start {
        call: CallId,
        /// The id of the call that its commands see, the same in every process.
        call_uuid: Uuid,
        command: String,
        workdir: PathBuf,
        proxy: Option<ProxyRequest>,
    },
    /// Ends every process of the call, also after its command has ended.
    Stop { call: CallId },
}

/// A call whose commands reach the network through a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProxyRequest {
    /// Hosts that are reached without the proxy, separated by commas.
    pub(crate) no_proxy: String,
}

/// From the worker to the shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The worker is restricted and accepts requests.
    Ready,
    /// The worker could not be restricted, and ends.
    Refused { reason: String },
    /// Sent with the socket that leads commands of the call to the proxy.
    Listening { call: CallId },
    /// The command could not be started.
    Failed { call: CallId, reason: String },
    /// The command was not started: the sandbox no longer protects this path.
    Stale { call: CallId, path: PathBuf },
    /// The command has ended.
    Ended { call: CallId, exit: Exit },
    /// No process of the call is left.
    Stopped { call: CallId },
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It was stopped because it used more than it may.
    Stopped(Exceeded),
}

/// The limit that a command exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exceeded {
    /// More processes at a time than this.
    Processes(u64),
    /// More bytes of memory than this.
    Memory(u64),
    /// More bytes of disk than this.
    Disk(u64),
}

impl CallId {
    /// A random id, unique across restarts.
    pub(crate) fn new() -> Self {
        let random = Uuid::new_v4().simple().to_string();
        Self(format!("sh-{}", random.get(..8).unwrap_or(&random)))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Encodes a message. Fails with `FileTooLarge` over [`MESSAGE_BYTES_MAX`].
pub(crate) fn packet<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let packet = serde_json::to_vec(message)?;
    if packet.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(packet)
}

/// Sends one packet, entirely or not at all.
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

/// Receives one message and the pipe that may come with it. `None` when the other side has closed.
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
        let request = Request::Start {
            call: CallId::new(),
            call_uuid: Uuid::new_v4(),
            command,
            workdir: PathBuf::from("/somewhere"),
            proxy: None,
        };
        send(&ours, &packet(&request).unwrap(), Some(writer.as_fd())).unwrap();
        drop(writer);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (received, pipe) = receive::<Request>(&theirs, &mut buffer).unwrap().unwrap();
        assert_eq!(received, request);
        rustix::io::write(pipe.unwrap(), b"x").unwrap();
        assert_eq!(rustix::io::read(&reader, &mut [0; 8]).unwrap(), 1);
    }

    #[test]
    fn the_end_of_the_other_side_is_seen() {
        let (ours, theirs) = pair();
        drop(ours);
        assert!(receive::<Request>(&theirs, &mut [0; 64]).unwrap().is_none());
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent() {
        let reply = Reply::Refused { reason: "x".repeat(MESSAGE_BYTES_MAX) };
        assert_eq!(packet(&reply).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
