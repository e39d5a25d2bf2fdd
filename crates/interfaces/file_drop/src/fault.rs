//! Why a file is not a valid request. Each message says what to do.

use std::fmt;

use crate::response::ResponseError;

/// The request cannot be parsed or exceeds a limit.
const INVALID_REQUEST: &str = "INVALID_REQUEST";

/// The file must not be used, with any content.
const FORBIDDEN: &str = "FORBIDDEN";

/// Why a file is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self { code: INVALID_REQUEST, message: message.to_string() }
    }

    pub(crate) fn forbidden(message: impl fmt::Display) -> Self {
        Self { code: FORBIDDEN, message: message.to_string() }
    }
}

impl From<Fault> for ResponseError {
    fn from(fault: Fault) -> Self {
        Self { code: fault.code.to_owned(), message: fault.message }
    }
}
