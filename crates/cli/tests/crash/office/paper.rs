//! A file that is dropped, and what has to come of it.

use serde_json::Value;

/// A file that is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    /// Its name, without `.json`.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) expected: Expected,
    pub(crate) effect: Effect,
    /// Stands in what it has done, and nowhere else.
    pub(crate) word: String,
    /// The response to what lay there before.
    pub(crate) replaces: Option<String>,
}

/// What the response has to say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// It was carried out, with one of these words.
    Done(&'static [&'static str]),
    /// It was refused, with this code.
    Refused(&'static str),
    /// It was no request, for this reason, and is set aside.
    SetAside(&'static str),
}

/// What has to be there because of it, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that is told apart.
    None,
    /// Nothing: others may write to it.
    Open,
    /// Something in an inbox.
    Arrived,
    /// The same, which is answered.
    Asked,
    /// A task of its own.
    Task,
    /// An agent is there.
    Started,
    /// It is not any more.
    Stopped,
    /// A task has ended.
    Canceled,
}

impl Paper {
    pub(crate) fn new(
        name: &str,
        text: String,
        expected: Expected,
        effect: Effect,
        word: &str,
    ) -> Self {
        let (name, word) = (name.to_owned(), word.to_owned());
        Self { name, text, expected, effect, word, replaces: None }
    }

    /// Whether the response says what it has to.
    pub(crate) fn is_answered_by(&self, response: &Value) -> bool {
        let (status, code) = (&response["status"], &response["error"]["code"]);
        let aside = response["setAside"].is_string();
        let fits = match self.expected {
            Expected::Done(words) => {
                response["ok"] == true && words.iter().any(|word| status == word) && !aside
            }
            Expected::Refused(expected) => response["ok"] == false && code == expected && !aside,
            Expected::SetAside(expected) => response["ok"] == false && code == expected && aside,
        };
        fits && response["request"] == format!("{}.json", self.name)
    }

    pub(crate) fn is_set_aside(&self) -> bool {
        matches!(self.expected, Expected::SetAside(_))
    }
}
