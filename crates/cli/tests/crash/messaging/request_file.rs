//! A request file, and its expected response and effect.

use serde_json::Value;

/// A request file.
#[derive(Debug, Clone)]
pub(crate) struct RequestFile {
    /// Its file name without `.json`.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) expected: Expected,
    pub(crate) effect: Effect,
    /// A word that occurs only in its effect.
    pub(crate) word: String,
    /// The response to the file it replaces.
    pub(crate) replaces: Option<String>,
    /// Its permissions, as the umask of its writer leaves them. Its folder is private.
    pub(crate) mode: u32,
}

/// The expected response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// Success, with one of these statuses.
    Done(&'static [&'static str]),
    /// Refused, with this error code.
    Refused(&'static str),
    /// Invalid, with this error code, and moved to the folder `rejected`.
    SetAside(&'static str),
}

/// The effect that must exist once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None that can be identified.
    None,
    /// An interaction in an inbox.
    Queued,
    /// An interaction in an inbox, with a final answer.
    Answered,
    /// A task.
    Task,
    /// A running agent.
    Started,
    /// A stopped agent.
    Stopped,
    /// A canceled task.
    Canceled,
}

impl RequestFile {
    pub(crate) fn new(
        name: &str,
        text: String,
        expected: Expected,
        effect: Effect,
        word: &str,
    ) -> Self {
        let (name, word) = (name.to_owned(), word.to_owned());
        Self { name, text, expected, effect, word, replaces: None, mode: 0o600 }
    }

    /// Whether this is the expected response.
    pub(crate) fn is_answered_by(&self, response: &Value) -> bool {
        let (status, code) = (&response["status"], &response["error"]["code"]);
        let set_aside = response["setAside"].is_string();
        let matches = match self.expected {
            Expected::Done(words) => {
                response["ok"] == true && words.iter().any(|word| status == word) && !set_aside
            }
            Expected::Refused(expected) => {
                response["ok"] == false && code == expected && !set_aside
            }
            Expected::SetAside(expected) => {
                response["ok"] == false && code == expected && set_aside
            }
        };
        matches && response["request"] == format!("{}.json", self.name)
    }

    pub(crate) fn is_set_aside(&self) -> bool {
        matches!(self.expected, Expected::SetAside(_))
    }
}
