//! The file of a journal.
//!
//! | file          | subject                                          |
//! |---------------|--------------------------------------------------|
//! | `create`      | a new one, complete before it has its name       |
//! | `header`      | whether it is a journal, and its version         |
//! | `open_file`   | whether it is still the file at its path         |
//! | `owner`       | the lock: one owner process at a time            |
//! | `quick_check` | whether it is whole, before it is opened         |
//! | `schema`      | the tables, and the migrations of older files    |

pub(crate) mod create;
pub(crate) mod header;
pub(crate) mod open_file;
pub(crate) mod owner;
pub(crate) mod quick_check;
pub(crate) mod schema;
