//! Names in a requester's folder: requests, responses and temporary files.
//!
//! The name of a request ends in `.json`, does not start with `.` or `#`, and is not that of a
//! response. Everything else is ignored: temporary files of editors (`.a.json.swp`, `a.json~`,
//! `4913`), our own (`.*.tmp`), and responses. A name that cannot be printed or is too long is
//! answered under a generated name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use antiphon_core::{SourceName, visible};

use crate::digest::hex_of;
use crate::fault::Fault;

/// Longest name of a request, in bytes. The names derived from it fit into the 255 bytes of a file
/// system.
pub const NAME_BYTES_MAX: usize = 200;

/// The folder for rejected files, in each requester's folder.
pub(crate) const REJECTED: &str = "rejected";

const ENDING: &str = ".json";
const RESPONSE_ENDING: &str = ".response.json";

/// Prefix of the temporary file of a response.
const RESPONSE_TEMP: &str = ".response-";
/// Prefix of the temporary file of a request that a client is dropping.
const DROP_TEMP: &str = ".drop-";
const TEMP_ENDING: &str = ".tmp";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestName {
    /// The name in the folder.
    pub(crate) file: OsString,
    /// The name in responses and logs, and the base of derived names: printable, short, ends in
    /// `.json`.
    pub(crate) shown: String,
    pub(crate) fault: Option<Fault>,
}

impl RequestName {
    /// `None` when the file is not a request.
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

    pub(crate) fn response(&self) -> String {
        response_to(&self.shown)
    }

    /// The name of the `nth` rejected file with this name, from 0.
    pub(crate) fn rejected(&self, nth: usize) -> String {
        let stem = self.shown.strip_suffix(ENDING).unwrap_or(&self.shown);
        match nth {
            0 => self.shown.clone(),
            nth => format!("{stem}.{}{ENDING}", nth + 1),
        }
    }
}

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

/// A unique name for the temporary file of a response.
pub(crate) fn response_temp() -> String {
    format!("{RESPONSE_TEMP}{}{TEMP_ENDING}", uuid::Uuid::new_v4())
}

/// A unique name for the temporary file of a request.
pub(crate) fn drop_temp() -> String {
    format!("{DROP_TEMP}{}{TEMP_ENDING}", uuid::Uuid::new_v4())
}

/// Kinds of temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temp {
    /// Written by this service, which holds the lock of the folder: abandoned if it exists at
    /// start.
    Response,
    /// Written by a client, perhaps right now.
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

/// The name of a requester, which is exactly the name of its folder: nothing is trimmed.
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
