//! Splits a markdown file into front matter, between the lines of `---`, and body.
//!
//! A file that is not UTF-8, is too long or does not end its front matter is refused, with the line. Line
//! breaks become `\n`. Hidden characters of the body are escaped, as those of tool output are: they could hide
//! instructions from a human reader.

use antiphon_core::{CONTEXT_BYTES_MAX, escape_hidden_text, visible};

use crate::problem::AgentFileError;

/// Largest front matter, in bytes.
pub const FRONT_BYTES_MAX: usize = 64 * 1024;

/// Largest agent file, in bytes.
pub const FILE_BYTES_MAX: usize = CONTEXT_BYTES_MAX + FRONT_BYTES_MAX;

/// The line before and after front matter.
const FENCE: &str = "---";

/// A split file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Markdown {
    /// The text between the fences; the first fence is line 1.
    pub(crate) front: Option<String>,
    body: String,
    body_line: usize,
}

impl Markdown {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, AgentFileError> {
        let text = text(bytes)?;
        let (front, body, body_line) = split(&text)?;
        if front.is_some_and(|front| front.len() > FRONT_BYTES_MAX) {
            let reason = format!("the front matter has more than {FRONT_BYTES_MAX} bytes");
            return Err(AgentFileError::new(1, reason));
        }
        // A body without a visible character is blank.
        let body = if visible(body).trim().is_empty() { "" } else { body };
        let body = escape_hidden_text(body).into_owned();
        Ok(Self { front: front.map(str::to_owned), body, body_line })
    }

    /// The body, which may be blank.
    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    /// The body, which is not blank.
    pub(crate) fn context(&self) -> Result<&str, AgentFileError> {
        let context = self.body.trim_start_matches(['\n', ' ']).trim_end();
        if context.is_empty() {
            let reason = match self.front {
                Some(_) => "nothing follows the front matter: write the instructions of the agent",
                None => "the file is empty",
            };
            return Err(AgentFileError::new(self.body_line, reason));
        }
        if context.len() > CONTEXT_BYTES_MAX {
            let reason = format!("the context has more than {CONTEXT_BYTES_MAX} bytes");
            return Err(AgentFileError::new(self.body_line, reason));
        }
        Ok(context)
    }
}

/// The text of a file, with plain line breaks and without a byte order mark.
fn text(bytes: &[u8]) -> Result<String, AgentFileError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(AgentFileError::new(
            1,
            format!("the file has more than {FILE_BYTES_MAX} bytes"),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = good.matches('\n').count() + 1;
        AgentFileError::new(line, "the file is not UTF-8 text")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let control = |c: char| c.is_control() && !"\n\t".contains(c);
    if let Some(at) = text.find(control) {
        let line = text[..at].matches('\n').count() + 1;
        let found = text[at..].chars().next().map_or(0, u32::from);
        let reason = format!("there is a control character here, U+{found:04X}");
        return Err(AgentFileError::new(line, reason));
    }
    Ok(text)
}

/// Front matter, body, and the first line of the body.
fn split(text: &str) -> Result<(Option<&str>, &str, usize), AgentFileError> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        let blank = text.lines().take_while(|line| line.trim().is_empty()).count();
        if text.lines().nth(blank).is_some_and(is_fence) {
            return Err(AgentFileError::new(blank + 1, "front matter must begin in line 1"));
        }
        return Ok((None, text, 1));
    }
    let mut end = first.len();
    for (index, line) in lines.enumerate() {
        if is_fence(line) {
            return Ok((Some(&text[first.len()..end]), &text[end + line.len()..], index + 3));
        }
        end += line.len();
    }
    Err(AgentFileError::new(1, "the front matter that begins here has no line `---` at its end"))
}
