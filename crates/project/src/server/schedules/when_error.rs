//! Errors in the time of a schedule. Each says what to write instead.

/// Longest text of a time, a period, an expression or a zone, in bytes.
pub const WHEN_BYTES_MAX: usize = 256;

/// Why the time of a schedule is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    /// No time is given.
    #[error("it has no time: give one of `every`, `cron` and `at`")]
    Nothing,
    /// More than one time is given.
    #[error("it has both `{first}` and `{second}`: give one of `every`, `cron` and `at`")]
    Several {
        /// Name of one field.
        first: &'static str,
        /// Name of the other field.
        second: &'static str,
    },
    /// A field that does not apply.
    #[error("`{field}` applies only to `{with}`: remove it")]
    Stray {
        /// Name of the field.
        field: &'static str,
        /// The field that it applies to.
        with: &'static str,
    },
    /// Longer than [`WHEN_BYTES_MAX`].
    #[error("`{field}` may have {WHEN_BYTES_MAX} bytes at most")]
    TooLong {
        /// Name of the field.
        field: &'static str,
    },
    /// Not a period.
    #[error(
        "`every` cannot be {found:?}: {reason}. Write numbers with units (s, m, h, d, w), such as \"90s\", \"5m\" or \"1h 30m\""
    )]
    Period {
        /// The refused text.
        found: String,
        /// Why it is not a period.
        reason: String,
    },
    /// A period that is too short, too long, or not in whole seconds.
    #[error("`every` cannot be {found}: a period has whole seconds, from 1s to 366d")]
    Bounds {
        /// The refused period.
        found: String,
    },
    /// Not a cron expression.
    #[error(
        "`cron` cannot be {found:?}: {reason}. Write minute, hour, day of month, month and day of week, such as \"0 9 * * mon-fri\""
    )]
    Cron {
        /// The refused text.
        found: String,
        /// Why it is not a cron expression.
        reason: String,
    },
    /// An expression that matches no date.
    #[error("`cron` cannot be {found:?}: there is no such day")]
    Never {
        /// The refused expression.
        found: String,
    },
    /// Not a time zone.
    #[error(
        "`zone` cannot be {found:?}: {}",
        near.as_ref().map_or_else(
            || "write a name of the IANA database, such as \"Europe/Vienna\" or \"UTC\"".to_owned(),
            |near| format!("write {near:?}"),
        )
    )]
    Zone {
        /// The refused name.
        found: String,
        /// The zone whose name differs in upper and lower case only.
        near: Option<String>,
    },
    /// Not a time.
    #[error(
        "`{field}` cannot be {found:?}: write date, time and offset, such as \"2026-11-20T09:00:00Z\" or \"2026-11-20T10:00:00+01:00\""
    )]
    Time {
        /// Name of the field.
        field: &'static str,
        /// The refused text.
        found: String,
    },
}

/// The trimmed text, if it is not too long.
pub(super) fn bounded<'a>(field: &'static str, text: &'a str) -> Result<&'a str, WhenError> {
    let text = text.trim();
    if text.len() > WHEN_BYTES_MAX { Err(WhenError::TooLong { field }) } else { Ok(text) }
}
