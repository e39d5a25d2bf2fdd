//! Judges files: the paths of file tools, and the files that scripts open.

use antiphon_core::port::Rule;

use super::{Evaluation, allowed_by, asked_by, by_default, denied_by, granted_by, may_be_denied};
use crate::commands::File;
use crate::config::PermissionMode;
use crate::finding::{Decision, Finding};
use crate::gate::Sandbox;
use crate::normalized_path::NormalizedPath;
use crate::rule::{Match, ParsedRule, PathPattern, escape};
use crate::rules::LoadedRule;

/// Paths a file may have.
struct Target {
    /// Possible paths, the likeliest last.
    candidates: Vec<NormalizedPath>,
    /// The file may also have any other path.
    anywhere: bool,
    /// It may be a folder, and what is in it is affected, too.
    tree: bool,
}

/// Tools whose rules apply to a call of `tool`: first for rules that restrict, then for rules that
/// allow.
fn tools(tool: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match tool {
        "read" => (&["read"], &["read"]),
        "grep" => (&["grep", "read"], &["grep"]),
        "glob" => (&["glob"], &["glob"]),
        "edit" => (&["edit", "write"], &["edit", "write"]),
        _ => (&["write"], &["write"]),
    }
}

fn matches(rule: &ParsedRule, tools: &[&str], target: &Target) -> Match {
    if !tools.iter().any(|tool| rule.is_for(tool)) {
        return Match::No;
    }
    if tools.iter().any(|tool| rule.is_whole(tool)) {
        return Match::Certain;
    }
    let Some(pattern) = rule.path() else { return Match::No };
    match target.candidates.split_last() {
        Some((likeliest, _)) if pattern.matches(likeliest) == Match::Certain => {
            if target.anywhere {
                Match::Possible
            } else {
                Match::Certain
            }
        }
        Some((_, others))
            if others.iter().any(|resolved| pattern.matches(resolved) > Match::No) =>
        {
            Match::Possible
        }
        Some(_) | None if target.anywhere => Match::Possible,
        Some(_) | None
            if target.tree
                && target.candidates.iter().any(|resolved| pattern.matches_within(resolved)) =>
        {
            Match::Possible
        }
        Some(_) | None => Match::No,
    }
}

/// Whether a grant names exactly this file.
pub(super) fn is_for_file(grant: &ParsedRule, tool: &str, resolved: &NormalizedPath) -> bool {
    let (_, allowing) = tools(tool);
    let target = Target { candidates: vec![resolved.clone()], anywhere: false, tree: false };
    grant.path().is_some_and(PathPattern::is_exact)
        && matches(grant, allowing, &target) == Match::Certain
}

impl Evaluation<'_> {
    /// Judges a call of a file tool.
    pub(super) fn file_call(&self, resolved: &NormalizedPath, writes: bool) -> Finding {
        let tool = self.call.tool;
        let what = format!("{tool} `{}`", resolved.shown());
        let proposal = Some(Rule(format!("{tool}({})", escape(resolved.shown()))));
        let target = Target { candidates: vec![resolved.clone()], anywhere: false, tree: false };
        if self.layer.mode < PermissionMode::Full
            && self.context.hidden.iter().any(|hidden| resolved.is_within(hidden))
        {
            let because = "it is hidden: it holds keys, or files of Antiphon itself";
            return by_default(what, Decision::Deny, because, None);
        }
        if let Some(finding) = self.by_rule(&what, tool, &target, writes, proposal.clone()) {
            return finding;
        }
        let (decision, because) = match (self.layer.mode, writes, resolved.relative.is_some()) {
            (PermissionMode::Full, ..) => (Decision::Allow, "mode full allows every file"),
            (PermissionMode::ReadOnly, true, _) => {
                (Decision::Deny, "mode read-only allows no writing")
            }
            (PermissionMode::ReadOnly | PermissionMode::Workspace, _, true) => {
                (Decision::Allow, "it is in the workspace")
            }
            (_, _, false) => (Decision::Ask, "it is outside of the workspace"),
        };
        let (_, allowing) = tools(tool);
        let granted = self
            .grants
            .iter()
            .find(|grant| matches(grant, allowing, &target) == Match::Certain)
            .filter(|_| decision == Decision::Ask);
        match granted {
            Some(grant) => granted_by(what, grant),
            None => by_default(what, decision, because, proposal),
        }
    }

    /// Judges a file that a script opens. `covered`: the whole script is allowed, with its files.
    pub(super) fn opened(&self, file: &File, covered: bool) -> Finding {
        let tool = if file.writes { "write" } else { "read" };
        let target = self.target(file);
        let shown = match target.candidates.last() {
            Some(resolved) if !target.anywhere => resolved.shown(),
            Some(_) | None => file.path.raw(),
        };
        let what = format!("{tool} `{shown}` by redirection");
        if !target.anywhere && target.candidates.iter().all(NormalizedPath::is_stream) {
            return by_default(what, Decision::Allow, "it keeps nothing", None);
        }
        if let Some(finding) = self.by_rule(&what, tool, &target, file.writes, None) {
            return finding;
        }
        let inside = !target.anywhere
            && target.candidates.iter().all(|resolved| resolved.relative.is_some());
        let (decision, because) = match (self.layer.mode, file.writes) {
            _ if covered => (Decision::Allow, "the whole script is allowed"),
            (PermissionMode::Full, _) => (Decision::Allow, "mode full allows every file"),
            (PermissionMode::ReadOnly, true) => {
                (Decision::Deny, "mode read-only allows no writing")
            }
            _ if inside => (Decision::Allow, "it is in the workspace"),
            (PermissionMode::Workspace, _) if self.context.sandbox != Sandbox::None => {
                (Decision::Allow, "the sandbox bounds it")
            }
            _ => (Decision::Ask, "it may be outside of the workspace"),
        };
        by_default(what, decision, because, None)
    }

    fn target(&self, file: &File) -> Target {
        let Some(path) = file.path.literal() else {
            return Target { candidates: Vec::new(), anywhere: true, tree: file.tree };
        };
        let root = &self.context.root;
        if path.starts_with('/') {
            return Target {
                candidates: vec![NormalizedPath::of(root, "", path)],
                anywhere: false,
                tree: file.tree,
            };
        }
        Target {
            candidates: file
                .folders
                .iter()
                .flatten()
                .map(|base| NormalizedPath::of(root, base, path))
                .collect(),
            anywhere: file.folders.contains(&None),
            tree: file.tree,
        }
    }

    /// Finding from the rules that match a file, if any does.
    fn by_rule(
        &self,
        what: &str,
        tool: &str,
        target: &Target,
        writes: bool,
        proposal: Option<Rule>,
    ) -> Option<Finding> {
        let what = what.to_owned();
        let (restricting, allowing) = tools(tool);
        if let Some(folder) =
            target.candidates.last().and_then(NormalizedPath::protected).filter(|_| writes)
        {
            let because = format!("no rule can allow writing to `{folder}`");
            return Some(by_default(what, Decision::Deny, &because, None));
        }
        let sure = |least: Match| {
            move |loaded: &&LoadedRule| matches(&loaded.rule, restricting, target) >= least
        };
        let (ask, deny) = (&self.layer.ask, &self.layer.deny);
        if let Some(rule) = deny.iter().find(sure(Match::Certain)) {
            return Some(denied_by(what, rule));
        }
        let ask_rule = ask.iter().find(sure(Match::Certain));
        let granted = self.grants.iter().find(|grant| {
            matches(grant, allowing, target) == Match::Certain
                && grant.path().is_some_and(PathPattern::is_exact)
        });
        if let (Some(rule), None) = (ask_rule, granted) {
            return Some(asked_by(what, rule, proposal));
        }
        let may_be_asked = ask.iter().filter(|_| ask_rule.is_none());
        if let Some(rule) = deny.iter().chain(may_be_asked).find(sure(Match::Possible)) {
            return Some(may_be_denied(what, rule));
        }
        if let Some(folder) =
            target.candidates.iter().find_map(NormalizedPath::protected).filter(|_| writes)
        {
            let because = format!("it may be in `{folder}`, where no rule can allow writing");
            return Some(by_default(what, Decision::Ask, &because, None));
        }
        if let (Some(_), Some(grant)) = (ask_rule, granted) {
            return Some(granted_by(what, grant));
        }
        let allows =
            |loaded: &&LoadedRule| matches(&loaded.rule, allowing, target) == Match::Certain;
        self.layer.allow.iter().find(allows).map(|rule| allowed_by(what, rule))
    }
}
