//! The question on the screen, and when a key may answer it.
//!
//! A question can appear while a person types. So keys answer only a question that has been on the screen for
//! [`READING_TIME`] in which no key was pressed; a key that comes earlier is text of the prompt. The time counts from the
//! frame that showed the question, and ends only when no key waits to be read.

use std::time::{Duration, Instant};

use antiphon_core::{Approval, ApprovalReply, Decision, Question};
use antiphon_view::typed_reply;

/// How long a question must have been on the screen, without a key, before a key answers it.
pub(crate) const READING_TIME: Duration = Duration::from_secs(1);

/// An approval that was asked for on this terminal.
pub(crate) struct AskedQuestion {
    pub(crate) approval: Approval,
    /// When it was on the screen first.
    shown: Option<Instant>,
    /// The later of that and the last key.
    quiet_since: Option<Instant>,
    is_ready: bool,
    /// The prompt had text before the question appeared: that text is no consent.
    had_draft: bool,
    /// The next key says whether the rule is kept for good.
    confirms_always: bool,
}

/// What a key or a typed text does to the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It answers the question.
    Decided(ApprovalReply),
    /// One more key decides.
    Asks,
    /// The plan is changed first.
    Edits,
    /// It does not answer, and says why.
    Refused(String),
    /// It has nothing to do with the question.
    Unrelated,
}

impl AskedQuestion {
    pub(crate) fn new(approval: Approval) -> Self {
        Self {
            approval,
            shown: None,
            quiet_since: None,
            is_ready: false,
            had_draft: false,
            confirms_always: false,
        }
    }

    /// A frame with the question is on the screen.
    pub(crate) fn is_on_screen(&mut self, now: Instant, has_draft: bool) {
        if self.shown.is_none() {
            (self.shown, self.quiet_since, self.had_draft) = (Some(now), Some(now), has_draft);
        }
    }

    /// Something else was on the screen: the question begins anew.
    pub(crate) fn was_hidden(&mut self) {
        (self.shown, self.quiet_since, self.is_ready) = (None, None, false);
    }

    /// A key or a paste arrived that did not answer. Its text begins the prompt.
    pub(crate) fn typed(&mut self, now: Instant) {
        self.quiet_since = self.quiet_since.map(|_| now);
        (self.is_ready, self.confirms_always) = (false, false);
    }

    /// The prompt is empty: what is typed from now on is typed in view of the question.
    pub(crate) fn prompt_is_empty(&mut self) {
        self.had_draft = false;
    }

    /// When keys will answer, unless one is pressed before. `None` when they do, or the question is not shown.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        self.quiet_since.filter(|_| !self.is_ready).map(|since| since + READING_TIME)
    }

    /// The time is over, and no key waits to be read.
    pub(crate) fn be_ready(&mut self) {
        self.is_ready = true;
    }

    /// What the person can do now.
    pub(crate) fn hint(&self) -> &'static str {
        if self.confirms_always {
            return "Always? y allows it for good; any other key does not";
        }
        match &self.approval.question {
            _ if !self.is_ready => "A question: read it; keys answer it in a second",
            Some(Question::Choice(_)) => {
                "Type a number, a label or your answer, then Enter; - leaves it unanswered"
            }
            Some(Question::Plan(_)) => {
                "y accepts the plan, e edits it, n rejects it; or type what to change"
            }
            None if self.has_rule() => "y once, t for this task, a always, n no; or type why not",
            None => "y once, n no; or type why not",
        }
    }

    /// Whether the next key, whatever it is, only confirms or does not.
    pub(crate) fn confirms(&self) -> bool {
        self.confirms_always
    }

    /// Whether Enter in an empty prompt takes the default of the question.
    pub(crate) fn takes_default(&self) -> bool {
        self.is_ready && self.is_choice() && typed_reply(&self.approval, "").is_ok()
    }

    /// A key in an empty prompt.
    pub(crate) fn key(&mut self, key: char) -> Answer {
        if self.is_choice() {
            return Answer::Unrelated;
        }
        if std::mem::take(&mut self.confirms_always) {
            return if key == 'y' {
                decided(Decision::AllowAlways)
            } else {
                Answer::Refused("Not allowed: the answer to \"always?\" was not y".to_owned())
            };
        }
        let is_plan = matches!(self.approval.question, Some(Question::Plan(_)));
        let decision = match key {
            'e' if is_plan && self.is_ready => return Answer::Edits,
            'y' => Decision::AllowOnce,
            't' => Decision::AllowTask,
            'a' => Decision::AllowAlways,
            'n' => Decision::Deny,
            _ => return Answer::Unrelated,
        };
        if !self.is_ready {
            return Answer::Refused(format!(
                "Nothing is answered: `{key}` came within a second of the question or of another key. Remove it from \
                 the prompt, wait a second and press it again"
            ));
        }
        self.asked_for(decision)
    }

    /// A typed text, sent with Enter: a reason to refuse, or an answer that was typed in view of the question.
    pub(crate) fn text(&mut self, text: &str, now: Instant) -> Answer {
        if self.shown.is_none_or(|shown| now.saturating_duration_since(shown) < READING_TIME) {
            return Answer::Refused(
                "Nothing is sent: a question appeared while you typed. Enter refuses it with this text".to_owned(),
            );
        }
        match typed_reply(&self.approval, text) {
            Err(possible) => Answer::Refused(format!(
                "`{}` is no answer. Possible: {possible}",
                antiphon_view::text::one_line(text)
            )),
            Ok(reply) if self.is_choice() && !self.had_draft => Answer::Decided(reply),
            Ok(_) if self.is_choice() => Answer::Refused(
                "Nothing is answered: this was typed before the question. Clear the prompt, then answer".to_owned(),
            ),
            Ok(reply) if reply.decision == Decision::Deny => Answer::Decided(reply),
            Ok(_) if self.had_draft || !self.is_ready => Answer::Refused(
                "Nothing is allowed: this was typed before the question, or with Enter at once. Wait a second, then \
                 press Enter; or clear the prompt and press a key"
                    .to_owned(),
            ),
            Ok(reply) => self.asked_for(reply.decision),
        }
    }

    /// Whether the question has choices, which are typed: no single key answers it.
    fn is_choice(&self) -> bool {
        matches!(self.approval.question, Some(Question::Choice(_)))
    }

    fn asked_for(&mut self, decision: Decision) -> Answer {
        match decision {
            Decision::AllowTask | Decision::AllowAlways if !self.has_rule() => {
                Answer::Refused("This can be allowed once only: y or n".to_owned())
            }
            Decision::AllowAlways => {
                self.confirms_always = true;
                Answer::Asks
            }
            Decision::AllowOnce | Decision::AllowTask | Decision::Deny | Decision::Expire => {
                decided(decision)
            }
        }
    }

    /// Whether a rule can allow the call for longer than once.
    fn has_rule(&self) -> bool {
        self.approval.question.is_none() && !self.approval.rule.0.is_empty()
    }
}

fn decided(decision: Decision) -> Answer {
    Answer::Decided(ApprovalReply { decision, comment: None, answer: None })
}

#[cfg(test)]
mod tests;
