//! Signals and the foreground of the terminal: stopping, suspending, and its end.

pub(crate) mod foreground_process;
pub(crate) mod hang_up;
pub(crate) mod stop_signal;
pub(crate) mod suspension;
