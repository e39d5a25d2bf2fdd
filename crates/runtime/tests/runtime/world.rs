//! A small world: a scripted model, tools that keep count, a journal that can fail.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    Append, Appended, Gate, GateRequest, GateVerdict, Journal, JournalError, RandomIds, Read, Rule,
    SystemClock, ToolContext,
};
use antiphon_core::{
    Effect, Event, ModelRef, Position, PriceTable, Provider, RawJson, Tool, ToolError,
    ToolExecutor, ToolResult, UserMessage,
};
use antiphon_runtime::{
    Models, NewTask, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
};
use antiphon_scripted::{Script, ScriptedProvider};
use async_trait::async_trait;

pub(crate) struct Scripted {
    pub(crate) script: String,
    pub(crate) window_tokens: Option<u64>,
}

impl Models for Scripted {
    fn provider(
        &self,
        _: &ModelRef,
        _: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        if route.is_some_and(|route| route.as_str() == "\"nowhere\"") {
            return Err("there is no way".to_owned());
        }
        let script = Script::parse(&self.script).map_err(|error| error.to_string())?;
        Ok(Arc::new(ScriptedProvider::new(script)))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        self.window_tokens
    }
}

/// A gate that asks about `act`, denies `look` at secrets, and keeps what it is to remember.
#[derive(Default)]
pub(crate) struct Careful {
    pub(crate) remembered: Mutex<Vec<Rule>>,
}

#[async_trait]
impl Gate for Careful {
    fn judge(&self, call: &GateRequest<'_>) -> GateVerdict {
        let rule = Rule("act".to_owned());
        let remembered = self.remembered.lock().expect("no panic");
        if call.tool == "act" && !call.granted.contains(&rule) && !remembered.contains(&rule) {
            return GateVerdict::Ask { reason: "It acts.".to_owned(), rule };
        }
        if call.arguments.as_str().contains("secret") {
            return GateVerdict::Deny { reason: "it is a secret".to_owned() };
        }
        GateVerdict::Allow
    }

    async fn remember(&self, rule: &Rule) -> Result<(), String> {
        self.remembered.lock().expect("no panic").push(rule.clone());
        Ok(())
    }
}

/// Tools that keep count of what they did: `look` changes nothing, `act` does.
#[derive(Default)]
pub(crate) struct Counting {
    pub(crate) done: Mutex<BTreeMap<String, usize>>,
}

impl Counting {
    pub(crate) fn done(&self) -> BTreeMap<String, usize> {
        self.done.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl ToolExecutor for Counting {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: name.to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).expect("JSON"),
        };
        ["look", "act", "hang"].map(|name| tool(name).into()).to_vec()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match tool {
            "look" | "hang" => Some(Effect::ReadOnly),
            "act" => Some(Effect::SideEffect),
            _ => None,
        }
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if self.effect(tool).is_none() {
            return Err(ToolError::Unknown { name: tool.to_owned() });
        }
        if tool == "hang" {
            context.cancel.await;
            return Err(ToolError::Canceled);
        }
        let what = format!("{tool} {arguments}");
        *self.done.lock().expect("no panic").entry(what.clone()).or_default() += 1;
        Ok(ToolResult::text(format!("did {what}")))
    }
}

/// How a journal dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before it wrote.
    Before,
    /// After it wrote, before it could say so.
    After,
}

/// A journal whose process dies at its `n`th append: nothing works from then on.
pub(crate) struct Mortal {
    pub(crate) inner: Arc<MemoryJournal>,
    pub(crate) last: usize,
    pub(crate) death: Death,
    pub(crate) appends: AtomicUsize,
}

impl Mortal {
    pub(crate) fn new(
        inner: &Arc<MemoryJournal>,
        last: usize,
        death: Death,
    ) -> DelegatingJournal<Self> {
        let appends = AtomicUsize::new(0);
        DelegatingJournal(Self { inner: Arc::clone(inner), last, death, appends })
    }
}

fn dead() -> JournalError {
    JournalError::Unavailable { reason: "dead".to_owned() }
}

#[async_trait]
impl JournalHooks for Mortal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        if number > self.last || (number == self.last && self.death == Death::Before) {
            return Err(dead());
        }
        let appended = self.inner().append(append).await?;
        if number == self.last { Err(dead()) } else { Ok(appended) }
    }
}

pub(crate) fn orchestrator(
    journal: Arc<dyn Journal>,
    tools: &Arc<Counting>,
    script: &str,
) -> Orchestrator {
    Orchestrator::new(world(journal, tools, script))
}

/// Everything as usual, but restarts come at once.
pub(crate) fn world(journal: Arc<dyn Journal>, tools: &Arc<Counting>, script: &str) -> RuntimeDeps {
    let restart_after = std::time::Duration::from_millis(1);
    RuntimeDeps {
        journal,
        models: Arc::new(Scripted { script: script.to_owned(), window_tokens: None }),
        tools: Arc::clone(tools) as Arc<dyn ToolExecutor>,
        gate: Arc::new(OpenGate),
        agents: None,
        runners: Vec::new(),
        prices: Arc::new(PriceTable::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        // A journal that dies here stands for a process that dies.
        settings: OrchestratorSettings {
            restart_after,
            storage_wait_max: Some(std::time::Duration::ZERO),
            ..OrchestratorSettings::default()
        },
    }
}

pub(crate) fn new_task(text: &str) -> NewTask {
    let model = ModelRef::parse("scripted/test").expect("a model");
    let message = UserMessage::text(text, chrono::DateTime::UNIX_EPOCH);
    NewTask { system_prompt: "Be brief.".to_owned(), ..NewTask::new("tester", model, message) }
}

pub(crate) async fn events(journal: &dyn Journal) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = Position(0);
    loop {
        let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
        let page = journal.read(read).await.expect("a page");
        if page.events.is_empty() {
            return events;
        }
        after = page.next;
        events.extend(page.events);
    }
}
