//! Agents whose models answer at once.

use std::path::Path;
use std::sync::Arc;

use antiphon_core::port::{
    Agents, Journal, Piece, PieceSource, PromptSource, RandomIds, StopSignal, SystemClock,
};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, Message, ModelRef, Provider, RawJson, Request,
    StopReason,
};
use antiphon_runtime::{
    Models, NoTools, OpenGate, Orchestrator, OrchestratorSettings, RuntimeDeps,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use futures_util::stream;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Error;

/// Answers with a text.
pub(crate) const SPEAKER: &str = "speaker";
/// Sends a request to the speaker and waits.
pub(crate) const ASKER: &str = "asker";
/// Never answers.
pub(crate) const SILENT: &str = "silent";

/// Most model requests that are queued for the benchmark.
const REQUESTS_MAX: usize = 1024;

/// Next to the build output: a temporary folder may be in memory.
pub(crate) fn folder() -> Result<TempDir, Error> {
    Ok(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?)
}

pub(crate) fn journal(folder: &Path) -> Result<Arc<dyn Journal>, Error> {
    Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Full)?))
}

/// Model requests: agent name and time.
pub(crate) type ModelRequests = mpsc::Receiver<(String, Instant)>;

/// An orchestrator with agents of these names; the word before a `-` selects their behavior.
pub(crate) fn orchestrator(
    journal: Arc<dyn Journal>,
    names: &[String],
) -> Result<(Orchestrator, ModelRequests), Error> {
    let (tell, model_requests) = mpsc::channel(REQUESTS_MAX);
    let agent = |name: &String| -> Result<_, Error> {
        let word = name.split('-').next().unwrap_or(name);
        Ok(Arc::new(AgentDefinition {
            model: Some(ModelRef::parse(&format!("bench/{word}"))?),
            agents: CallableAgents::Only(vec![SPEAKER.to_owned()]),
            ..AgentDefinition::new(AgentName::parse(name)?, "Be short.")
        }))
    };
    let agents = names.iter().map(agent).collect::<Result<Vec<_>, _>>()?;
    let world = RuntimeDeps {
        journal,
        models: Arc::new(Providers { tell }),
        tools: Arc::new(NoTools),
        gate: Arc::new(OpenGate),
        agents: Some(Arc::new(Definitions(agents))),
        runners: Vec::new(),
        prices: Arc::default(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: OrchestratorSettings::default(),
    };
    Ok((Orchestrator::new(world), model_requests))
}

struct Definitions(Vec<Arc<AgentDefinition>>);

impl Agents for Definitions {
    fn find(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.0.iter().find(|agent| agent.name.as_str() == name).cloned()
    }

    fn list(&self) -> Arc<[Arc<AgentDefinition>]> {
        self.0.clone().into()
    }

    fn system_prompt(&self, _: PromptSource<'_>) -> String {
        "Be short.".to_owned()
    }
}

struct Providers {
    tell: mpsc::Sender<(String, Instant)>,
}

impl Models for Providers {
    fn provider(
        &self,
        model: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let (word, tell) = (model.model().to_owned(), self.tell.clone());
        Ok(Arc::new(AgentModel { word, tell }))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

struct AgentModel {
    word: String,
    tell: mpsc::Sender<(String, Instant)>,
}

impl Provider for AgentModel {
    fn open(&self, request: Request) -> PieceSource {
        // Without a reader, nothing is recorded.
        let _ = self.tell.try_send((self.word.clone(), Instant::now()));
        if self.word == SILENT {
            return Box::pin(stream::pending());
        }
        let answered =
            matches!(request.messages.last().map(|m| &**m), Some(Message::ToolResult(_)));
        if self.word == ASKER && !answered {
            let arguments = json!({ "to": SPEAKER, "intent": "say", "wait": true }).to_string();
            let id = Some(format!("call_{}", request.messages.len()));
            let name = Some("send_request".to_owned());
            let call = Piece::ToolCall { block: 0, id, name, arguments };
            let stop = StopSignal { reason: StopReason::ToolUse, raw: "tool_calls".to_owned() };
            return Box::pin(stream::iter([call, Piece::Stop(stop), Piece::Done].map(Ok)));
        }
        let text = Piece::Text { block: 0, delta: "Heard.".to_owned() };
        let stop = StopSignal { reason: StopReason::EndTurn, raw: "stop".to_owned() };
        Box::pin(stream::iter([text, Piece::Stop(stop), Piece::Done].map(Ok)))
    }
}
