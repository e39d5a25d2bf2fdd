//! Every cell of the invocation model: context × join × executor × tools × kind of agent ×
//! outcome. Each legal cell is run to its end, each illegal one gets its own refusal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_core::{
    EventBody, Message, ModelRef, PieceSource, Position, Provider, RawJson, Request, TaskId,
    TaskStatus,
};
use antiphon_runtime::{Models, Orchestrator, OrchestratorError, RuntimeDeps, TaskState};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::team::{Roster, Team, agent, calls, otherwise, replying, results, says, script};
use crate::world::{Scripted, new_task};

/// Cells that are run at a time.
const AT_ONCE: usize = 96;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Success,
    Failure,
    Cancel,
    Timeout,
    CrashOfChild,
    CrashOfParent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    context: &'static str,
    join: &'static str,
    executor: &'static str,
    tools: &'static str,
    kind: &'static str,
    outcome: Outcome,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for context in ["independent", "inherited", "shared"] {
        for join in ["single", "all", "any", "quorum", "detached"] {
            for executor in ["auto", "local", "elsewhere", "nowhere"] {
                for tools in ["inherit", "exact", "none"] {
                    for kind in ["named", "ad_hoc"] {
                        for outcome in [
                            Outcome::Success,
                            Outcome::Failure,
                            Outcome::Cancel,
                            Outcome::Timeout,
                            Outcome::CrashOfChild,
                            Outcome::CrashOfParent,
                        ] {
                            cells.push(Cell { context, join, executor, tools, kind, outcome });
                        }
                    }
                }
            }
        }
    }
    cells
}

impl Cell {
    /// The word of the refusal, if it is illegal.
    fn refusal(self) -> Option<&'static str> {
        let shared = self.context == "shared";
        let remote = ["elsewhere", "nowhere"].contains(&self.executor);
        match self {
            _ if shared && self.join != "single" => Some("shared_needs_single"),
            _ if shared && remote => Some("shared_needs_local"),
            _ if self.executor == "nowhere" => Some("no_executor"),
            _ if shared && self.outcome == Outcome::Timeout => Some("invalid_arguments"),
            _ => None,
        }
    }

    fn targets(self) -> usize {
        if self.join == "single" { 1 } else { 2 }
    }

    fn arguments(self) -> String {
        let executor = match self.executor {
            "auto" => json!({"kind": "auto"}),
            "local" => json!({"kind": "force", "type": "local"}),
            kind => json!({"kind": "force", "type": "remote", "runner": {"kind": kind}}),
        };
        let mut target = match self.kind {
            "named" => json!({"agent": "child", "prompt": "do"}),
            _ => json!({"system_prompt": "I am child.", "prompt": "do"}),
        };
        target["executor"] = executor;
        if self.outcome == Outcome::Timeout {
            target["timeout_s"] = json!(1);
        }
        let join = match self.join {
            "quorum" => json!({"quorum": {"n": 2}}),
            word => json!(word),
        };
        let tools = match self.tools {
            "inherit" => json!("inherit"),
            "none" => json!({"kind": "none"}),
            _ => json!(["look"]),
        };
        let targets = vec![target; self.targets()];
        json!({"targets": targets, "context": self.context, "join": join, "tools": tools})
            .to_string()
    }

    /// What a child says when it gets that far: the best tool it was offered. No policy takes a tool of
    /// a defined agent away.
    fn word(self) -> &'static str {
        match (self.kind, self.tools) {
            ("named", _) | (_, "inherit") => "act",
            (_, "none") => "none",
            (_, _) => "look",
        }
    }

    /// The model: `stalls` is how children behave that never get done.
    fn script(self, stalls: bool) -> String {
        let mut text = script(&[("Be brief", 0, &calls(&self.arguments()))]);
        let child = |condition: &str, steps: &str| {
            replying(&format!("system_contains = \"I am child\"{condition}"), steps)
        };
        if stalls {
            text.push_str(&child("", "{ stall = true }"));
        } else if self.outcome == Outcome::Failure {
            let refuses = "{ error = { kind = \"permission\", message = \"no\" } }";
            text.push_str(&child("", refuses));
        } else {
            text.push_str(&child(", tool_offered = \"act\"", &says("act")));
            text.push_str(&child(", tool_offered = \"look\"", &says("look")));
            text.push_str(&child("", &says("none")));
        }
        text + &otherwise(&says("heard {{last_result}}"))
    }

    fn team(self) -> Team {
        let stalls = matches!(self.outcome, Outcome::Cancel | Outcome::Timeout);
        Team::new(self.script(stalls), Roster::default().with(agent("child")))
    }

    /// How children end.
    fn status(self) -> &'static str {
        match self.outcome {
            Outcome::Success | Outcome::CrashOfChild | Outcome::CrashOfParent => "completed",
            Outcome::Failure | Outcome::Timeout => "failed",
            Outcome::Cancel => "canceled",
        }
    }

    fn completes(self) -> bool {
        self.status() == "completed"
    }
}

/// Panics the first time that a child asks.
struct FaultyOnce {
    models: Scripted,
    faulted: Arc<AtomicBool>,
}

struct Faulty {
    provider: Arc<dyn Provider>,
    faulted: Arc<AtomicBool>,
}

impl Models for FaultyOnce {
    fn provider(
        &self,
        model: &ModelRef,
        fallbacks: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        let provider = self.models.provider(model, fallbacks, route)?;
        Ok(Arc::new(Faulty { provider, faulted: Arc::clone(&self.faulted) }))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

impl Provider for Faulty {
    fn open(&self, request: Request) -> PieceSource {
        let child = request.system_prompt.contains("I am child");
        if child && !self.faulted.swap(true, Ordering::SeqCst) {
            // A panic that prints nothing.
            std::panic::resume_unwind(Box::new("a fault, once"));
        }
        self.provider.open(request)
    }
}

/// Runs a cell to its end.
async fn run(cell: Cell) -> (Team, TaskState) {
    let team = cell.team();
    let world = match cell.outcome {
        Outcome::CrashOfChild => RuntimeDeps {
            models: Arc::new(FaultyOnce {
                models: Scripted { script: cell.script(false), window_tokens: None },
                faulted: Arc::default(),
            }),
            ..team.world()
        },
        Outcome::CrashOfParent => RuntimeDeps {
            models: Arc::new(Scripted { script: cell.script(true), window_tokens: None }),
            ..team.world()
        },
        Outcome::Success | Outcome::Failure | Outcome::Cancel | Outcome::Timeout => team.world(),
    };
    let mut orchestrator = Orchestrator::new(world);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    if cell.refusal().is_none() {
        match cell.outcome {
            Outcome::Cancel => {
                for child in requested(&orchestrator, cell, &task_id).await {
                    let canceled = orchestrator.cancel(&child).await;
                    let ended = matches!(canceled, Ok(()) | Err(OrchestratorError::Ended { .. }));
                    assert!(ended, "{cell:?}: {canceled:?}");
                }
            }
            Outcome::CrashOfParent => {
                requested(&orchestrator, cell, &task_id).await;
                orchestrator.shutdown(Duration::ZERO).await;
                orchestrator = team.orchestrator();
                orchestrator.recover().await.expect("recovered");
            }
            Outcome::Success | Outcome::Failure | Outcome::Timeout | Outcome::CrashOfChild => {}
        }
    }
    let state = orchestrator.wait(&task_id).await.expect("an end");
    orchestrator.shutdown(Duration::from_secs(5)).await;
    (team, state)
}

/// Waits until the working tasks call their models; returns these tasks.
async fn requested(orchestrator: &Orchestrator, cell: Cell, root: &TaskId) -> Vec<TaskId> {
    let mut follower = orchestrator.follow(None, Position(0));
    let shared = cell.context == "shared";
    let (mut thinking, mut handed_over) = (Vec::new(), false);
    loop {
        let event = follower.next().await.expect("an event");
        handed_over |= matches!(&event.body, EventBody::HandedOver(_));
        let EventBody::StateChanged(change) = &event.body else { continue };
        let at_work = if shared { handed_over } else { event.task_id != *root };
        if at_work && change.to == antiphon_core::AgentState::Thinking {
            thinking.push(event.task_id);
            if thinking.len() == cell.targets() {
                return thinking;
            }
        }
    }
}

async fn check(cell: Cell) {
    let (team, state) = run(cell).await;
    let tasks = team.tasks().await;
    let unfinished = tasks.iter().filter(|task| !task.status.is_terminal()).count();
    assert_eq!(unfinished, 0, "{cell:?}");
    let children = tasks.len() - 1;
    if let Some(word) = cell.refusal() {
        assert_eq!(children, 0, "{cell:?}");
        let (result, is_error) = results(&state)[0].clone();
        let reported: Value = serde_json::from_str(&result).expect("JSON");
        assert_eq!(
            (reported["error"].as_str(), is_error),
            (Some(word), true),
            "{cell:?}: {reported}"
        );
        assert_eq!(state.status, TaskStatus::Completed, "{cell:?}");
        return;
    }
    if cell.context == "shared" {
        assert_eq!(children, 0, "{cell:?}");
        assert_eq!(state.status.as_str(), cell.status(), "{cell:?}: {:?}", state.detail);
        if cell.completes() {
            assert_eq!(state.detail, Some(json!(cell.word())), "{cell:?}");
        }
        return;
    }
    assert_eq!(children, cell.targets(), "{cell:?}");
    assert_eq!(state.status, TaskStatus::Completed, "{cell:?}: {:?}", state.detail);
    if cell.join == "detached" {
        return check_reports(cell, &state);
    }
    let (result, is_error) = results(&state)[0].clone();
    let reported: Value = serde_json::from_str(&result).expect("JSON");
    check_result(cell, &reported, is_error);
}

fn check_result(cell: Cell, reported: &Value, is_error: bool) {
    assert_eq!(is_error, !cell.completes(), "{cell:?}: {reported}");
    let kind = match cell.join {
        "single" => "scalar",
        "any" if cell.completes() => "scalar",
        _ => "vector",
    };
    assert_eq!(reported["kind"], kind, "{cell:?}");
    let results = match kind {
        "scalar" => vec![reported["result"].clone()],
        _ => reported["results"].as_array().expect("results").clone(),
    };
    // A quorum that can no longer be had is not waited for.
    let given_up = |result: &Value| cell.join == "quorum" && result["status"] == "canceled";
    assert!(results.iter().any(|result| result["status"] == cell.status()), "{cell:?}: {reported}");
    for result in results.into_iter().filter(|result| !given_up(result)) {
        assert_eq!(result["status"], cell.status(), "{cell:?}: {reported}");
        match cell.outcome {
            Outcome::Success | Outcome::CrashOfChild | Outcome::CrashOfParent => {
                assert_eq!(result["content"], cell.word(), "{cell:?}");
            }
            Outcome::Failure => assert_eq!(result["content"]["code"], "permission", "{cell:?}"),
            Outcome::Timeout => {
                assert_eq!(result["content"]["limit"]["limit"], "wall_clock", "{cell:?}");
            }
            Outcome::Cancel => assert_eq!(result["content"], "canceled", "{cell:?}"),
        }
    }
}

/// Each child reports once.
fn check_reports(cell: Cell, state: &TaskState) {
    let mut reports = BTreeMap::new();
    for message in state.messages() {
        if let Message::User(user) = &**message {
            let text = format!("{:?}", user.content);
            if let Some((_, behind)) = text.split_once("[RESPONSE to ") {
                let id = behind.split_whitespace().next().unwrap_or_default().to_owned();
                *reports.entry(id).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(reports.len(), cell.targets(), "{cell:?}: {reports:?}");
    assert!(reports.values().all(|count| *count == 1), "{cell:?}: {reports:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_invocation_model_is_executed_or_refused() {
    let cells = cells();
    let (legal, all) = (cells.iter().filter(|cell| cell.refusal().is_none()).count(), cells.len());
    let mut running = JoinSet::new();
    for cell in cells {
        if running.len() == AT_ONCE {
            running.join_next().await.expect("a cell").expect("as it should be");
        }
        running.spawn(async move {
            let checked = tokio::time::timeout(Duration::from_secs(60), check(cell)).await;
            assert!(checked.is_ok(), "{cell:?} never ended");
        });
    }
    while let Some(done) = running.join_next().await {
        done.expect("as it should be");
    }
    assert_eq!((all, legal), (2160, 1140));
}
