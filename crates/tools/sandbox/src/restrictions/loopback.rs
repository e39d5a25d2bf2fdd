//! The loopback interface of a new network namespace, which is down at first.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

use crate::SandboxError;
use crate::sandbox_error::Step;

/// Lets processes of this namespace talk to each other over 127.0.0.1 and `::1`.
pub(crate) fn bring_up() -> Result<(), SandboxError> {
    let step = "raise its loopback interface";
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None).during(step)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&netlink, &request(), SendFlags::empty(), &kernel).during(step)?;
    let mut answer = [0; 1024];
    let (bytes, _) = recv(&netlink, &mut answer, RecvFlags::empty()).during(step)?;
    acknowledged(answer.get(..bytes).unwrap_or_default()).during(step)
}

/// `RTM_NEWLINK` that sets `IFF_UP` on interface 1, which is always the loopback.
fn request() -> Vec<u8> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    let mut bytes = Vec::with_capacity(LENGTH as usize);
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(RTM_NEWLINK.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    // Sequence and port, family and type: all 0.
    bytes.extend([0; 12]);
    bytes.extend(1_i32.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes.extend(IFF_UP.to_ne_bytes());
    bytes
}

/// The error follows the header of 16 bytes: negative, or 0 for success.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    match answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}
