//! Control of a task by its callers.
//!
//! | file       | subject                                 |
//! |------------|-----------------------------------------|
//! | `new_task` | a task to be accepted                   |
//! | `create`   | records an accepted task and starts it  |
//! | `creation_keys` | whether the key of a creation is new |
//! | `attached` | tasks that end with their client        |
//! | `interrupt` | interrupts and resumes tasks and descendants |
//! | `wait`     | waits until a task ends or is suspended |
//! | `approval` | decisions about approvals               |
//! | `cancel`   | cancels tasks and descendants           |
//! | `cancel_tree` | the same for a user, also on a full disk |

pub(crate) mod approval;
pub(crate) mod attached;
pub(crate) mod cancel;
pub(crate) mod cancel_tree;
pub(crate) mod create;
pub(crate) mod creation_keys;
pub(crate) mod interrupt;
pub(crate) mod new_task;
pub(crate) mod wait;
