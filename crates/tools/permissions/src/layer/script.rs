//! Judges scripts: each command yields a finding, and the strictest finding decides.

use std::sync::Arc;

use antiphon_core::port::Rule;

use super::{Evaluation, allowed_by, asked_by, by_default, denied_by, granted_by, may_be_denied};
use crate::commands::{Command, Item, Role, Warning, WarningKind, is_known, is_safe};
use crate::config::PermissionMode;
use crate::finding::{Decision, Finding};
use crate::gate::Sandbox;
use crate::repository::is_change;
use crate::rule::{ExactScript, Match, Naming, ParsedRule};
use crate::rules::LoadedRule;
use crate::shell::Word;

const TOOL: &str = "bash";

impl Evaluation<'_> {
    pub(super) fn script(
        &self,
        script: &ExactScript,
        items: &[Item],
        repository: bool,
    ) -> Vec<Finding> {
        let what = "the script".to_owned();
        let about = |loaded: &&LoadedRule| {
            let rule = &loaded.rule;
            rule.is_whole(TOOL) || (rule.is_for(TOOL) && rule.has_text(script))
        };
        if let Some(rule) = self.layer.deny.iter().find(about) {
            return vec![denied_by(what, rule)];
        }
        let allowed = self
            .layer
            .allow
            .iter()
            .find(|loaded| loaded.rule.is_whole(TOOL) || loaded.rule.is_script(TOOL, script));
        let granted = self.grants.iter().find(|grant| grant.is_whole(TOOL));
        let whole = WholeScript {
            allowed: allowed.is_some(),
            granted: granted.is_some() && self.layer.mode > PermissionMode::ReadOnly,
            repository,
        };
        let judged = items.iter().filter(|item| match item {
            Item::Warning(warning) => self.applies(warning),
            Item::Command(_) | Item::File(_) | Item::Function(_) => true,
        });
        let mut findings: Vec<Finding> = judged.map(|item| self.item(item, whole)).collect();
        if let Some(rule) = self.layer.ask.iter().find(about) {
            findings.push(asked_by(what, rule, None));
        } else if findings.is_empty() {
            findings.push(self.unrestricted(what, &[], whole));
        }
        if let Some(grant) = self.grants.iter().find(|grant| grant.is_this_script(script)) {
            for finding in &mut findings {
                if finding.decision == Decision::Ask {
                    *finding = granted_by(std::mem::take(&mut finding.what), grant);
                }
            }
        }
        findings
    }

    fn item(&self, item: &Item, whole: WholeScript) -> Finding {
        match item {
            Item::Command(command) => self.command(command, whole),
            Item::File(file) => self.opened(file, whole.covers()),
            Item::Warning(warning) => {
                let what = "the script".to_owned();
                let unrestricted = self.unrestricted(what.clone(), &[], whole);
                if unrestricted.decision == Decision::Deny {
                    return unrestricted;
                }
                self.warnings(&what, std::slice::from_ref(warning), &[], whole)
                    .unwrap_or(unrestricted)
            }
            Item::Function(name) => {
                let what = format!("the function `{name}`");
                let unrestricted =
                    by_default(what.clone(), Decision::Allow, "its body is judged", None);
                if !is_known(name) && !self.is_ruled(name) {
                    return unrestricted;
                }
                let reason = "it takes the place of a program".to_owned();
                let warning = Warning { reason, kind: WarningKind::Suspicious };
                self.warnings(&what, &[warning], &[], whole).unwrap_or(unrestricted)
            }
        }
    }

    /// Whether a rule names this program.
    fn is_ruled(&self, name: &str) -> bool {
        let layer = self.layer;
        layer
            .allow
            .iter()
            .chain(&layer.ask)
            .chain(&layer.deny)
            .any(|loaded| loaded.rule.command().is_some_and(|pattern| pattern.names(name)))
    }

    fn command(&self, command: &Command, whole: WholeScript) -> Finding {
        let Command { words, role, warnings, .. } = command;
        let what = format!("`{}`", command.shown());
        let sure = |least: Match| {
            move |loaded: &&LoadedRule| {
                loaded.rule.is_for(TOOL)
                    && loaded
                        .rule
                        .command()
                        .is_some_and(|p| p.matches(words, Naming::Name) >= least)
            }
        };
        let (ask, deny) = (&self.layer.ask, &self.layer.deny);
        if let Some(rule) = deny.iter().find(sure(Match::Certain)) {
            return denied_by(what, rule);
        }
        let ask_rule = ask.iter().find(sure(Match::Certain));
        let specific = |grant: &&Arc<ParsedRule>| {
            covers(grant, words)
                && grant.command().is_some_and(|pattern| pattern.is_specific(words.len()))
        };
        let unrestricted = match (ask_rule, self.grants.iter().find(specific), role) {
            (Some(rule), None, _) => return asked_by(what, rule, proposal(words)),
            (Some(_), Some(grant), _) => granted_by(what.clone(), grant),
            (None, _, Role::Program) => self.unrestricted(what.clone(), words, whole),
            (None, _, Role::Wrapper) => {
                by_default(what.clone(), Decision::Allow, "what it runs is judged", None)
            }
        };
        if unrestricted.decision == Decision::Deny {
            return unrestricted;
        }
        let may_be_asked = ask.iter().filter(|_| ask_rule.is_none());
        if let Some(rule) = deny.iter().chain(may_be_asked).find(sure(Match::Possible)) {
            return may_be_denied(what, rule);
        }
        if let Some(reason) = self.writes_elsewhere(command, whole) {
            return by_default(what, Decision::Ask, &reason, None);
        }
        self.warnings(&what, warnings, words, whole).unwrap_or(unrestricted)
    }

    /// Why a command of git that a sandbox does not keep from writing may use another repository.
    fn writes_elsewhere(&self, command: &Command, whole: WholeScript) -> Option<String> {
        let is_bounded = match self.context.sandbox {
            Sandbox::None => false,
            Sandbox::OfCommand => !whole.repository,
            Sandbox::OfTask => true,
        };
        let asks = self.layer.mode < PermissionMode::Full && !is_bounded && !whole.covers();
        asks.then(|| self.other_repository(command)).flatten()
    }

    /// Whether a warning matters here: a sandbox bounds what some are about.
    fn applies(&self, warning: &Warning) -> bool {
        match warning.kind {
            WarningKind::Risky | WarningKind::Suspicious | WarningKind::Opaque => true,
            WarningKind::Unbounded => {
                self.context.sandbox == Sandbox::None && self.layer.mode < PermissionMode::Full
            }
        }
    }

    /// Finding for a command that no rule restricts.
    fn unrestricted(&self, what: String, words: &[Word], whole: WholeScript) -> Finding {
        if whole.allowed {
            return by_default(what, Decision::Allow, "a rule allows all of it", None);
        }
        let allows = |loaded: &&LoadedRule| covers(&loaded.rule, words);
        if let Some(rule) = self.layer.allow.iter().find(allows) {
            return allowed_by(what, rule);
        }
        let (decision, because) = match self.layer.mode {
            PermissionMode::ReadOnly => (Decision::Deny, "mode read-only runs no commands"),
            PermissionMode::Full => (Decision::Allow, "mode full allows every command"),
            PermissionMode::Workspace
                if self.context.sandbox == Sandbox::OfCommand
                    && whole.repository
                    && is_change(words) =>
            {
                (Decision::Ask, "it changes the repository")
            }
            PermissionMode::Workspace if self.context.sandbox != Sandbox::None => {
                (Decision::Allow, "the sandbox bounds it")
            }
            PermissionMode::Workspace if words.is_empty() || is_safe(words) => {
                (Decision::Allow, "it only looks")
            }
            PermissionMode::Workspace => {
                (Decision::Ask, "without a sandbox, mode workspace asks about commands")
            }
        };
        let grants = |grant: &&Arc<ParsedRule>| covers(grant, words) || grant.is_whole(TOOL);
        let granted = self.grants.iter().find(grants);
        match granted {
            Some(grant) if decision == Decision::Ask => granted_by(what, grant),
            Some(_) | None => by_default(what, decision, because, proposal(words)),
        }
    }

    /// Finding from the first warning that no rule overrides.
    fn warnings(
        &self,
        what: &str,
        warnings: &[Warning],
        words: &[Word],
        whole: WholeScript,
    ) -> Option<Finding> {
        let what = what.to_owned();
        let unlifted = warnings
            .iter()
            .find(|warning| self.applies(warning) && !self.is_lifted(warning, words, whole));
        match (self.layer.mode, unlifted) {
            (PermissionMode::ReadOnly, Some(warning)) => {
                return Some(by_default(what, Decision::Deny, &warning.reason, None));
            }
            (PermissionMode::Workspace, Some(warning)) => {
                return Some(by_default(what, Decision::Ask, &warning.reason, None));
            }
            (PermissionMode::Full, _) | (_, None) => {}
        }
        // An opaque command may run anything, also what a rule denies.
        let opaque = warnings.iter().find(|warning| warning.kind == WarningKind::Opaque);
        let warning = unlifted.or(opaque)?;
        let seen =
            |loaded: &&LoadedRule| loaded.rule.command().is_some() || loaded.rule.path().is_some();
        let rule = self.layer.deny.iter().chain(&self.layer.ask).find(seen)?;
        let mut finding = may_be_denied(what, rule);
        finding.because = format!("{}, and {}", warning.reason, finding.because);
        Some(finding)
    }

    fn is_lifted(&self, warning: &Warning, words: &[Word], whole: WholeScript) -> bool {
        let by_name = || {
            let program = words.first().and_then(Word::literal).unwrap_or_default();
            let names = |rule: &ParsedRule| {
                covers(rule, words) && rule.command().is_some_and(|pattern| pattern.names(program))
            };
            self.layer.allow.iter().any(|loaded| names(&loaded.rule))
                || (self.layer.mode > PermissionMode::ReadOnly
                    && self.grants.iter().any(|grant| names(grant)))
        };
        whole.covers() || (warning.kind == WarningKind::Risky && by_name())
    }
}

/// Whether a rule or a grant covers the whole tool or exactly this script.
#[derive(Debug, Clone, Copy)]
struct WholeScript {
    allowed: bool,
    granted: bool,
    /// The script changes the repository and does nothing else.
    repository: bool,
}

impl WholeScript {
    fn covers(self) -> bool {
        self.allowed || self.granted
    }
}

/// Whether an allow rule matches this command.
pub(super) fn covers(rule: &ParsedRule, words: &[Word]) -> bool {
    !words.is_empty()
        && rule
            .command()
            .is_some_and(|pattern| pattern.matches(words, Naming::AsWritten) == Match::Certain)
}

/// The rule for similar commands: the program, its first argument, and any further words.
/// `None` where such a rule would be too broad, or cannot be written.
fn proposal(words: &[Word]) -> Option<Rule> {
    pattern(words).map(|pattern| Rule(format!("bash({pattern})")))
}

/// The pattern of that rule.
pub(super) fn pattern(words: &[Word]) -> Option<String> {
    let plain = |word: &Word| {
        let text = word.literal()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
        (!text.is_empty() && text.chars().all(fits)).then(|| text.to_owned())
    };
    let (program, arguments) = words.split_first()?;
    let program = plain(program)?;
    match arguments.first() {
        None => Some(program),
        Some(first) => {
            let first = plain(first).filter(|first| !first.starts_with('-'))?;
            Some(format!("{program} {first} *"))
        }
    }
}
