//! What was found about one part of a call, and what follows from all of them.

use std::fmt;

use antiphon_core::port::{Rule, Verdict};

/// What becomes of something, from the laxest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It may run.
    Allow,
    /// Somebody is asked.
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

/// One command of a script, one file, or a call as a whole, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub what: String,
    /// What becomes of it.
    pub decision: Decision,
    /// The rule or the default that says so.
    pub because: String,
    /// The rule that matched, if one did.
    pub rule: Option<Rule>,
    /// The rule that would allow it. `None`: only one for the whole call would.
    pub(crate) proposal: Option<Rule>,
}

/// An account of how a call was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What the gate says.
    pub verdict: Verdict,
    /// What it saw, in order.
    pub findings: Vec<Finding>,
}

impl Explanation {
    /// What follows from `findings`. `whole` is the rule that allows this very call.
    pub(crate) fn of(findings: Vec<Finding>, whole: Rule) -> Self {
        let decision = findings.iter().map(|finding| finding.decision).max();
        let verdict = match decision {
            // A gate that found nothing has not looked.
            None => Verdict::Deny { reason: "nothing is known about this call".to_owned() },
            Some(Decision::Allow) => Verdict::Allow,
            Some(Decision::Deny) => {
                let mut reason = reasons(&findings, Decision::Deny);
                reason.push_str(". Do without it, or tell the user what you need and why.");
                Verdict::Deny { reason }
            }
            Some(Decision::Ask) => {
                let rule = proposal(&findings).unwrap_or(whole);
                let mut reason = reasons(&findings, Decision::Ask);
                reason.push_str(". ");
                reason.push_str(&advice(&findings, &rule));
                Verdict::Ask { reason, rule }
            }
        };
        Self { verdict, findings }
    }

    /// What becomes of the call.
    pub fn decision(&self) -> Decision {
        match self.verdict {
            Verdict::Allow => Decision::Allow,
            Verdict::Ask { .. } => Decision::Ask,
            Verdict::Deny { .. } => Decision::Deny,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision())?;
        match &self.verdict {
            Verdict::Allow => {}
            Verdict::Ask { reason, .. } | Verdict::Deny { reason } => write!(f, ": {reason}")?,
        }
        for finding in &self.findings {
            write!(f, "\n  {:<5}  {}: {}", finding.decision, finding.what, finding.because)?;
        }
        Ok(())
    }
}

/// The first reasons for `decision`, as one text.
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

/// The rule that allows all that is asked about, if one does.
fn proposal(findings: &[Finding]) -> Option<Rule> {
    let mut asked = findings.iter().filter(|finding| finding.decision == Decision::Ask);
    let first = asked.next()?.proposal.clone()?;
    asked.all(|finding| finding.proposal.as_ref() == Some(&first)).then_some(first)
}

fn advice(findings: &[Finding], rule: &Rule) -> String {
    let asks = findings
        .iter()
        .find(|finding| finding.decision == Decision::Ask && finding.rule.is_some())
        .and_then(|finding| finding.rule.as_ref());
    match asks {
        Some(asks) => format!(
            "Where nobody can be asked it does not run, unless `{asks}` is taken out of the \
             permissions; whoever is asked can allow `{rule}`."
        ),
        None => format!("To allow it from now on, add `{rule}` to `allow` in the permissions."),
    }
}
