//! Loads the rules of a layer and checks them against their examples.

use antiphon_core::RawJson;
use antiphon_core::port::{GateRequest, Rule};
use antiphon_hosts::requested_hosts;

use crate::call::{Call, Subject};
use crate::commands::{Item, Role};
use crate::config::{ConfigError, RuleEntry};
use crate::rule::{Match, NETWORK, Naming, ParsedRule, UNSANDBOXED};

/// A parsed rule with its configured reason.
#[derive(Debug, Clone)]
pub(crate) struct LoadedRule {
    pub(crate) rule: ParsedRule,
    pub(crate) reason: Option<String>,
}

/// Whether a rule allows or restricts the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Allow,
    Restrict,
}

impl LoadedRule {
    /// Parses rules and checks their examples; `root` is the workspace.
    pub(crate) fn all(
        entries: &[RuleEntry],
        kind: RuleKind,
        root: &str,
    ) -> Result<Vec<Self>, ConfigError> {
        entries.iter().map(|entry| Self::read(entry, kind, root)).collect()
    }

    fn read(entry: &RuleEntry, kind: RuleKind, root: &str) -> Result<Self, ConfigError> {
        let bad = |reason| ConfigError::Rule { rule: entry.rule.clone(), reason };
        let rule = ParsedRule::parse(&entry.rule.0).map_err(bad)?;
        let tried = |example: &String| {
            matches(&rule, kind, example, root)
                .map_err(|reason| bad(format!("its example `{example}` cannot be read: {reason}")))
        };
        for example in &entry.examples {
            if !tried(example)? {
                let (rule, example) = (entry.rule.clone(), example.clone());
                return Err(ConfigError::Example { rule, example });
            }
        }
        for example in &entry.not {
            if tried(example)? {
                let (rule, example) = (entry.rule.clone(), example.clone());
                return Err(ConfigError::CounterExample { rule, example });
            }
        }
        Ok(Self { rule, reason: entry.reason.clone() })
    }

    /// The rule with its reason, for display.
    pub(crate) fn shown(&self) -> String {
        match &self.reason {
            Some(reason) => format!("the rule `{}` ({reason})", self.rule.text),
            None => format!("the rule `{}`", self.rule.text),
        }
    }

    /// The rule as configured.
    pub(crate) fn text(&self) -> Rule {
        Rule(self.rule.text.clone())
    }
}

/// Whether a rule matches an example from the configuration.
fn matches(rule: &ParsedRule, kind: RuleKind, example: &str, root: &str) -> Result<bool, String> {
    if rule.names_tool() && rule.is_for(NETWORK) {
        return matches_host(rule, kind, example);
    }
    let (tool, arguments) = example_call(rule, example)?;
    let call = Call::of(&GateRequest { tool: &tool, arguments: &arguments, granted: &[] }, root);
    if rule.is_whole(&tool) || rule.is_whole(UNSANDBOXED) {
        return Ok(true);
    }
    Ok(match &call.subject {
        Subject::Malformed(reason) => return Err(reason.clone()),
        Subject::Script { script, items, .. } => {
            rule.is_this_script(script) || in_items(rule, kind, items)
        }
        Subject::File { resolved, .. } => {
            rule.is_for(&tool)
                && rule.path().is_some_and(|pattern| pattern.matches(resolved) == Match::Certain)
        }
        Subject::Page { .. } | Subject::Other => {
            rule.is_for(&tool)
                && rule
                    .argument()
                    .is_some_and(|pattern| pattern.matches(&call.arguments) == Match::Certain)
        }
    })
}

/// Whether a rule about hosts matches the host `example`.
fn matches_host(rule: &ParsedRule, kind: RuleKind, example: &str) -> Result<bool, String> {
    let requested = requested_hosts([example]).map_err(|error| error.to_string())?;
    Ok(requested.iter().all(|host| match kind {
        RuleKind::Allow => rule.allowed_hosts().iter().any(|rule| rule.covers(host)),
        RuleKind::Restrict => rule.restricted_hosts().iter().any(|rule| rule.touches(host)),
    }))
}

/// An allow rule must match every command; a restricting rule must match at least one.
fn in_items(rule: &ParsedRule, kind: RuleKind, items: &[Item]) -> bool {
    let Some(pattern) = rule.command() else { return false };
    let mut commands = items.iter().filter_map(|item| match item {
        Item::Command(command) => Some(command),
        Item::File(_) | Item::Function(_) | Item::Warning(_) => None,
    });
    match kind {
        RuleKind::Restrict => {
            commands.any(|command| pattern.matches(&command.words, Naming::Name) == Match::Certain)
        }
        RuleKind::Allow => {
            let mut programs = commands.filter(|command| command.role == Role::Program).peekable();
            programs.peek().is_some()
                && programs.all(|command| {
                    pattern.matches(&command.words, Naming::AsWritten) == Match::Certain
                })
        }
    }
}

fn example_call(rule: &ParsedRule, example: &str) -> Result<(String, RawJson), String> {
    let arguments = |name: &str, value: &str| {
        RawJson::of(&serde_json::json!({ name: value })).map_err(|error| error.to_string())
    };
    if rule.names_tool() && (rule.is_for("bash") || rule.is_for(UNSANDBOXED)) {
        return Ok(("bash".to_owned(), arguments("command", example)?));
    }
    if rule.names_tool()
        && let Some(tool) = crate::call::FILE_TOOLS.iter().find(|tool| rule.is_for(tool))
    {
        return Ok(((*tool).to_owned(), arguments("path", example)?));
    }
    let (tool, json) = example.split_once(' ').unwrap_or((example, "{}"));
    let json = RawJson::parse(json).map_err(|error| error.to_string())?;
    Ok((tool.to_owned(), json))
}
