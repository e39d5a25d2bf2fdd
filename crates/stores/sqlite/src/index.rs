//! The index: tables that are folds over events.
//!
//! | file       | subject                                            |
//! |------------|----------------------------------------------------|
//! | `checkpoint` | states of long tasks                             |
//! | `event_copy` | a new journal with the events of another         |
//! | `history`  | which conversation a task continues                |
//! | `tables`   | writes their rows in the transaction of the events |
//! | `spending` | spending by day                                    |
//! | `rebuild`  | writes them again from the events                  |

pub(crate) mod checkpoint;
pub(crate) mod event_copy;
pub(crate) mod history;
pub(crate) mod rebuild;
pub(crate) mod spending;
pub(crate) mod tables;
