//! Scripts: each command is judged on its own, and the strictest answer holds for all.

use std::sync::Arc;

use antiphon_core::port::Rule;

use super::{Judging, allowed_by, asked_by, by_default, denied_by, granted_by, may_be_denied};
use crate::commands::{Command, Doubt, DoubtKind, Item, Role, is_known, is_safe};
use crate::config::Mode;
use crate::finding::{Decision, Finding};
use crate::rule::{Match, Naming, ParsedRule};
use crate::rules::Loaded;
use crate::shell::Word;

const TOOL: &str = "bash";

impl Judging<'_> {
    pub(super) fn script(&self, text: &str, items: &[Item]) -> Vec<Finding> {
        let what = "the script".to_owned();
        let about = |loaded: &&Loaded| loaded.rule.is_whole(TOOL) || loaded.rule.is_script(text);
        if let Some(rule) = self.layer.deny.iter().find(about) {
            return vec![denied_by(what, rule)];
        }
        let allowed = self.layer.allow.iter().find(about);
        let granted = self.grants.iter().find(|grant| grant.is_whole(TOOL));
        let whole = Whole {
            allowed: allowed.is_some(),
            granted: granted.is_some() && self.layer.mode > Mode::ReadOnly,
        };
        let mut findings: Vec<Finding> = items.iter().map(|item| self.item(item, whole)).collect();
        if let Some(rule) = self.layer.ask.iter().find(about) {
            findings.push(asked_by(what, rule, None));
        } else if findings.is_empty() {
            findings.push(self.standing(what, &[], whole));
        }
        if let Some(grant) = self.grants.iter().find(|grant| grant.is_script(text)) {
            for finding in &mut findings {
                if finding.decision == Decision::Ask {
                    *finding = granted_by(std::mem::take(&mut finding.what), grant);
                }
            }
        }
        findings
    }

    fn item(&self, item: &Item, whole: Whole) -> Finding {
        match item {
            Item::Command(command) => self.command(command, whole),
            Item::File(file) => self.opened(file, whole.covers()),
            Item::Doubt(doubt) => {
                let what = "the script".to_owned();
                let standing = self.standing(what.clone(), &[], whole);
                if standing.decision == Decision::Deny {
                    return standing;
                }
                self.doubts(&what, std::slice::from_ref(doubt), &[], whole).unwrap_or(standing)
            }
            Item::Function(name) => {
                let what = format!("the function `{name}`");
                let standing =
                    by_default(what.clone(), Decision::Allow, "its body is judged", None);
                if !is_known(name) && !self.is_ruled(name) {
                    return standing;
                }
                let reason = "it takes the place of a program".to_owned();
                let doubt = Doubt { reason, kind: DoubtKind::Odd };
                self.doubts(&what, &[doubt], &[], whole).unwrap_or(standing)
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

    fn command(&self, command: &Command, whole: Whole) -> Finding {
        let Command { words, role, doubts } = command;
        let what = format!("`{}`", command.shown());
        let sure = |least: Match| {
            move |loaded: &&Loaded| {
                loaded.rule.command().is_some_and(|p| p.matches(words, Naming::Name) >= least)
            }
        };
        let (ask, deny) = (&self.layer.ask, &self.layer.deny);
        if let Some(rule) = deny.iter().find(sure(Match::Certain)) {
            return denied_by(what, rule);
        }
        let asked = ask.iter().find(sure(Match::Certain));
        let specific = |grant: &&Arc<ParsedRule>| {
            covers(grant, words)
                && grant.command().is_some_and(|pattern| pattern.is_specific(words.len()))
        };
        let standing = match (asked, self.grants.iter().find(specific), role) {
            (Some(rule), None, _) => return asked_by(what, rule, proposal(words)),
            (Some(_), Some(grant), _) => granted_by(what.clone(), grant),
            (None, _, Role::Program) => self.standing(what.clone(), words, whole),
            (None, _, Role::Wrapper) => {
                by_default(what.clone(), Decision::Allow, "what it runs is judged", None)
            }
        };
        if standing.decision == Decision::Deny {
            return standing;
        }
        let may_be_asked = ask.iter().filter(|_| asked.is_none());
        if let Some(rule) = deny.iter().chain(may_be_asked).find(sure(Match::Possible)) {
            return may_be_denied(what, rule);
        }
        self.doubts(&what, doubts, words, whole).unwrap_or(standing)
    }

    /// What holds for a command that no rule restricts.
    fn standing(&self, what: String, words: &[Word], whole: Whole) -> Finding {
        if whole.allowed {
            return by_default(what, Decision::Allow, "a rule allows all of it", None);
        }
        let allows = |loaded: &&Loaded| covers(&loaded.rule, words);
        if let Some(rule) = self.layer.allow.iter().find(allows) {
            return allowed_by(what, rule);
        }
        let (decision, because) = match self.layer.mode {
            Mode::ReadOnly => (Decision::Deny, "mode read-only runs no commands"),
            Mode::Full => (Decision::Allow, "mode full allows every command"),
            Mode::Workspace if self.ground.sandboxed => (Decision::Allow, "the sandbox bounds it"),
            Mode::Workspace if words.is_empty() || is_safe(words) => {
                (Decision::Allow, "it only looks")
            }
            Mode::Workspace => {
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

    /// The first doubt that nothing lifts, and what follows from it.
    fn doubts(
        &self,
        what: &str,
        doubts: &[Doubt],
        words: &[Word],
        whole: Whole,
    ) -> Option<Finding> {
        let what = what.to_owned();
        let unlifted = doubts.iter().find(|doubt| !self.is_lifted(doubt, words, whole));
        match (self.layer.mode, unlifted) {
            (Mode::ReadOnly, Some(doubt)) => {
                return Some(by_default(what, Decision::Deny, &doubt.reason, None));
            }
            (Mode::Workspace, Some(doubt)) => {
                return Some(by_default(what, Decision::Ask, &doubt.reason, None));
            }
            (Mode::Full, _) | (_, None) => {}
        }
        // Behind what cannot be seen may be anything that is ruled out.
        let opaque = doubts.iter().find(|doubt| doubt.kind == DoubtKind::Opaque);
        let doubt = unlifted.or(opaque)?;
        let seen =
            |loaded: &&Loaded| loaded.rule.command().is_some() || loaded.rule.path().is_some();
        let rule = self.layer.deny.iter().chain(&self.layer.ask).find(seen)?;
        let mut finding = may_be_denied(what, rule);
        finding.because = format!("{}, and {}", doubt.reason, finding.because);
        Some(finding)
    }

    fn is_lifted(&self, doubt: &Doubt, words: &[Word], whole: Whole) -> bool {
        let by_name = || {
            let program = words.first().and_then(Word::literal).unwrap_or_default();
            let names = |rule: &ParsedRule| {
                covers(rule, words) && rule.command().is_some_and(|pattern| pattern.names(program))
            };
            self.layer.allow.iter().any(|loaded| names(&loaded.rule))
                || (self.layer.mode > Mode::ReadOnly
                    && self.grants.iter().any(|grant| names(grant)))
        };
        whole.covers() || (doubt.kind == DoubtKind::Risky && by_name())
    }
}

/// Whether the tool as a whole, or the script as it is, was allowed.
#[derive(Debug, Clone, Copy)]
struct Whole {
    allowed: bool,
    granted: bool,
}

impl Whole {
    fn covers(self) -> bool {
        self.allowed || self.granted
    }
}

/// Whether a rule that allows is about this command.
fn covers(rule: &ParsedRule, words: &[Word]) -> bool {
    !words.is_empty()
        && rule
            .command()
            .is_some_and(|pattern| pattern.matches(words, Naming::AsWritten) == Match::Certain)
}

/// The rule for commands like this: its program, what that is told to do, and any further words.
/// `None` where such a rule would say too much, or could not be written.
fn proposal(words: &[Word]) -> Option<Rule> {
    let plain = |word: &Word| {
        let text = word.literal()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
        (!text.is_empty() && text.chars().all(fits)).then(|| text.to_owned())
    };
    let (program, arguments) = words.split_first()?;
    let program = plain(program)?;
    match arguments.first() {
        None => Some(Rule(format!("bash({program})"))),
        Some(first) => {
            let first = plain(first).filter(|first| !first.starts_with('-'))?;
            Some(Rule(format!("bash({program} {first} *)")))
        }
    }
}
