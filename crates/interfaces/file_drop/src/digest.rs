//! Digests: two requests with the same one are the same.
//!
//! A request with an `id` is identified by its requester and the id. Without one, it is identified
//! by its requester, the name of its file and the content. White space around the text is ignored:
//! a final line break that is written a moment later does not make another request.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The content without a byte order mark and surrounding white space.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii()
}

/// The digest of a file, in the form of a response.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex_of(trimmed(bytes)))
}

/// The idempotency key of an order.
pub(crate) fn key(requester: &str, identity: Identity<'_>) -> String {
    let mut hash = Sha256::new();
    // Each part is preceded by its length, so that parts cannot run into each other.
    let mut add = |part: &str| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    };
    add(requester);
    match identity {
        Identity::Id(id) => {
            add("id");
            add(id);
        }
        Identity::File { name, digest } => {
            add("file");
            add(name);
            add(digest);
        }
    }
    format!("file-drop:{}", hex(&hash.finalize()))
}

/// What identifies a request among those of its requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    Id(&'a str),
    File { name: &'a str, digest: &'a str },
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
