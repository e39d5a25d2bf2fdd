//! What makes two requests the same one.
//!
//! With an `id`, a request is its requester and that id. Without one, it is its requester, the name
//! of its file and what is in the file. White space around the text does not count: who writes the
//! last line break a moment later does not write another request.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The bytes that count: without a byte order mark, and without white space around them.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii()
}

/// The digest of a file as responses tell it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex_of(trimmed(bytes)))
}

/// The key under which an order is carried out.
pub(crate) fn key(requester: &str, identity: Identity<'_>) -> String {
    let mut hash = Sha256::new();
    // No part can reach into the next: each is led by its length.
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

/// What a request is known by, among those of its requester.
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
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
