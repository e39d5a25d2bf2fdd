//! The key file: JSON, private, written atomically by one process at a time.

pub(crate) mod document;
pub(crate) mod file_state;
pub(crate) mod location;
pub(crate) mod lock;
pub(crate) mod record;

pub(crate) use document::Document;
pub(crate) use file_state::OpenState;
pub use location::FILE_BYTES_MAX;
pub(crate) use location::FileLocation;
pub use lock::LOCK_WAIT;
pub(crate) use lock::Lock;
pub(crate) use record::Record;
