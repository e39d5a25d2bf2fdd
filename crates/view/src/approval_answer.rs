//! What a person typed as the answer to an [`ApprovalQuestion`](crate::ApprovalQuestion), and when no answer is needed
//! any longer.

use antiphon_core::{Approval, Decision, Event, EventBody};

/// The answers that a person can type.
pub const ANSWERS: &str = "y, t, a, or n";

/// A decision, with the comment that the model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// What was decided.
    pub decision: Decision,
    /// Why the call is denied; absent when the person gave no reason.
    pub comment: Option<String>,
}

impl ApprovalAnswer {
    /// Reads a typed line. A text that is none of the answers denies the call, and is the reason. `None` for an empty
    /// line.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let decision = match line.to_ascii_lowercase().as_str() {
            "" => return None,
            "y" | "yes" => Decision::AllowOnce,
            "t" | "task" => Decision::AllowTask,
            "a" | "always" => Decision::AllowAlways,
            "n" | "no" => Decision::Deny,
            _ => return Some(Self { decision: Decision::Deny, comment: Some(line.to_owned()) }),
        };
        Some(Self { decision, comment: None })
    }
}

/// Whether an event decides an approval, or ends the task that needs it.
pub fn settles(event: &Event, approval: &Approval) -> bool {
    if let EventBody::ApprovalDecided(decided) = &event.body {
        return decided.approval_id == approval.approval_id;
    }
    event.body.ends_task() && approval.task_id == event.task_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_line_is_a_decision_or_the_reason_of_a_refusal() {
        let allowed = |decision| Some(ApprovalAnswer { decision, comment: None });
        assert_eq!(ApprovalAnswer::parse(" Yes "), allowed(Decision::AllowOnce));
        assert_eq!(ApprovalAnswer::parse("t"), allowed(Decision::AllowTask));
        assert_eq!(ApprovalAnswer::parse("always"), allowed(Decision::AllowAlways));
        assert_eq!(ApprovalAnswer::parse("N"), allowed(Decision::Deny));
        assert_eq!(ApprovalAnswer::parse("  "), None);
        let comment = Some("not on Fridays".to_owned());
        let denied = ApprovalAnswer { decision: Decision::Deny, comment };
        assert_eq!(ApprovalAnswer::parse("not on Fridays"), Some(denied));
    }
}
