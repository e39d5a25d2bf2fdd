//! The file of a journal.
//!
//! | file     | subject                                       |
//! |----------|-----------------------------------------------|
//! | `header` | whether it is a journal, and its version      |
//! | `owner`  | the lock: one owner process at a time         |
//! | `schema` | the tables, and the migrations of older files |

pub(crate) mod header;
pub(crate) mod owner;
pub(crate) mod schema;
