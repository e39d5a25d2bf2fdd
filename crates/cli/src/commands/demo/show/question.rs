//! A call that needs somebody's word. On a terminal the person may press a key; otherwise, or when nobody
//! does in time, the demo answers, and says that it did.

use std::time::{Duration, Instant};

use antiphon_core::{ApprovalId, ApprovalRequested, Decision};

use super::Scene;
use crate::commands::demo::Speed;
use crate::commands::demo::keys::Keys;
use crate::commands::demo::telling::one_line;
use crate::failure::{Exit, Failure};
use crate::screen::cut;
use crate::watch::Tone;

/// How long somebody at a terminal has.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long a question stands on a terminal where nobody is asked.
const SEEN_WAIT: Duration = Duration::from_millis(1200);

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Person,
    Demo,
}

/// A call that waits.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) approval_id: ApprovalId,
    /// When the demo answers.
    until: Instant,
    is_asked: bool,
}

impl Question {
    /// What the person reads.
    pub(super) fn prompt(&self, now: Instant) -> String {
        let left = self.until.saturating_duration_since(now).as_secs_f64().ceil();
        if self.is_asked {
            format!("  May it?  y: yes, for this task   n: no   (yes by itself in {left} s)")
        } else {
            "  The demo answers for you.".to_owned()
        }
    }
}

/// A key of somebody who is there.
pub(super) async fn key(keys: &mut Option<Keys>) -> u8 {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

impl Scene<'_> {
    /// A call waits for somebody's word.
    pub(super) fn asked(&mut self, agent: &str, asked: &ApprovalRequested) -> Result<(), Failure> {
        if self.stage.asked == 1 {
            self.needs.view.scene("approval", &format!("The {agent} asks first"))?;
            let why = "The command is parsed and judged before it runs. What is risky waits for a \
                       person, as long as it takes; the others go on.";
            self.needs.view.say(Tone::Faint, why)?;
        }
        let arguments: Option<serde_json::Value> = asked.arguments.to().ok();
        let command = arguments.as_ref().and_then(|arguments| arguments["command"].as_str());
        let wanted = command.unwrap_or(asked.arguments.as_str());
        let wanted = format!("? {} {}", asked.tool_name, cut(&one_line(wanted)));
        self.needs.view.agent(agent, Tone::Plain, &wanted)?;
        let reason = one_line(&asked.reason);
        // How to allow it always is for those who configure it.
        let why = reason.split(" To allow it").next().unwrap_or_default();
        self.needs.view.agent("", Tone::Faint, why)?;
        let is_asked = self.needs.keys.is_some() && self.needs.view.is_drawn();
        let wait = match (is_asked, self.needs.speed, self.needs.view.is_drawn()) {
            (true, _, _) => ANSWER_WAIT,
            (false, Speed::Readable, true) => SEEN_WAIT,
            (false, Speed::Readable | Speed::Fast, _) => Duration::ZERO,
        };
        if let Some(keys) = &mut self.needs.keys {
            keys.forget();
        }
        let until = Instant::now() + wait;
        self.questions.push(Question { approval_id: asked.approval_id.clone(), until, is_asked });
        Ok(())
    }

    /// Somebody pressed a key.
    pub(super) async fn pressed(&mut self, key: u8) -> Result<(), Failure> {
        let decision = match key {
            b'y' | b'Y' => Decision::AllowTask,
            b'n' | b'N' => Decision::Deny,
            _ => return Ok(()),
        };
        self.decide(decision, By::Person).await
    }

    /// Nobody answered in time.
    pub(super) async fn answer_late(&mut self, now: Instant) -> Result<(), Failure> {
        match self.questions.first() {
            Some(question) if now >= question.until => {
                self.decide(Decision::AllowTask, By::Demo).await
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn decide(&mut self, decision: Decision, by: By) -> Result<(), Failure> {
        if self.questions.is_empty() {
            return Ok(());
        }
        let question = self.questions.remove(0);
        let comment = (!decision.allows()).then_some("The person at the demo said no.");
        let decided = self
            .server_client
            .decide(&question.approval_id, decision, comment.map(str::to_owned))
            .await;
        let (tone, text) = match (decided, decision.allows(), by) {
            // Somebody was faster, at another terminal.
            (Err(failure), _, _) if failure.exit == Exit::Usage => {
                (Tone::Faint, "answered elsewhere".to_owned())
            }
            (Err(failure), _, _) => return Err(failure),
            (Ok(()), true, By::Person) => (Tone::Good, "yes, for this task".to_owned()),
            (Ok(()), false, By::Person) => (Tone::Bad, "no".to_owned()),
            (Ok(()), _, By::Demo) => {
                (Tone::Good, "yes, for this task (the demo answered for you)".to_owned())
            }
        };
        self.needs.view.agent("you", tone, &text)
    }
}
