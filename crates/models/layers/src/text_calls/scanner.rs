//! Finds calls in streamed text.
//!
//! | written as                                   | example                                    |
//! |----------------------------------------------|--------------------------------------------|
//! | a tag                                        | `<tool_call>{"name":…}</tool_call>`        |
//! | a fence, with or without a language          | ` ```json {"name":…} ``` `                 |
//! | the whole answer                             | `{"name":…}`                               |
//!
//! The JSON is one call or a list of calls, see [`WrittenCall`]. A closing delimiter inside of a
//! string does not count, and the last one may be missing. A block of more than [`HELD_BYTES_MAX`]
//! is text. The result does not depend on how the text is split, and each byte is read a fixed
//! number of times.

use super::delimiters::{Close, Delimiters};
use super::json_text::{JsonText, Progress};
use super::written_call::WrittenCall;

/// Longest block that is held back; a longer one is text.
const HELD_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, PartialEq)]
pub(super) enum Fragment {
    Text(String),
    Call(WrittenCall),
}

pub(super) struct Scanner {
    tools: Vec<String>,
    /// Unprocessed text starts at `front`.
    text: String,
    front: usize,
    state: State,
}

/// What is at the front.
#[derive(Debug)]
enum State {
    /// Possibly a call that is the whole answer.
    Whole(JsonText),
    /// Text, or the start of an opening delimiter.
    Prose,
    /// A block, from its opening delimiter on.
    Block(&'static Delimiters, Close),
    /// The rest of a block that is too long for a call.
    Passing(&'static Delimiters),
}

impl Scanner {
    pub(super) fn new(tools: Vec<String>) -> Self {
        let state = State::Whole(JsonText::new());
        Self { tools, text: String::new(), front: 0, state }
    }

    /// Adds text and returns what is decided now.
    pub(super) fn feed(&mut self, text: &str) -> Vec<Fragment> {
        self.text.push_str(text);
        let mut found = Vec::new();
        while self.step(&mut found) {}
        self.text.drain(..self.front);
        self.front = 0;
        found
    }

    /// The text ended: decides the rest and resets.
    pub(super) fn finish(&mut self) -> Vec<Fragment> {
        let mut found = Vec::new();
        loop {
            while self.step(&mut found) {}
            let (inside, otherwise) = match &self.state {
                State::Whole(_) => (0..self.held().len(), State::Prose),
                State::Block(delimiters, Close::BehindJson(json)) => {
                    let inside = delimiters.open.len()..json.read();
                    (inside, State::Block(delimiters, Close::anywhere(delimiters)))
                }
                State::Block(_, Close::Anywhere(_)) | State::Prose | State::Passing(_) => break,
            };
            if let Some(calls) = self.calls(&self.held()[inside]) {
                found.extend(calls.into_iter().map(Fragment::Call));
                self.front = self.text.len();
                break;
            }
            self.state = otherwise;
        }
        self.release(self.held().len(), &mut found);
        self.take_held();
        found
    }

    /// Returns the held-back text and resets.
    pub(super) fn take_held(&mut self) -> String {
        let held = self.held().to_owned();
        self.text.clear();
        self.front = 0;
        self.state = State::Whole(JsonText::new());
        held
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.held().is_empty()
    }

    fn held(&self) -> &str {
        &self.text[self.front..]
    }

    /// Decides about the front. Returns whether to continue.
    fn step(&mut self, found: &mut Vec<Fragment>) -> bool {
        let held = &self.text[self.front..];
        match &mut self.state {
            State::Whole(json) => {
                if json.follow(held) == Progress::Possible && held.len() <= HELD_BYTES_MAX {
                    return false;
                }
                self.state = State::Prose;
                true
            }
            State::Prose => {
                let (at, delimiters) = Delimiters::first(held);
                if let Some(delimiters) = delimiters {
                    self.state = State::Block(delimiters, Close::behind_json(delimiters));
                }
                self.release(at, found);
                delimiters.is_some()
            }
            State::Block(delimiters, close) => {
                let delimiters = *delimiters;
                let end = close.find(delimiters, held).map(|at| at + delimiters.close.len());
                let too_long = end.unwrap_or(held.len()) > HELD_BYTES_MAX;
                match (close, end) {
                    (_, None) if !too_long => return false,
                    (close @ Close::BehindJson(_), _) if too_long => {
                        *close = Close::anywhere(delimiters);
                    }
                    (Close::BehindJson(_), Some(end)) => self.call_or_text(delimiters, end, found),
                    (Close::Anywhere(_), Some(end)) => {
                        self.state = State::Prose;
                        self.release(end, found);
                    }
                    (Close::BehindJson(_) | Close::Anywhere(_), None) => {
                        let passed = held.len() - delimiters.half_close(held);
                        self.state = State::Passing(delimiters);
                        self.release(passed, found);
                    }
                }
                true
            }
            State::Passing(delimiters) => {
                let end = held.find(delimiters.close).map(|at| at + delimiters.close.len());
                let passed = end.unwrap_or_else(|| held.len() - delimiters.half_close(held));
                if end.is_some() {
                    self.state = State::Prose;
                }
                self.release(passed, found);
                end.is_some()
            }
        }
    }

    /// Handles the block at the front, which ends at byte `end` and may be JSON.
    fn call_or_text(&mut self, delimiters: &Delimiters, end: usize, found: &mut Vec<Fragment>) {
        self.state = State::Prose;
        match self.calls(&self.held()[delimiters.open.len()..end - delimiters.close.len()]) {
            Some(calls) => {
                self.front += end;
                found.extend(calls.into_iter().map(Fragment::Call));
            }
            None => self.release(end, found),
        }
    }

    /// Releases `bytes` as text.
    fn release(&mut self, bytes: usize, found: &mut Vec<Fragment>) {
        let text = &self.text[self.front..self.front + bytes];
        self.front += bytes;
        match found.last_mut() {
            Some(Fragment::Text(before)) => before.push_str(text),
            Some(Fragment::Call(_)) | None if text.is_empty() => {}
            Some(Fragment::Call(_)) | None => found.push(Fragment::Text(text.to_owned())),
        }
    }

    fn calls(&self, inside: &str) -> Option<Vec<WrittenCall>> {
        let word = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        WrittenCall::all(&inside[word.unwrap_or_default()..], &self.tools)
    }
}
