//! One set of rules with a mode, and the findings it yields for a call.

use std::sync::Arc;

use antiphon_core::Effect;
use antiphon_core::port::{GateVerdict, Rule};

use crate::call::{Call, Subject};
use crate::config::{ConfigError, PermissionMode, RuleEntry};
use crate::finding::{Decision, Finding};
use crate::gate::GateContext;
use crate::rule::{Match, ParsedRule};
use crate::rules::{LoadedRule, RuleKind};

mod file;
mod git;
mod network;
mod script;
mod unsandboxed;

/// Rules and a mode. A gate has one layer, and one more for each time it was narrowed.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) mode: PermissionMode,
    allow: Vec<LoadedRule>,
    ask: Vec<LoadedRule>,
    deny: Vec<LoadedRule>,
    kind: LayerKind,
}

/// Whose rules a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerKind {
    /// A user's: what no rule matches, the mode decides.
    User,
    /// A policy's: it restricts what its rules match, and nothing else.
    Policy,
}

impl Layer {
    pub(crate) fn new(
        mode: PermissionMode,
        [allow, ask, deny]: [&[RuleEntry]; 3],
        root: &str,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            mode,
            allow: LoadedRule::all(allow, RuleKind::Allow, root)?,
            ask: LoadedRule::all(ask, RuleKind::Restrict, root)?,
            deny: LoadedRule::all(deny, RuleKind::Restrict, root)?,
            kind: LayerKind::User,
        })
    }

    /// A layer that restricts what these rules match, and nothing else.
    pub(crate) fn of_policy(
        ask: &[RuleEntry],
        deny: &[RuleEntry],
        root: &str,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            kind: LayerKind::Policy,
            ..Self::new(PermissionMode::Full, [&[], ask, deny], root)?
        })
    }

    /// A layer that is at least as strict. It keeps the allow rules of this layer, unless its mode
    /// is read-only.
    pub(crate) fn narrowed(
        &self,
        mode: PermissionMode,
        [ask, deny]: [&[RuleEntry]; 2],
        root: &str,
    ) -> Result<Self, ConfigError> {
        let mut narrow = Self::new(mode, [&[], ask, deny], root)?;
        if mode > PermissionMode::ReadOnly || self.mode == mode {
            narrow.allow.clone_from(&self.allow);
        }
        Ok(narrow)
    }

    /// Findings of this layer for a call. `grants` are rules that a user approved.
    pub(crate) fn judge(
        &self,
        call: &Call<'_>,
        context: &GateContext,
        grants: &[Arc<ParsedRule>],
    ) -> Vec<Finding> {
        let evaluation = Evaluation { layer: self, context, grants, call };
        let mut findings: Vec<Finding> = evaluation.arguments().into_iter().collect();
        match &call.subject {
            Subject::Malformed(reason) => findings.push(Finding {
                what: format!("`{}`", call.tool),
                decision: Decision::Deny,
                because: format!("the arguments cannot be read: {reason}"),
                rule: None,
                proposal: None,
            }),
            Subject::Script { script, items, hosts, repository, unsandboxed } => {
                findings.extend(evaluation.script(script, items, *repository));
                findings.extend(evaluation.requested_hosts(hosts));
                if *unsandboxed {
                    findings.extend(evaluation.unsandboxed(script, items));
                }
            }
            Subject::File { resolved, writes } => {
                findings.push(evaluation.file_call(resolved, *writes));
            }
            Subject::Page { hosts } => {
                findings.extend(evaluation.requested_hosts(hosts));
                findings.extend(evaluation.restricted_tool());
            }
            Subject::Other => findings.push(evaluation.other()),
        }
        findings
    }
}

impl Layer {
    /// What the rules of this layer say about a call of a tool that is not ours, without its mode. A rule
    /// that allows must name the tool: `*` does not.
    pub(crate) fn judge_by_rules(
        &self,
        call: &Call<'_>,
        grants: &[Arc<ParsedRule>],
    ) -> Option<GateVerdict> {
        let restricted = self.restricting_verdict(call);
        if let Some(GateVerdict::Deny { .. }) = restricted {
            return restricted;
        }
        let covers = |rule: &ParsedRule| rule.names_tool() && matches_other(rule, call);
        let granted = grants.iter().any(|grant| covers(grant));
        if !granted && restricted.is_some() {
            return None;
        }
        let allowed = granted || self.allow.iter().any(|loaded| covers(&loaded.rule));
        allowed.then_some(GateVerdict::Allow)
    }

    /// What the rules that ask or deny say about such a call, if one is about it.
    pub(crate) fn restricting_verdict(&self, call: &Call<'_>) -> Option<GateVerdict> {
        let restricts = |loaded: &&LoadedRule| {
            let pattern = loaded.rule.argument().filter(|_| loaded.rule.is_for(call.tool));
            loaded.rule.is_whole(call.tool)
                || pattern
                    .is_some_and(|pattern| pattern.matches(&call.arguments) >= Match::Possible)
        };
        if let Some(rule) = self.deny.iter().find(restricts) {
            return Some(GateVerdict::Deny { reason: format!("{} denies it", rule.shown()) });
        }
        let rule = self.ask.iter().find(restricts)?;
        let reason = format!("{} asks", rule.shown());
        Some(GateVerdict::Ask { reason, rule: Rule(String::new()) })
    }
}

/// Evaluates one call against one layer.
struct Evaluation<'a> {
    layer: &'a Layer,
    context: &'a GateContext,
    grants: &'a [Arc<ParsedRule>],
    call: &'a Call<'a>,
}

impl Evaluation<'_> {
    /// Finding from the rules about arguments; such a rule may match several tools.
    fn arguments(&self) -> Option<Finding> {
        let Call { tool, arguments, subject } = self.call;
        let sure = |least: Match| {
            move |loaded: &&LoadedRule| {
                let pattern = loaded.rule.argument().filter(|_| loaded.rule.is_for(tool));
                pattern.is_some_and(|pattern| pattern.matches(arguments) >= least)
            }
        };
        let what = format!("`{tool}`");
        if let Some(rule) = self.layer.deny.iter().find(sure(Match::Certain)) {
            return Some(denied_by(what, rule));
        }
        if let Some(rule) = self.layer.deny.iter().find(sure(Match::Possible)) {
            return Some(may_be_denied(what, rule));
        }
        let rule = self.layer.ask.iter().find(sure(Match::Possible))?;
        let granted = self.grants.iter().any(|grant| match subject {
            Subject::Script { script, .. } => grant.is_this_script(script),
            Subject::File { resolved, .. } => file::is_for_file(grant, tool, resolved),
            Subject::Page { .. } | Subject::Other => {
                grant.names_tool() && matches_other(grant, self.call)
            }
            Subject::Malformed(_) => false,
        });
        (!granted).then(|| asked_by(what, rule, None))
    }

    /// Finding from the rules that deny or ask about every call of the tool. A rule that allows the tool allows no
    /// host.
    fn restricted_tool(&self) -> Option<Finding> {
        let tool = self.call.tool;
        let what = format!("`{tool}`");
        let whole = |loaded: &&LoadedRule| loaded.rule.is_whole(tool);
        if let Some(rule) = self.layer.deny.iter().find(whole) {
            return Some(denied_by(what, rule));
        }
        let rule = self.layer.ask.iter().find(whole)?;
        let granted = |grant: &&Arc<ParsedRule>| grant.names_tool() && grant.is_whole(tool);
        Some(match self.grants.iter().find(granted) {
            Some(grant) => granted_by(what, grant),
            None => asked_by(what, rule, Some(Rule(tool.to_owned()))),
        })
    }

    /// Judges a tool of which only the name and the effect are known.
    fn other(&self) -> Finding {
        let tool = self.call.tool;
        let what = format!("`{tool}`");
        let whole = |loaded: &&LoadedRule| loaded.rule.is_whole(tool);
        if let Some(rule) = self.layer.deny.iter().find(whole) {
            return denied_by(what, rule);
        }
        let granted =
            self.grants.iter().filter(|grant| matches_other(grant, self.call)).collect::<Vec<_>>();
        let proposal = Some(Rule(tool.to_owned()));
        if let Some(rule) = self.layer.ask.iter().find(whole) {
            return match granted.iter().find(|grant| grant.names_tool()) {
                Some(grant) => granted_by(what, grant),
                None => asked_by(what, rule, proposal),
            };
        }
        let allows = |loaded: &&LoadedRule| matches_other(&loaded.rule, self.call);
        if let Some(rule) = self.layer.allow.iter().find(allows) {
            return allowed_by(what, rule);
        }
        let (decision, because) = match (self.layer.mode, self.context.effects.of(tool)) {
            (PermissionMode::Full, _) => (Decision::Allow, "mode full allows every tool"),
            (_, Some(Effect::ReadOnly)) => (Decision::Allow, "it changes nothing"),
            (PermissionMode::ReadOnly, _) => {
                (Decision::Deny, "mode read-only allows only tools that change nothing")
            }
            (PermissionMode::Workspace, Some(_)) => {
                (Decision::Allow, "it is a tool of Antiphon itself")
            }
            (PermissionMode::Workspace, None) => {
                (Decision::Ask, "mode workspace asks about tools that are not its own")
            }
        };
        match granted.first() {
            Some(grant) if decision == Decision::Ask => granted_by(what, grant),
            Some(_) | None => by_default(what, decision, because, proposal),
        }
    }
}

/// Whether an allow rule covers this call of an unknown tool.
fn matches_other(rule: &ParsedRule, call: &Call<'_>) -> bool {
    rule.is_whole(call.tool)
        || (rule.is_for(call.tool)
            && rule
                .argument()
                .is_some_and(|pattern| pattern.matches(&call.arguments) == Match::Certain))
}

fn denied_by(what: String, rule: &LoadedRule) -> Finding {
    Finding {
        what,
        decision: Decision::Deny,
        because: format!("{} denies it", rule.shown()),
        rule: Some(rule.text()),
        proposal: None,
    }
}

fn may_be_denied(what: String, rule: &LoadedRule) -> Finding {
    Finding {
        what,
        decision: Decision::Ask,
        because: format!("it may be what {} is about", rule.shown()),
        rule: Some(rule.text()),
        proposal: None,
    }
}

fn asked_by(what: String, rule: &LoadedRule, proposal: Option<Rule>) -> Finding {
    Finding {
        what,
        decision: Decision::Ask,
        because: format!("{} asks", rule.shown()),
        rule: Some(rule.text()),
        proposal,
    }
}

fn allowed_by(what: String, rule: &LoadedRule) -> Finding {
    Finding {
        what,
        decision: Decision::Allow,
        because: format!("{} allows it", rule.shown()),
        rule: Some(rule.text()),
        proposal: None,
    }
}

fn granted_by(what: String, grant: &ParsedRule) -> Finding {
    Finding {
        what,
        decision: Decision::Allow,
        because: format!("a user allowed `{}`", grant.text),
        rule: Some(Rule(grant.text.clone())),
        proposal: None,
    }
}

fn by_default(what: String, decision: Decision, because: &str, proposal: Option<Rule>) -> Finding {
    Finding { what, decision, because: because.to_owned(), rule: None, proposal }
}
