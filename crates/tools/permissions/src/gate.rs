//! The gate itself.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::Effect;
use antiphon_core::port::{GateRequest, Rule, Verdict};
use async_trait::async_trait;

use crate::call::{Call, Subject};
use crate::config::{Config, ConfigError, Limits};
use crate::finding::Explanation;
use crate::layer::Layer;
use crate::place::shortest;
use crate::remembered::Remembered;
use crate::rule::{ParsedRule, escape};

/// Judges calls by rules and a mode.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Each may only take away from those before it.
    layers: Vec<Arc<Layer>>,
    ground: Arc<Ground>,
    remembered: Option<Arc<Remembered>>,
}

/// What else bounds a call, which rules alone cannot know.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The workspace, as an absolute path. Relative paths in rules and calls begin there.
    pub root: PathBuf,
    /// Whether commands run in a sandbox. If not, those that are not known to be harmless are
    /// asked about.
    pub sandboxed: bool,
    /// What tools do to the world.
    pub effects: Effects,
}

/// What each tool does to the world; a tool of which that is not known is somebody else's. Tools
/// of MCP servers (`mcp__…`) are never believed about it.
#[derive(Clone)]
pub struct Effects(Arc<EffectOf>);

type EffectOf = dyn Fn(&str) -> Option<Effect> + Send + Sync;

impl Effects {
    /// As `effect` says.
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
    /// A gate for these permissions. Every rule is tried on its examples.
    pub fn new(config: &Config, bounds: Bounds) -> Result<Self, ConfigError> {
        let bad_root = || ConfigError::Root { root: bounds.root.display().to_string() };
        let root = bounds.root.to_str().filter(|root| root.starts_with('/'));
        let root = shortest(root.ok_or_else(bad_root)?);
        let layer = Layer::new(config.mode, [&config.allow, &config.ask, &config.deny], &root)?;
        let ground = Ground { root, sandboxed: bounds.sandboxed, effects: bounds.effects };
        Ok(Self { layers: vec![Arc::new(layer)], ground: Arc::new(ground), remembered: None })
    }

    /// The same gate, which also heeds what was allowed before and remembers what will be.
    pub fn remembering(self, remembered: Remembered) -> Self {
        Self { remembered: Some(Arc::new(remembered)), ..self }
    }

    /// A gate for somebody who works for the one that has this gate. It never allows what this
    /// one does not.
    pub fn narrowed(&self, limits: &Limits) -> Result<Self, ConfigError> {
        let mut layers = self.layers.clone();
        if let Some(last) = layers.last() {
            let mode = limits.mode.map_or(last.mode, |mode| mode.min(last.mode));
            let rules: [&[_]; 2] = [&limits.ask, &limits.deny];
            layers.push(Arc::new(last.narrowed(mode, rules, &self.ground.root)?));
        }
        Ok(Self { layers, ground: Arc::clone(&self.ground), remembered: self.remembered.clone() })
    }

    /// How a call is judged and why: each command and file that was seen, and what decided.
    pub fn explain(&self, asked: &GateRequest<'_>) -> Explanation {
        let call = Call::of(asked, &self.ground.root);
        let mut grants: Vec<Arc<ParsedRule>> = asked
            .granted
            .iter()
            .filter_map(|rule| ParsedRule::parse(&rule.0).ok())
            .map(Arc::new)
            .collect();
        if let Some(remembered) = &self.remembered {
            grants.extend(remembered.parsed());
        }
        let whole = rule_for(&call);
        let mut strictest: Option<Explanation> = None;
        for layer in &self.layers {
            let findings = layer.judge(&call, &self.ground, &grants);
            let explanation = Explanation::of(findings, whole.clone());
            if strictest.as_ref().is_none_or(|known| explanation.decision() > known.decision()) {
                strictest = Some(explanation);
            }
        }
        strictest.unwrap_or_else(|| Explanation::of(Vec::new(), whole))
    }
}

#[async_trait]
impl antiphon_core::port::Gate for Gate {
    fn judge(&self, call: &GateRequest<'_>) -> Verdict {
        self.explain(call).verdict
    }

    async fn remember(&self, rule: &Rule) -> Result<(), String> {
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

/// What a gate stands on.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The workspace, absolute and in its shortest form.
    pub(crate) root: String,
    pub(crate) sandboxed: bool,
    pub(crate) effects: Effects,
}

/// The rule that allows this very call.
fn rule_for(call: &Call<'_>) -> Rule {
    Rule(match &call.subject {
        Subject::Script { text, .. } => format!("bash(={text})"),
        Subject::File { place, .. } => format!("{}({})", call.tool, escape(place.shown())),
        Subject::Other | Subject::Malformed(_) => call.tool.to_owned(),
    })
}
