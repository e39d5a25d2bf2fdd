//! Whether everything that is configured works, and the way to a first model.

pub mod checks;
pub mod first_run;
