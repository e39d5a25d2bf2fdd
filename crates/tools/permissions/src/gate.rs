//! The gate: judges each call of a tool and explains its verdict.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::Effect;
use antiphon_core::port::{GateRequest, GateVerdict, Rule};
use antiphon_hosts::HostAccess;
use async_trait::async_trait;

use crate::call::{Call, Subject};
use crate::config::{ConfigError, Limits, PermissionConfig, PermissionMode, PolicyRules};
use crate::finding::Explanation;
use crate::layer::Layer;
use crate::normalized_path::normalize;
use crate::policy::PolicyLayer;
use crate::remembered::Remembered;
use crate::rule::{NETWORK, ParsedRule, UNSANDBOXED, escape};

/// Judges calls by rules and a mode. The strictest finding decides.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Each layer only restricts the layers before it.
    layers: Vec<Arc<Layer>>,
    context: Arc<GateContext>,
    remembered: Option<Arc<Remembered>>,
    /// Above every layer.
    policy: Option<Arc<PolicyLayer>>,
}

/// Facts about the environment that a gate judges by, in addition to its rules.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The workspace, as an absolute path. Relative paths in rules and calls start there.
    pub root: PathBuf,
    /// The sandbox of commands.
    pub sandbox: Sandbox,
    /// Files and folders that no file tool touches, whatever the rules say, except in mode `full`:
    /// what the sandbox hides from commands. Absolute paths.
    pub hidden: Vec<PathBuf>,
    /// Effect of each tool.
    pub effects: Effects,
}

/// The sandbox of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// There is none: the gate asks about every command that is not known to be harmless.
    None,
    /// Each command has one. A person can let git change the repository, and a command leave it.
    OfCommand,
    /// The whole task runs in one, which no approval opens.
    OfTask,
}

/// Effect of each tool by name. A tool without a known effect counts as external. The declared
/// effect of a tool of an MCP server (`mcp__…`) is ignored.
#[derive(Clone)]
pub struct Effects(Arc<EffectOf>);

type EffectOf = dyn Fn(&str) -> Option<Effect> + Send + Sync;

impl Effects {
    /// Effects that the function `effect` returns; `None` means unknown.
    pub fn new(effect: impl Fn(&str) -> Option<Effect> + Send + Sync + 'static) -> Self {
        Self(Arc::new(effect))
    }

    pub(crate) fn of(&self, tool: &str) -> Option<Effect> {
        (self.0)(tool).filter(|_| !tool.starts_with("mcp__"))
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effects").finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate for these permissions. Checks every rule against its examples.
    pub fn new(config: &PermissionConfig, bounds: Bounds) -> Result<Self, ConfigError> {
        let bad_root = || ConfigError::Root { root: bounds.root.display().to_string() };
        let root = bounds.root.to_str().filter(|root| root.starts_with('/'));
        let root = normalize(root.ok_or_else(bad_root)?);
        let layer = Layer::new(config.mode, [&config.allow, &config.ask, &config.deny], &root)?;
        let hidden = bounds.hidden.iter().filter_map(|path| path.to_str()).map(normalize).collect();
        let Bounds { sandbox, effects, .. } = bounds;
        let context = GateContext { root, sandbox, hidden, effects };
        let (layers, context) = (vec![Arc::new(layer)], Arc::new(context));
        Ok(Self { layers, context, remembered: None, policy: None })
    }

    /// The same gate within the policy of the machine.
    pub fn within(self, policy: &PolicyRules) -> Result<Self, ConfigError> {
        let policy = PolicyLayer::new(policy, &self.context.root)?;
        Ok(Self { policy: Some(Arc::new(policy)), ..self })
    }

    /// The same gate, which also applies the remembered rules and stores new ones there.
    pub fn remembering(self, remembered: Remembered) -> Self {
        Self { remembered: Some(Arc::new(remembered)), ..self }
    }

    /// A gate for a child agent. It never allows a call that this gate does not allow.
    pub fn narrowed(&self, limits: &Limits) -> Result<Self, ConfigError> {
        let mut layers = self.layers.clone();
        if let Some(last) = layers.last() {
            let mode = limits.mode.map_or(last.mode, |mode| mode.min(last.mode));
            let rules: [&[_]; 2] = [&limits.ask, &limits.deny];
            layers.push(Arc::new(last.narrowed(mode, rules, &self.context.root)?));
        }
        Ok(Self { layers, ..self.clone() })
    }

    /// Judges a call and lists each command and file of it with the rule or default that decided.
    pub fn explain(&self, request: &GateRequest<'_>) -> Explanation {
        let call = Call::of(request, &self.context.root);
        let grants = self.grants(request.granted);
        let whole = rule_for(&call);
        let policy = self.policy.as_ref();
        let mut strictest = policy.and_then(|policy| policy.explain(&call, &self.context));
        for layer in &self.layers {
            let findings = layer.judge(&call, &self.context, &grants);
            let explanation = Explanation::of(findings, whole.clone());
            if strictest.as_ref().is_none_or(|known| explanation.decision() > known.decision()) {
                strictest = Some(explanation);
            }
        }
        strictest.unwrap_or_else(|| Explanation::of(Vec::new(), whole))
    }

    /// The hosts that commands may reach without asking for them, in a task that was granted these
    /// rules.
    pub fn hosts(&self, granted: &[Rule]) -> HostAccess {
        let grants = self.grants(granted);
        let layers = self.layers.iter();
        let layers = layers.map(|layer| layer.hosts(grants.iter().map(|grant| &**grant))).collect();
        let read_only = self.layers.iter().any(|layer| layer.mode == PermissionMode::ReadOnly);
        let approved = grants.iter().filter(|_| !read_only);
        let access =
            HostAccess::new(layers, approved.flat_map(|grant| grant.allowed_hosts()).collect());
        match &self.policy {
            Some(policy) => access.within(policy.host_policy()),
            None => access,
        }
    }

    /// The rules that a user approved: for the task, and always.
    fn grants(&self, granted: &[Rule]) -> Vec<Arc<ParsedRule>> {
        let granted = granted.iter().filter_map(|rule| ParsedRule::parse(&rule.0).ok());
        let mut grants: Vec<_> = granted.map(Arc::new).collect();
        if let Some(remembered) = &self.remembered {
            grants.extend(remembered.parsed());
        }
        grants
    }
}

#[async_trait]
impl antiphon_core::port::Gate for Gate {
    fn judge(&self, call: &GateRequest<'_>) -> GateVerdict {
        self.explain(call).verdict
    }

    fn judge_reading(&self, call: &GateRequest<'_>) -> GateVerdict {
        let limits = Limits { mode: Some(PermissionMode::ReadOnly), ..Limits::default() };
        match self.narrowed(&limits) {
            Ok(narrowed) => narrowed.explain(call).verdict,
            Err(error) => GateVerdict::Deny { reason: error.to_string() },
        }
    }

    fn judge_by_rules(&self, request: &GateRequest<'_>) -> Option<GateVerdict> {
        let call = Call::of(request, &self.context.root);
        let restricted = self.policy.as_ref().and_then(|policy| policy.judge_by_rules(&call));
        if restricted.is_some() {
            return restricted;
        }
        let grants = self.grants(request.granted);
        let mut allowed = !self.layers.is_empty();
        for layer in &self.layers {
            match layer.judge_by_rules(&call, &grants) {
                Some(denied @ GateVerdict::Deny { .. }) => return Some(denied),
                Some(GateVerdict::Allow) => {}
                Some(GateVerdict::Ask { .. }) | None => allowed = false,
            }
        }
        allowed.then_some(GateVerdict::Allow)
    }

    async fn remember(&self, rule: &Rule) -> Result<(), String> {
        if rule.0.is_empty() {
            return Err("no rule can always allow this call: allow it once".to_owned());
        }
        let Some(remembered) = self.remembered.clone() else {
            return Err("there is no file to remember rules in: allow it for this task".to_owned());
        };
        let rule = rule.clone();
        let adding = tokio::task::spawn_blocking(move || remembered.add(&rule));
        match adding.await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the rule could not be remembered: allow it for this task".to_owned()),
        }
    }
}

/// Environment that all layers of a gate share.
#[derive(Debug)]
pub(crate) struct GateContext {
    /// The workspace, absolute and normalized.
    pub(crate) root: String,
    pub(crate) sandbox: Sandbox,
    /// Absolute and normalized.
    pub(crate) hidden: Vec<String>,
    pub(crate) effects: Effects,
}

/// The rule that allows exactly this call.
fn rule_for(call: &Call<'_>) -> Rule {
    Rule(match &call.subject {
        Subject::Script { script, unsandboxed: true, .. } => {
            format!("{UNSANDBOXED}({})", script.pattern())
        }
        Subject::Script { script, .. } => format!("bash({})", script.pattern()),
        Subject::File { resolved, .. } => format!("{}({})", call.tool, escape(resolved.shown())),
        Subject::Page { hosts } => {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            format!("{NETWORK}({})", hosts.join(" "))
        }
        Subject::Other | Subject::Malformed(_) => call.tool.to_owned(),
    })
}
