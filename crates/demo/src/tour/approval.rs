//! Approvals. On a terminal the user may press a key; otherwise, or when the user does not in time, the
//! demo answers and says so.

use std::time::{Duration, Instant};

use antiphon_core::{ApprovalId, ApprovalRequested, Decision};
use antiphon_view::Tone;
use antiphon_view::display::escaped;
use antiphon_view::text::{cut, one_line};

use super::RunningTour;
use crate::keys::Keys;
use crate::{DemoError, Speed};

/// Time for the user to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Time an approval stays on a terminal when the demo answers.
const READING: Duration = Duration::from_millis(1200);

/// Who decided an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecidedBy {
    User,
    Demo,
}

/// An approval that is not decided.
#[derive(Debug)]
pub(super) struct PendingApproval {
    pub(super) approval_id: ApprovalId,
    /// When the demo answers.
    expires: Instant,
    asks_user: bool,
}

impl PendingApproval {
    /// The line the user answers.
    pub(super) fn prompt(&self, now: Instant) -> String {
        let left = self.expires.saturating_duration_since(now).as_secs_f64().ceil();
        if self.asks_user {
            format!("  Allow it?  y: yes, for this task   n: no   (yes by itself in {left} s)")
        } else {
            "  The demo answers for you.".to_owned()
        }
    }
}

/// The next key of the user. Without keys it never resolves. Cancel safe.
pub(super) async fn next_key(keys: &mut Option<Keys>) -> u8 {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

impl RunningTour<'_> {
    pub(super) fn approval_requested(
        &mut self,
        agent: &str,
        requested: &ApprovalRequested,
    ) -> Result<(), DemoError> {
        if self.tree.approvals == 1 {
            self.tour.output.chapter("approval", &format!("The {agent} asks first"))?;
            let explanation = "Antiphon parses and checks a command before it runs. A risky one waits \
                               for a person as long as needed; the other agents go on.";
            self.tour.output.say(Tone::Faint, explanation)?;
        }
        let arguments: Option<serde_json::Value> = requested.arguments.to().ok();
        let command = arguments.as_ref().and_then(|arguments| arguments["command"].as_str());
        let command = command.unwrap_or(requested.arguments.as_str());
        let call = format!("? {} {}", escaped(&requested.tool_name), cut(&one_line(command)));
        self.tour.output.agent(agent, Tone::Plain, &call)?;
        let reason = one_line(&requested.reason);
        // The rest of the reason is about the configuration.
        let reason = reason.split(" To allow it").next().unwrap_or_default();
        self.tour.output.agent("", Tone::Faint, reason)?;
        let asks_user = self.tour.keys.is_some() && self.tour.output.is_drawn();
        let speed = self.tour.demo.options.speed;
        let wait = match (asks_user, speed, self.tour.output.is_drawn()) {
            (true, _, _) => ANSWER_WAIT,
            (false, Speed::Readable, true) => READING,
            (false, Speed::Readable | Speed::Fast, _) => Duration::ZERO,
        };
        if let Some(keys) = &mut self.tour.keys {
            keys.clear();
        }
        let (approval_id, expires) = (requested.approval_id.clone(), Instant::now() + wait);
        self.pending.push(PendingApproval { approval_id, expires, asks_user });
        Ok(())
    }

    /// The user pressed a key.
    pub(super) async fn pressed(&mut self, key: u8) -> Result<(), DemoError> {
        let decision = match key {
            b'y' | b'Y' => Decision::AllowTask,
            b'n' | b'N' => Decision::Deny,
            _ => return Ok(()),
        };
        self.decide(decision, DecidedBy::User).await
    }

    /// Answers an approval the user did not answer in time.
    pub(super) async fn answer_expired(&mut self, now: Instant) -> Result<(), DemoError> {
        match self.pending.first() {
            Some(pending) if now >= pending.expires => {
                self.decide(Decision::AllowTask, DecidedBy::Demo).await
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn decide(&mut self, decision: Decision, by: DecidedBy) -> Result<(), DemoError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = self.pending.remove(0);
        let comment = (!decision.allows()).then_some("The user of the demo said no.");
        let decided = self.client.decide(&pending.approval_id, decision, comment).await;
        let (tone, text) = match (decided, decision.allows(), by) {
            // Decided before, at another terminal.
            (Err(DemoError::Usage(_)), _, _) => (Tone::Faint, "answered elsewhere"),
            (Err(error), _, _) => return Err(error),
            (Ok(()), true, DecidedBy::User) => (Tone::Good, "yes, for this task"),
            (Ok(()), false, DecidedBy::User) => (Tone::Bad, "no"),
            (Ok(()), _, DecidedBy::Demo) => {
                (Tone::Good, "yes, for this task (the demo answered for you)")
            }
        };
        self.tour.output.agent("you", tone, text)
    }
}
