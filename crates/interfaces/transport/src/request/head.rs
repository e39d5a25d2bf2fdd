//! Limits of the head of a request: its fields and its bytes. A head beyond them is refused with 431, before
//! anything else is checked. A head beyond the limits of the parser, which are higher, is not parsed at all and
//! gets a 431 without a body.

use antiphon_core::ErrorCode;
use axum::extract::Request;
use axum::http::StatusCode;

use crate::api_error::ApiError;

/// Header fields of a request, at most.
pub const HEADERS_MAX: usize = 64;

/// Target and header fields of a request, in bytes, at most.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Header fields that are parsed, at most.
pub(crate) const PARSED_HEADERS_MAX: usize = 100;

/// Bytes of a head that are buffered. The parser may read one more piece.
pub(crate) const PARSED_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Refuses a head that is too large with 431.
pub(crate) fn check(request: &Request) -> Result<(), ApiError> {
    let fields = request.headers().len();
    if fields > HEADERS_MAX {
        let message = format!("the request has {fields} header fields: send at most {HEADERS_MAX}");
        return Err(too_large(message));
    }
    // `: ` and the end of the line.
    let field = |name: &str, value: &[u8]| name.len() + value.len() + 4;
    let target = request.uri().to_string().len() + request.method().as_str().len();
    let fields = request.headers().iter();
    let bytes = fields.map(|(name, value)| field(name.as_str(), value.as_bytes())).sum::<usize>();
    let bytes = bytes + target;
    if bytes > HEAD_BYTES_MAX {
        let message =
            format!("the head of the request has {bytes} bytes: send at most {HEAD_BYTES_MAX}");
        return Err(too_large(message));
    }
    Ok(())
}

fn too_large(message: String) -> ApiError {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    ApiError::with_status(status, ErrorCode::InvalidRequest, message)
}
