//! Runs named checks in sequence, each against its own subject. A check that does
//! not end within the limit is a violation.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::{Passed, Skipped, Violation, Violations};

/// Default time limit of a check.
pub(crate) const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// Longest value quoted in a violation, in characters.
const QUOTE_CHARS_MAX: usize = 600;

/// Outcome of a check.
pub(crate) type Outcome = Result<(), Finding>;

/// Why a check did not pass.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The contract is violated.
    Broken(String),
    /// The subject cannot run this check.
    Skipped(String),
}

/// Whether a subject may skip a check.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    Optional,
}

pub(crate) struct Check<'a, S> {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) run: fn(S) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>,
}

/// Lists checks by module: `checks![Required: order::{a, b}, lifecycle::{c}]`. A check is an async
/// function whose name says what it checks.
macro_rules! checks {
    ($need:ident: $( $module:ident :: { $( $name:ident ),* $(,)? } ),* $(,)?) => {
        [$( $( $crate::suite::Check {
            name: stringify!($name),
            need: $crate::suite::Need::$need,
            run: |subject| Box::pin($module::$name(subject)),
        }, )* )*]
    };
}
pub(crate) use checks;

/// Ends a check with a violation unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($found:tt)+) => {
        if !$condition {
            return Err($crate::suite::Finding::Broken(format!($($found)+)));
        }
    };
}
pub(crate) use ensure;

/// Runs `checks`, each against its own subject from `subject`.
pub(crate) async fn run<'a, S>(
    checks: impl IntoIterator<Item = Check<'a, S>>,
    limit: Duration,
    subject: impl AsyncFn() -> S,
) -> Result<Passed, Violations> {
    let mut passed = Passed { checks: Vec::new(), skipped: Vec::new() };
    let mut violations = Vec::new();
    for Check { name, need, run } in checks {
        let subject = subject().await;
        let outcome = tokio::time::timeout(limit, run(subject)).await;
        let found = match (outcome, need) {
            (Ok(Ok(())), Need::Required | Need::Optional) => {
                passed.checks.push(name);
                continue;
            }
            (Ok(Err(Finding::Skipped(reason))), Need::Optional) => {
                passed.skipped.push(Skipped { check: name, reason });
                continue;
            }
            (Ok(Err(Finding::Skipped(reason))), Need::Required) => {
                format!("this check cannot be skipped: {reason}")
            }
            (Ok(Err(Finding::Broken(found))), Need::Required | Need::Optional) => found,
            (Err(_), Need::Required | Need::Optional) => {
                format!("did not end within {limit:?}")
            }
        };
        violations.push(Violation { check: name, found });
    }
    if violations.is_empty() { Ok(passed) } else { Err(Violations(violations)) }
}

/// Turns an unexpected error into a finding.
pub(crate) trait During<T> {
    /// Names the operation that failed.
    fn during(self, what: &str) -> Result<T, Finding>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, Finding> {
        self.map_err(|error| Finding::Broken(format!("{what}: {error}")))
    }
}

/// Compares whole values.
pub(crate) fn equal<T: PartialEq + fmt::Debug + ?Sized>(
    what: &str,
    found: &T,
    expected: &T,
) -> Outcome {
    ensure!(found == expected, "{what}: found {}, expected {}", quote(found), quote(expected));
    Ok(())
}

/// A value as text, cut to a readable length.
pub(crate) fn quote<T: fmt::Debug + ?Sized>(value: &T) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
