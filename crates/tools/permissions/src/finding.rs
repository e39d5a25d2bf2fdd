//! Findings about the parts of a call, and the verdict that follows from them.

use std::fmt;

use antiphon_core::port::{GateVerdict, Rule};

/// Decision about a call or a part of it, ordered from the least strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It runs.
    Allow,
    /// It needs an approval.
    Ask,
    /// It does not run.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Decision about one command of a script, one file, or a whole call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The command, file or tool, for display.
    pub what: String,
    /// Decision about this part.
    pub decision: Decision,
    /// The rule or the default that decided, for display.
    pub because: String,
    /// The rule that decided; absent if a default decided.
    pub rule: Option<Rule>,
    /// The rule that would allow this part. `None`: only a rule for the whole call would.
    pub(crate) proposal: Option<Rule>,
}

/// The verdict on a call, with the findings that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The verdict of the gate.
    pub verdict: GateVerdict,
    /// Findings, in the order of the call.
    pub findings: Vec<Finding>,
}

impl Explanation {
    /// Derives the verdict from `findings`. `whole` is the rule that allows exactly this call.
    pub(crate) fn of(findings: Vec<Finding>, whole: Rule) -> Self {
        let decision = findings.iter().map(|finding| finding.decision).max();
        let verdict = match decision {
            // Every evaluated call yields at least one finding.
            None => GateVerdict::Deny { reason: "nothing is known about this call".to_owned() },
            Some(Decision::Allow) => GateVerdict::Allow,
            Some(Decision::Deny) => {
                let mut reason = reasons(&findings, Decision::Deny);
                reason.push_str(". Do without it, or tell the user what you need and why.");
                GateVerdict::Deny { reason }
            }
            Some(Decision::Ask) => {
                let rule = proposal(&findings).unwrap_or(whole);
                let mut reason = reasons(&findings, Decision::Ask);
                reason.push_str(". ");
                reason.push_str(&advice(&findings, &rule));
                GateVerdict::Ask { reason, rule }
            }
        };
        Self { verdict, findings }
    }

    /// The same for findings of a policy: a person can allow the call once, and no rule can.
    pub(crate) fn of_policy(findings: Vec<Finding>) -> Self {
        let Self { verdict, findings } = Self::of(findings, Rule(String::new()));
        let verdict = match verdict {
            GateVerdict::Ask { .. } => {
                let mut reason = reasons(&findings, Decision::Ask);
                reason.push_str(
                    ". A person can allow this call; it is asked again for the next one.",
                );
                GateVerdict::Ask { reason, rule: Rule(String::new()) }
            }
            GateVerdict::Allow | GateVerdict::Deny { .. } => verdict,
        };
        Self { verdict, findings }
    }

    /// Decision about the whole call.
    pub fn decision(&self) -> Decision {
        match self.verdict {
            GateVerdict::Allow => Decision::Allow,
            GateVerdict::Ask { .. } => Decision::Ask,
            GateVerdict::Deny { .. } => Decision::Deny,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision())?;
        match &self.verdict {
            GateVerdict::Allow => {}
            GateVerdict::Ask { reason, .. } | GateVerdict::Deny { reason } => {
                write!(f, ": {reason}")?;
            }
        }
        for finding in &self.findings {
            write!(f, "\n  {:<5}  {}: {}", finding.decision, finding.what, finding.because)?;
        }
        Ok(())
    }
}

/// The first reasons for `decision`, joined.
fn reasons(findings: &[Finding], decision: Decision) -> String {
    const REASONS_MAX: usize = 3;
    let mut reasons: Vec<String> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.decision == decision) {
        let reason = format!("{}: {}", finding.what, finding.because);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let more = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    reasons.join("; ")
}

/// The one rule that allows every part the gate asks about, if there is one.
fn proposal(findings: &[Finding]) -> Option<Rule> {
    let mut questions = findings.iter().filter(|finding| finding.decision == Decision::Ask);
    let first = questions.next()?.proposal.clone()?;
    questions.all(|finding| finding.proposal.as_ref() == Some(&first)).then_some(first)
}

fn advice(findings: &[Finding], rule: &Rule) -> String {
    let asks = findings
        .iter()
        .find(|finding| finding.decision == Decision::Ask && finding.rule.is_some())
        .and_then(|finding| finding.rule.as_ref());
    match asks {
        Some(asks) => format!(
            "Without an approver it does not run, unless `{asks}` is removed from the \
            permissions; an approver can allow `{rule}`."
        ),
        None => format!("To allow it from now on, add `{rule}` to `allow` in the permissions."),
    }
}
