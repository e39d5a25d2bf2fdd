//! The encoded items of the settled part of a history. What is full is shared with the requests that are sent.

use bytes::Bytes;

/// Bytes after which items are not copied any more, but shared.
const SHARED_BYTES_MIN: usize = 64 * 1024;

/// Items of a JSON array, with commas between them.
#[derive(Default)]
pub(crate) struct SettledItems {
    /// Full parts, in order. What follows them begins with a comma.
    shared: Vec<Bytes>,
    /// Bytes of the full parts.
    shared_bytes: usize,
    /// The items after them.
    last: Vec<u8>,
}

impl SettledItems {
    /// Adds items, with commas between them.
    pub(crate) fn add<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_empty() && self.last.last() != Some(&b',') {
            self.last.push(b',');
        }
        write(&mut self.last)?;
        if self.last.len() >= SHARED_BYTES_MIN {
            let full = Bytes::from(std::mem::take(&mut self.last).into_boxed_slice());
            self.shared_bytes += full.len();
            self.shared.push(full);
        }
        Ok(())
    }

    /// The full parts, which are not copied.
    pub(crate) fn shared(&self) -> impl Iterator<Item = Bytes> {
        self.shared.iter().cloned()
    }

    /// The items after the full parts.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Whether there is no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.last.is_empty()
    }

    /// Memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.shared_bytes + self.last.capacity()
    }
}
