//! The terminal program in a pseudo-terminal, with a model of the terminal: what a person sees on the screen and in the
//! scrollback, whatever the terminal, the texts and the keys are.
//!
//! `UPDATE=1 cargo nextest run -p antiphon --test terminal` writes the screens in `screens` anew.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod compacting;
mod customizing;
mod hostile;
mod killed;
mod modes;
mod notifying;
mod plain;
#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/pty.rs"]
mod pty;
mod robust;
mod run;
mod screen;
mod screens;
mod sizes;
mod starting;
mod suspended;
mod working;
mod world;
