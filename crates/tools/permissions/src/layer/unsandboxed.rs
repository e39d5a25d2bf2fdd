//! Judges calls of `bash` that ask to run without the sandbox.
//!
//! Rules for `bash` were written for commands in the sandbox, so they do not allow such a call. Only
//! a rule that names `unsandboxed`, or a person, does. A rule with a pattern covers a command only if
//! nothing about it may make it do something else than its words say: variables, wrappers, folders
//! and repositories that an agent can prepare. A rule for exactly this script covers all of it.

use std::sync::Arc;

use antiphon_core::port::Rule;

use super::script::{covers, pattern};
use super::{
    Evaluation, LayerKind, allowed_by, asked_by, by_default, denied_by, granted_by, may_be_denied,
};
use crate::commands::{Command, Item, Role, WarningKind};
use crate::config::PermissionMode;
use crate::finding::{Decision, Finding};
use crate::gate::Sandbox;
use crate::rule::{ExactScript, Match, Naming, ParsedRule, UNSANDBOXED};
use crate::rules::LoadedRule;

impl Evaluation<'_> {
    pub(super) fn unsandboxed(&self, script: &ExactScript, items: &[Item]) -> Vec<Finding> {
        let what = "the script without the sandbox".to_owned();
        if self.layer.kind == LayerKind::Policy {
            return self.restricted_without_sandbox(&what, script, items);
        }
        match (self.layer.mode, self.context.sandbox) {
            // There is no sandbox to leave.
            (PermissionMode::Full, _) | (PermissionMode::Workspace, Sandbox::None) => {
                return Vec::new();
            }
            (PermissionMode::ReadOnly, _) => {
                let because = "mode read-only runs no commands";
                return vec![by_default(what, Decision::Deny, because, None)];
            }
            (PermissionMode::Workspace, Sandbox::OfTask) => {
                let because = "the whole task runs in a sandbox, which no approval opens";
                return vec![by_default(what, Decision::Deny, because, None)];
            }
            (PermissionMode::Workspace, Sandbox::OfCommand) => {}
        }
        // Also for a script without a program, such as one that only redirects.
        if let Some(rule) = self.layer.deny.iter().find(|loaded| is_about_script(loaded, script)) {
            return vec![denied_by(what, rule)];
        }
        let programs = items.iter().filter_map(|item| match item {
            Item::Command(command) if command.role == Role::Program => Some(command),
            Item::Command(_) | Item::File(_) | Item::Function(_) | Item::Warning(_) => None,
        });
        let mut findings: Vec<Finding> =
            programs.map(|command| self.without_sandbox(script, command)).collect();
        if findings.is_empty() {
            findings.push(undecided(what.clone(), None));
        }
        // What is not a plain command is not covered by a rule about commands.
        let is_plain = |item: &Item| match item {
            Item::Command(_) => true,
            Item::File(_) | Item::Function(_) | Item::Warning(_) => false,
        };
        let is_granted = self.is_granted(script);
        if !items.iter().all(is_plain) && !is_granted {
            findings.push(undecided(what.clone(), None));
        }
        let commands = items.iter().filter_map(|item| match item {
            Item::Command(command) => Some(command),
            Item::File(_) | Item::Function(_) | Item::Warning(_) => None,
        });
        findings.extend(commands.filter(|_| !is_granted).filter_map(|command| {
            let because = self.not_covered(command)?;
            let what = format!("`{}` without the sandbox", command.shown());
            Some(by_default(what, Decision::Ask, &because, None))
        }));
        findings
    }

    /// Findings of the rules that restrict, and none where no rule does.
    fn restricted_without_sandbox(
        &self,
        what: &str,
        script: &ExactScript,
        items: &[Item],
    ) -> Vec<Finding> {
        let (ask, deny) = (&self.layer.ask, &self.layer.deny);
        let about_script = |loaded: &&LoadedRule| is_about_script(loaded, script);
        if let Some(rule) = deny.iter().find(about_script) {
            return vec![denied_by(what.to_owned(), rule)];
        }
        let mut findings: Vec<Finding> = Vec::new();
        findings.extend(
            ask.iter().find(about_script).map(|rule| asked_by(what.to_owned(), rule, None)),
        );
        let is_for = |loaded: &&LoadedRule| loaded.rule.is_for(UNSANDBOXED);
        for item in items {
            let Item::Command(command) = item else {
                // What is not a plain command may be what a rule is about.
                let rule = deny.iter().chain(ask).find(is_for);
                findings.extend(rule.map(|rule| may_be_denied(what.to_owned(), rule)));
                continue;
            };
            let what = format!("`{}` without the sandbox", command.shown());
            let about = |loaded: &&LoadedRule| {
                let pattern = loaded.rule.command().filter(|_| is_for(loaded));
                pattern.is_some_and(|it| it.matches(&command.words, Naming::Name) > Match::No)
            };
            match (deny.iter().find(about), ask.iter().find(about)) {
                (Some(rule), _) => findings.push(denied_by(what, rule)),
                (None, Some(rule)) => findings.push(asked_by(what, rule, None)),
                (None, None) => {}
            }
        }
        findings
    }

    /// Why no pattern covers this command, if none does.
    fn not_covered(&self, command: &Command) -> Option<String> {
        let unbounded = command.warnings.iter().find(|warning| match warning.kind {
            // A rule that names the program covers it.
            WarningKind::Risky => false,
            WarningKind::Unbounded | WarningKind::Suspicious | WarningKind::Opaque => true,
        });
        let reason = unbounded.map(|warning| warning.reason.clone());
        reason.or_else(|| self.other_repository(command))
    }

    fn without_sandbox(&self, script: &ExactScript, command: &Command) -> Finding {
        let what = format!("`{}` without the sandbox", command.shown());
        let restricts = |loaded: &&LoadedRule| {
            loaded.rule.is_for(UNSANDBOXED)
                && (loaded.rule.is_whole(UNSANDBOXED)
                    || loaded.rule.has_text(script)
                    || loaded
                        .rule
                        .command()
                        .is_some_and(|it| it.matches(&command.words, Naming::Name) > Match::No))
        };
        if let Some(rule) = self.layer.deny.iter().find(restricts) {
            return denied_by(what, rule);
        }
        let allows = |rule: &ParsedRule| {
            names(rule)
                && (rule.is_whole(UNSANDBOXED)
                    || rule.is_this_script(script)
                    || covers(rule, &command.words))
        };
        let granted = self.grants.iter().find(|grant| allows(grant));
        let proposal =
            pattern(&command.words).map(|pattern| Rule(format!("{UNSANDBOXED}({pattern})")));
        match (self.layer.ask.iter().find(restricts), granted) {
            (_, Some(grant)) => granted_by(what, grant),
            (Some(rule), None) => asked_by(what, rule, proposal),
            (None, None) => match self.layer.allow.iter().find(|loaded| allows(&loaded.rule)) {
                Some(rule) => allowed_by(what, rule),
                None => undecided(what, proposal),
            },
        }
    }

    fn is_granted(&self, script: &ExactScript) -> bool {
        let whole = |rule: &ParsedRule| {
            names(rule) && (rule.is_whole(UNSANDBOXED) || rule.is_this_script(script))
        };
        let granted = |grant: &Arc<ParsedRule>| whole(grant);
        self.grants.iter().any(granted) || self.layer.allow.iter().any(|loaded| whole(&loaded.rule))
    }
}

fn undecided(what: String, proposal: Option<Rule>) -> Finding {
    let because = "it can reach the network and change all your files";
    by_default(what, Decision::Ask, because, proposal)
}

/// Whether a rule is about every script, or exactly this one.
fn is_about_script(loaded: &LoadedRule, script: &ExactScript) -> bool {
    let rule = &loaded.rule;
    rule.is_whole(UNSANDBOXED) || (rule.is_for(UNSANDBOXED) && rule.has_text(script))
}

/// A rule for every tool by a wildcard does not count: its author may not have thought of this.
fn names(rule: &ParsedRule) -> bool {
    rule.names_tool() && rule.is_for(UNSANDBOXED)
}
