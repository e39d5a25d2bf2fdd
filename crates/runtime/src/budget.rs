//! Spend limits and usage.
//!
//! A limit is checked before each model call and interrupts nothing.
//!
//! | file             | subject                                     |
//! |------------------|---------------------------------------------|
//! | `spend_limits`   | the limits, and the errors for reached ones |
//! | `budget_service` | checks limits                               |
//! | `spend_cache`    | what was spent this month                   |
//! | `new_work_check` | checks and reports for interfaces           |
//! | `raise_limit`    | raises limits                               |
//! | `tree_usage`     | usage of a task and its descendants         |

pub(crate) mod budget_service;
pub(crate) mod new_work_check;
pub(crate) mod raise_limit;
pub(crate) mod spend_cache;
pub(crate) mod spend_limits;
pub(crate) mod tree_usage;
