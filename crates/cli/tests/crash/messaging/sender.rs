//! One sender over HTTP: messages, events and requests, each with an idempotency key, repeated until
//! there is a receipt.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::Endpoint;
use crate::random::Random;

/// Longest pause between two submissions, in milliseconds.
const PAUSE_MAX_MS: u64 = 12;

/// The submissions of one sender, in order.
pub(crate) struct Sender {
    pub(crate) submissions: Vec<Submission>,
    random: Random,
}

/// One interaction to send.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) to: &'static str,
    /// A word that occurs only in its text.
    pub(crate) word: String,
    pub(crate) answer: Answer,
    body: Value,
    /// It is sent once more after the receipt.
    repeat: bool,
    pub(crate) receipt: Option<Receipt>,
}

/// Whether it gets an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Expected,
    None,
}

/// The answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It is in the inbox, with this id.
    Accepted(String),
    /// Its agent does not run.
    Refused,
}

impl Sender {
    /// The user: messages and requests to all agents.
    pub(crate) fn user(submissions: u64, mut random: Random) -> Self {
        let submission = |number| {
            let (to, intent) = match random.below(9) {
                0 => ("front", None),
                1 | 2 => ("lead", None),
                3 => ("lead", Some("plan")),
                4 => ("expert", Some("measure")),
                5 => ("quiet", Some("status")),
                6 => ("quiet", None),
                7 => ("clerk", Some("count")),
                _ => ("clerk", None),
            };
            Submission::new("user", number, to, intent, &mut random)
        };
        let submissions = (0..submissions).map(submission).collect();
        Self { submissions, random }
    }

    /// An external source: events.
    pub(crate) fn external(source: &'static str, submissions: u64, mut random: Random) -> Self {
        let submission = |number| {
            let to = ["front", "front", "lead", "clerk"][usize::try_from(random.below(4)).unwrap()];
            Submission::new(source, number, to, None, &mut random)
        };
        let submissions = (0..submissions).map(submission).collect();
        Self { submissions, random }
    }

    /// A last message, which makes the agent `quiet` read its inbox.
    pub(crate) fn last() -> Self {
        let mut random = Random(0);
        let submission = Submission::new("closing", 0, "quiet", None, &mut random);
        Self { submissions: vec![Submission { repeat: true, ..submission }], random }
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.submissions.iter().all(|submission| submission.receipt.is_some() && !submission.repeat)
    }

    /// Whether every request has its final answer; `None` when the server is gone.
    pub(crate) fn is_answered(&self, endpoint: &Endpoint) -> Option<bool> {
        for submission in
            self.submissions.iter().filter(|submission| submission.answer == Answer::Expected)
        {
            if let Some(Receipt::Accepted(id)) = &submission.receipt {
                let (_, request) =
                    endpoint.request("GET", &format!("/v1/requests/{id}"), "", "")?;
                if request["state"] != "completed" && request["state"] != "failed" {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Sends everything without a receipt, until the server is gone.
    pub(crate) fn send(&mut self, endpoint: &Endpoint) -> Result<(), String> {
        for submission in &mut self.submissions {
            while submission.receipt.is_none() || submission.repeat {
                let repeated = submission.receipt.is_some();
                let Some(receipt) = submission.send(endpoint)? else { return Ok(()) };
                submission.repeat &= !repeated;
                submission.receipt = Some(receipt);
                endpoint.pause(Duration::from_millis(self.random.below(PAUSE_MAX_MS)));
            }
        }
        Ok(())
    }
}

impl Submission {
    fn new(
        from: &'static str,
        number: u64,
        to: &'static str,
        intent: Option<&str>,
        random: &mut Random,
    ) -> Self {
        let word = format!("{from}-{number}-");
        let prefix = if random.below(3) == 0 { "forward " } else { "" };
        let mut body = match intent {
            Some(intent) => json!({ "request": { "intent": intent, "params": { "n": word } } }),
            None => json!({ "message": format!("{prefix}{word}") }),
        };
        if to == "quiet" && intent.is_some() {
            // It wakes no agent: the agent or the timeout answers it, once.
            body["timeout_s"] = json!(1);
        }
        if !["user", "closing"].contains(&from) {
            body["from"] = json!(from);
        }
        if random.below(5) == 0 {
            body["mode"] = json!("steer");
        }
        if random.below(5) == 0 {
            body["salience"] = json!("important");
        }
        let answer = if intent.is_some() { Answer::Expected } else { Answer::None };
        Self { to, word, answer, body, repeat: random.below(3) == 0, receipt: None }
    }

    /// Returns the receipt; `None` when the server is gone.
    fn send(&self, endpoint: &Endpoint) -> Result<Option<Receipt>, String> {
        let path = format!("/v1/agents/{}/inbox", self.to);
        let Some((status, body)) =
            endpoint.request("POST", &path, &self.word, &self.body.to_string())
        else {
            return Ok(None);
        };
        let word = body["receipt"].as_str().unwrap_or_default();
        let accepted = body["id"].as_str().map(|id| Receipt::Accepted(id.to_owned()));
        match (&self.receipt, status, accepted) {
            // A refused submission that is sent again is a new one.
            (None | Some(Receipt::Refused), 202, Some(accepted)) => Ok(Some(accepted)),
            (Some(before @ Receipt::Accepted(_)), 202, Some(accepted))
                if word == "deduplicated" =>
            {
                if accepted == *before {
                    Ok(Some(accepted))
                } else {
                    Err(format!("{self:?}: {body}"))
                }
            }
            // The agent `clerk` is not running at the moment.
            (None | Some(Receipt::Refused), 404 | 409, None) if self.to == "clerk" => {
                Ok(Some(Receipt::Refused))
            }
            _ => Err(format!("{self:?} was answered with {status}: {body}")),
        }
    }
}
