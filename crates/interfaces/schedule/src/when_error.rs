//! What can be wrong with the time of a schedule. Each says what to write instead.

/// Longest text of a time, a period, an expression or a zone, in bytes.
pub const WHEN_BYTES_MAX: usize = 256;

/// The time of a schedule makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    /// No time at all.
    #[error("it says no time: give one of `every`, `cron` and `at`")]
    Nothing,
    /// More than one.
    #[error("it has both `{first}` and `{second}`: give one of `every`, `cron` and `at`")]
    Several {
        /// One of them.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// A field that means nothing here.
    #[error("`{field}` goes with `{with}` only: take it out")]
    Stray {
        /// Which.
        field: &'static str,
        /// Where it belongs.
        with: &'static str,
    },
    /// Over [`WHEN_BYTES_MAX`].
    #[error("`{field}` may have {WHEN_BYTES_MAX} bytes at most")]
    TooLong {
        /// Which field.
        field: &'static str,
    },
    /// No period.
    #[error(
        "`every` cannot be {found:?}: {reason}. Write numbers with units (s, m, h, d, w), such as \"90s\", \"5m\" or \"1h 30m\""
    )]
    Period {
        /// What is there.
        found: String,
        /// Why it is none.
        reason: String,
    },
    /// A period that is too short, too long, or not of whole seconds.
    #[error("`every` cannot be {found}: a period has whole seconds, from 1s to 366d")]
    Bounds {
        /// The period.
        found: String,
    },
    /// No cron expression.
    #[error(
        "`cron` cannot be {found:?}: {reason}. Write minute, hour, day of month, month and day of week, such as \"0 9 * * mon-fri\""
    )]
    Cron {
        /// What is there.
        found: String,
        /// Why it is none.
        reason: String,
    },
    /// An expression that no date fits.
    #[error("`cron` cannot be {found:?}: there is no such day")]
    Never {
        /// The expression.
        found: String,
    },
    /// No time zone.
    #[error(
        "`zone` cannot be {found:?}: {}",
        near.as_ref().map_or_else(
            || "write a name of the IANA database, such as \"Europe/Vienna\" or \"UTC\"".to_owned(),
            |near| format!("write {near:?}"),
        )
    )]
    Zone {
        /// What is there.
        found: String,
        /// The zone whose name differs in its capitals only.
        near: Option<String>,
    },
    /// No time.
    #[error(
        "`{field}` cannot be {found:?}: write date, time and offset, such as \"2026-11-20T09:00:00Z\" or \"2026-11-20T10:00:00+01:00\""
    )]
    Time {
        /// Which field.
        field: &'static str,
        /// What is there.
        found: String,
    },
}

/// `text` without white space around it, if it is short enough to be looked at.
pub(crate) fn bounded<'a>(field: &'static str, text: &'a str) -> Result<&'a str, WhenError> {
    let text = text.trim();
    if text.len() > WHEN_BYTES_MAX { Err(WhenError::TooLong { field }) } else { Ok(text) }
}
