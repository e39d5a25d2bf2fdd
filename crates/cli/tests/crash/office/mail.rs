//! What is sent over HTTP: messages, events and requests, each under a key, again and again until
//! there is a receipt.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::Door;
use crate::dice::Dice;

/// Longest pause between two letters, in milliseconds.
const PAUSE_MAX_MS: u64 = 12;

/// Everything that one sender sends, in order.
pub(crate) struct Bag {
    pub(crate) letters: Vec<Letter>,
    dice: Dice,
}

/// Something that is sent.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: &'static str,
    /// Stands in its text, and in no other.
    pub(crate) word: String,
    pub(crate) asks: Asks,
    body: Value,
    /// It is sent once more after there is a receipt.
    again: bool,
    pub(crate) receipt: Option<Receipt>,
}

/// Whether it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Yes,
    No,
}

/// What its sender was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It is in the inbox, under this id.
    Kept(String),
    /// Its agent is not there.
    Refused,
}

impl Bag {
    /// What the user sends: messages and requests to everybody.
    pub(crate) fn of_user(letters: u64, mut dice: Dice) -> Self {
        let letter = |number| {
            let (to, intent) = match dice.below(9) {
                0 => ("front", None),
                1 | 2 => ("lead", None),
                3 => ("lead", Some("plan")),
                4 => ("expert", Some("measure")),
                5 => ("quiet", Some("status")),
                6 => ("quiet", None),
                7 => ("clerk", Some("count")),
                _ => ("clerk", None),
            };
            Letter::new("user", number, to, intent, &mut dice)
        };
        let letters = (0..letters).map(letter).collect();
        Self { letters, dice }
    }

    /// What comes from outside: events.
    pub(crate) fn of_events(source: &'static str, letters: u64, mut dice: Dice) -> Self {
        let letter = |number| {
            let to = ["front", "front", "lead", "clerk"][usize::try_from(dice.below(4)).unwrap()];
            Letter::new(source, number, to, None, &mut dice)
        };
        let letters = (0..letters).map(letter).collect();
        Self { letters, dice }
    }

    /// What wakes those who would otherwise let something wait.
    pub(crate) fn last() -> Self {
        let mut dice = Dice(0);
        let letter = Letter::new("closing", 0, "quiet", None, &mut dice);
        Self { letters: vec![Letter { again: true, ..letter }], dice }
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.letters.iter().all(|letter| letter.receipt.is_some() && !letter.again)
    }

    /// Whether every request in it has its final answer; `None` when nobody says so.
    pub(crate) fn is_answered(&self, door: &Door) -> Option<bool> {
        for letter in self.letters.iter().filter(|letter| letter.asks == Asks::Yes) {
            if let Some(Receipt::Kept(id)) = &letter.receipt {
                let (_, told) = door.ask("GET", &format!("/v1/requests/{id}"), "", "")?;
                if told["state"] != "completed" && told["state"] != "failed" {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Sends what there is no receipt for, one after the other, until nobody is there.
    pub(crate) fn send(&mut self, door: &Door) -> Result<(), String> {
        for letter in &mut self.letters {
            while letter.receipt.is_none() || letter.again {
                let repeated = letter.receipt.is_some();
                let Some(receipt) = letter.send(door)? else { return Ok(()) };
                letter.again &= !repeated;
                letter.receipt = Some(receipt);
                door.pause(Duration::from_millis(self.dice.below(PAUSE_MAX_MS)));
            }
        }
        Ok(())
    }
}

impl Letter {
    fn new(
        from: &'static str,
        number: u64,
        to: &'static str,
        intent: Option<&str>,
        dice: &mut Dice,
    ) -> Self {
        let word = format!("{from}-{number}-");
        let said = if dice.below(3) == 0 { "forward " } else { "" };
        let mut body = match intent {
            Some(intent) => json!({ "request": { "intent": intent, "params": { "n": word } } }),
            None => json!({ "message": format!("{said}{word}") }),
        };
        if to == "quiet" && intent.is_some() {
            // It wakes nobody: whether somebody answers it or the clock does, it is answered once.
            body["timeout_s"] = json!(1);
        }
        if !["user", "closing"].contains(&from) {
            body["from"] = json!(from);
        }
        if dice.below(5) == 0 {
            body["mode"] = json!("steer");
        }
        if dice.below(5) == 0 {
            body["salience"] = json!("important");
        }
        let asks = if intent.is_some() { Asks::Yes } else { Asks::No };
        Self { to, word, asks, body, again: dice.below(3) == 0, receipt: None }
    }

    /// Says what came of it; `None` when nobody said so.
    fn send(&self, door: &Door) -> Result<Option<Receipt>, String> {
        let path = format!("/v1/agents/{}/inbox", self.to);
        let Some((status, told)) = door.ask("POST", &path, &self.word, &self.body.to_string())
        else {
            return Ok(None);
        };
        let word = told["receipt"].as_str().unwrap_or_default();
        let kept = told["id"].as_str().map(|id| Receipt::Kept(id.to_owned()));
        match (&self.receipt, status, kept) {
            // What was refused may be sent once more, and is something new then.
            (None | Some(Receipt::Refused), 202, Some(kept)) => Ok(Some(kept)),
            (Some(before @ Receipt::Kept(_)), 202, Some(kept)) if word == "deduplicated" => {
                if kept == *before { Ok(Some(kept)) } else { Err(format!("{self:?}: {told}")) }
            }
            // It was not spawned yet, or is stopped just now.
            (None | Some(Receipt::Refused), 404 | 409, None) if self.to == "clerk" => {
                Ok(Some(Receipt::Refused))
            }
            _ => Err(format!("{self:?} was answered with {status}: {told}")),
        }
    }
}
