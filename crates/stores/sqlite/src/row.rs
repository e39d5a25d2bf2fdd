//! Domain values as rows, and back.
//!
//! | file           | subject          |
//! |----------------|------------------|
//! | `column`       | single values    |
//! | `stored_event` | events           |
//! | `task_row`     | tasks and agents |

pub(crate) mod column;
pub(crate) mod stored_event;
pub(crate) mod task_row;
