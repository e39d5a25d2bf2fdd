//! Which names in a requester's folder are requests, and what stands beside them.
//!
//! A request ends in `.json`, is not hidden and is no response. Everything else is somebody else's:
//! the temporary files of editors (`.a.json.swp`, `a.json~`, `4913`), ours (`.*.tmp`), and
//! responses. A name that cannot be printed or is too long is a bad request under a made-up name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use antiphon_core::{SourceName, visible};

use crate::digest::hex_of;
use crate::fault::Fault;

/// Longest name of a request, in bytes: the names beside it fit into the 255 of a file system.
pub const NAME_BYTES_MAX: usize = 200;

/// The folder for files that are no requests, below each requester's own.
pub(crate) const REJECTED: &str = "rejected";

const ENDING: &str = ".json";
const RESPONSE_ENDING: &str = ".response.json";

/// What the temporary file of a response is called.
const RESPONSE_TEMP: &str = ".response-";
/// What the temporary file of a request of ours is called.
const DROP_TEMP: &str = ".drop-";
const TEMP_ENDING: &str = ".tmp";

/// The name of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestName {
    /// As it stands in the folder.
    pub(crate) file: OsString,
    /// As it is told, and used for what stands beside it: printable, short, ends in `.json`.
    pub(crate) shown: String,
    pub(crate) fault: Option<Fault>,
}

impl RequestName {
    /// `None` when this is no request.
    pub(crate) fn of(file: &OsStr) -> Option<Self> {
        is_request(file.as_bytes()).then(|| match plain(file) {
            Ok(name) => Self { file: file.to_owned(), shown: name.to_owned(), fault: None },
            Err(fault) => {
                let digest = hex_of(file.as_bytes());
                let shown = format!("unnamed-{}{ENDING}", digest.get(..16).unwrap_or_default());
                Self { file: file.to_owned(), shown, fault: Some(fault) }
            }
        })
    }

    /// The name of its response.
    pub(crate) fn response(&self) -> String {
        response_to(&self.shown)
    }

    /// The name it has among the rejected, the `nth` of that name.
    pub(crate) fn rejected(&self, nth: usize) -> String {
        let stem = self.shown.strip_suffix(ENDING).unwrap_or(&self.shown);
        match nth {
            0 => self.shown.clone(),
            nth => format!("{stem}.{}{ENDING}", nth + 1),
        }
    }
}

/// The name of the response to a request of this name.
pub(crate) fn response_to(request: &str) -> String {
    format!("{}{RESPONSE_ENDING}", request.strip_suffix(ENDING).unwrap_or(request))
}

pub(crate) fn is_request(name: &[u8]) -> bool {
    name.ends_with(ENDING.as_bytes())
        && !name.ends_with(RESPONSE_ENDING.as_bytes())
        && !name.starts_with(b".")
        && !name.starts_with(b"#")
}

pub(crate) fn is_response(name: &[u8]) -> bool {
    name.ends_with(RESPONSE_ENDING.as_bytes()) && !name.starts_with(b".")
}

/// A name that is no request and no response, and that nobody else has.
pub(crate) fn response_temp() -> String {
    format!("{RESPONSE_TEMP}{}{TEMP_ENDING}", uuid::Uuid::new_v4())
}

/// The same, for a request that is about to be dropped.
pub(crate) fn drop_temp() -> String {
    format!("{DROP_TEMP}{}{TEMP_ENDING}", uuid::Uuid::new_v4())
}

/// Whose temporary file this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temp {
    /// Of whoever answers: nobody but us.
    Response,
    /// Of whoever drops: perhaps at this moment.
    Drop,
}

pub(crate) fn temp(name: &[u8]) -> Option<Temp> {
    if !name.ends_with(TEMP_ENDING.as_bytes()) {
        None
    } else if name.starts_with(RESPONSE_TEMP.as_bytes()) {
        Some(Temp::Response)
    } else {
        name.starts_with(DROP_TEMP.as_bytes()).then_some(Temp::Drop)
    }
}

/// A requester's name, which is that of its folder: to the letter, nothing is trimmed.
pub(crate) fn requester(name: &OsStr) -> Result<&str, Fault> {
    let text = name.to_str().ok_or_else(|| Fault::invalid("a name must be UTF-8"))?;
    let parsed = SourceName::parse(text).map_err(Fault::invalid)?;
    if parsed.as_str() != text {
        return Err(Fault::invalid("a name must not begin or end with white space"));
    }
    Ok(text)
}

fn plain(file: &OsStr) -> Result<&str, Fault> {
    if file.len() > NAME_BYTES_MAX {
        let bytes = file.len();
        return Err(Fault::invalid(format_args!(
            "the name of a request may have {NAME_BYTES_MAX} bytes at most, this one has {bytes}"
        )));
    }
    let text =
        file.to_str().filter(|text| !text.chars().any(char::is_control) && visible(text) == *text);
    text.ok_or_else(|| {
        Fault::invalid("the name of a request must be UTF-8 without characters that cannot be seen")
    })
}
