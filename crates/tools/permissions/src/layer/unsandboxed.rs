//! Judges calls of `bash` that ask to run without the sandbox.
//!
//! Rules for `bash` were written for commands in the sandbox, so they do not allow such a call. Only
//! a rule that names `unsandboxed`, or a person, does.

use std::sync::Arc;

use antiphon_core::port::Rule;

use super::script::{covers, pattern};
use super::{Evaluation, allowed_by, asked_by, by_default, denied_by, granted_by};
use crate::commands::{Command, Item, Role};
use crate::config::Mode;
use crate::finding::{Decision, Finding};
use crate::gate::Sandbox;
use crate::rule::{Match, Naming, ParsedRule, UNSANDBOXED};
use crate::rules::LoadedRule;

impl Evaluation<'_> {
    pub(super) fn unsandboxed(&self, text: &str, items: &[Item]) -> Vec<Finding> {
        let what = "the script without the sandbox".to_owned();
        match (self.layer.mode, self.context.sandbox) {
            // There is no sandbox to leave.
            (Mode::Full, _) | (Mode::Workspace, Sandbox::None) => return Vec::new(),
            (Mode::ReadOnly, _) => {
                let because = "mode read-only runs no commands";
                return vec![by_default(what, Decision::Deny, because, None)];
            }
            (Mode::Workspace, Sandbox::OfTask) => {
                let because = "the whole task runs in a sandbox, which no approval opens";
                return vec![by_default(what, Decision::Deny, because, None)];
            }
            (Mode::Workspace, Sandbox::OfCommand) => {}
        }
        let programs = items.iter().filter_map(|item| match item {
            Item::Command(command) if command.role == Role::Program => Some(command),
            Item::Command(_) | Item::File(_) | Item::Function(_) | Item::Warning(_) => None,
        });
        let mut findings: Vec<Finding> =
            programs.map(|command| self.without_sandbox(text, command)).collect();
        if findings.is_empty() {
            findings.push(undecided(what.clone(), None));
        }
        // What is not a plain command is not covered by a rule about commands.
        let is_plain = |item: &Item| match item {
            Item::Command(_) => true,
            Item::File(_) | Item::Function(_) | Item::Warning(_) => false,
        };
        if !items.iter().all(is_plain) && !self.is_granted(text) {
            findings.push(undecided(what.clone(), None));
        }
        findings
    }

    fn without_sandbox(&self, text: &str, command: &Command) -> Finding {
        let what = format!("`{}` without the sandbox", command.shown());
        let restricts = |loaded: &&LoadedRule| {
            loaded.rule.is_for(UNSANDBOXED)
                && (loaded.rule.is_whole(UNSANDBOXED)
                    || loaded.rule.is_this_script(text)
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
                    || rule.is_this_script(text)
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

    fn is_granted(&self, text: &str) -> bool {
        let whole = |rule: &ParsedRule| {
            names(rule) && (rule.is_whole(UNSANDBOXED) || rule.is_this_script(text))
        };
        let granted = |grant: &Arc<ParsedRule>| whole(grant);
        self.grants.iter().any(granted) || self.layer.allow.iter().any(|loaded| whole(&loaded.rule))
    }
}

fn undecided(what: String, proposal: Option<Rule>) -> Finding {
    let because = "it can reach the network and change all your files";
    by_default(what, Decision::Ask, because, proposal)
}

/// A rule for every tool by a wildcard does not count: its author may not have thought of this.
fn names(rule: &ParsedRule) -> bool {
    rule.names_tool() && rule.is_for(UNSANDBOXED)
}
