//! The parts of an orchestrator whose model answers from a script.

use std::sync::Arc;

use antiphon_core::port::{Journal, RandomIds, SystemClock};
use antiphon_core::{ModelRef, PriceTable, Provider, RawJson};
use antiphon_runtime::{Models, OrchestratorSettings, RuntimeDeps};
use antiphon_scripted::{Script, ScriptedProvider};

use crate::tools::{AskBeforeAct, TestTools};

/// Models that all answer from one script.
pub struct ScriptedModels(
    /// The script, in TOML.
    pub &'static str,
);

impl Models for ScriptedModels {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let script = Script::parse(self.0).map_err(|error| error.to_string())?;
        Ok(Arc::new(ScriptedProvider::new(script)))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

/// An orchestrator with [`ScriptedModels`], [`TestTools`] and [`AskBeforeAct`], without agents, other runners and
/// prices.
pub fn runtime_deps(journal: Arc<dyn Journal>, script: &'static str) -> RuntimeDeps {
    RuntimeDeps {
        journal,
        models: Arc::new(ScriptedModels(script)),
        tools: Arc::new(TestTools),
        gate: Arc::new(AskBeforeAct),
        agents: None,
        runners: Vec::new(),
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    }
}
