//! Maps errors of SQLite to errors of the journal.

use antiphon_core::Position;
use antiphon_core::port::JournalError;
use rusqlite::{Error, ErrorCode};

/// An error while reading at or after `position`.
pub(crate) fn fault(position: Position, error: &Error) -> JournalError {
    let reason = error.to_string();
    let corrupt = is_unreadable(error)
        || matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
    if corrupt {
        JournalError::Corrupt { position, reason }
    } else {
        JournalError::Unavailable { reason }
    }
}

/// Whether SQLite read a value that cannot be decoded.
pub(crate) fn is_unreadable(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..)
    )
}
