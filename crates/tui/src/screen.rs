//! The terminal itself: its mode, its end, the rows that are drawn again, and a long text on all of it.

pub(crate) mod hang_up;
pub(crate) mod inline_screen;
pub(crate) mod notification;
pub(crate) mod pager;
pub(crate) mod terminal_mode;
