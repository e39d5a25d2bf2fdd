//! Private files: written atomically, readable by their owner alone.
//!
//! | function | guarantee |
//! |---|---|
//! | [`write_atomic`] | the file has the old content or the new content, mode 0600; with [`Durability::Synced`] it survives a power failure |
//! | [`create_new_at`] | the file did not exist before, mode 0600, synced |
//! | [`create_folder`] | the folder exists, mode 0700, owned by this user, no symbolic link |
//! | [`open`], [`open_at`] | a regular file of this user that no other user can access |
//! | [`open_lock_at`], [`lock_within`] | one process at a time holds the lock, until it closes the file or exits |
//!
//! Functions that end in `_at` take an open folder. They resolve no symbolic link, so a folder that is
//! replaced meanwhile cannot redirect them. Everything here blocks.

mod access;
mod folder;
mod lock;
mod write;

pub use access::{AccessError, PrivateEntry, check, open, open_at};
pub use folder::{create_folder, parent_of};
pub use lock::{LockError, lock_within, open_lock_at};
pub use write::{Durability, create_new_at, write_atomic};
