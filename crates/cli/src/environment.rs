//! Captures the environment of the process once.

use antiphon_project::environment::{Environment, Questions, Warnings};

use crate::terminal;

/// Environment variables, current folder, and warnings to standard error.
pub(crate) fn capture() -> Environment {
    Environment {
        variables: std::env::vars_os().collect(),
        current_dir: std::env::current_dir().ok(),
        warnings: Warnings::new(|warning| terminal::note(&format!("antiphon: {warning}\n"))),
        questions: Questions::new(terminal::ask),
        ..Environment::default()
    }
}
