//! Every state of a task meets every outage, with the binary: the table of `docs/outages.md`, executed.
//!
//! `make outages` makes the model away, the disk full and the process stopped for a minute (`OUTAGE_S=60`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/anthropic_wire.rs"]
mod anthropic_wire;
mod faults;
mod model;
#[path = "../support/preload.rs"]
mod preload;
#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/project_server.rs"]
mod project_server;
mod world;

use serde_json::Value;

use world::World;

/// What a task does when the outage begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A live agent waits for messages.
    Idle,
    /// The model has the request and has not answered.
    Thinking,
    /// A part of the answer was shown.
    Streaming,
    /// A command has had its effect, and runs on.
    ToolRunning,
    /// The same in a sandboxed worker.
    SandboxedToolRunning,
    WaitingForApproval,
    /// A task below it thinks.
    Child,
    /// A task below it thinks, on a peer.
    RemoteChild,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outage {
    /// The connection is closed, and requests are refused until the task waits for its model.
    ModelAway,
    /// The answer, or the next one, breaks off.
    StreamCut,
    DiskFull,
    Sigterm,
    Sigkill,
    Sigstop,
    ClockForward,
    ClockBack,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The work is done as without the outage, and everything happened once.
    Done,
    /// The same, and the model was informed that the outcome of its call is unknown.
    UnknownCall,
}

fn outcome(state: State, outage: Outage) -> Outcome {
    match (state, outage) {
        (State::ToolRunning | State::SandboxedToolRunning, Outage::Sigkill) => Outcome::UnknownCall,
        _ => Outcome::Done,
    }
}

fn meet(state: State, outage: Outage) {
    let mut world = World::new(state);
    let task = world.reach_state();
    world.undergo(outage);
    world.finish(&task);
    let events = world.events(&task);
    let context = format!("{state:?} {outage:?}: {events:#?}");
    let runs_command = matches!(
        state,
        State::ToolRunning | State::SandboxedToolRunning | State::WaitingForApproval
    );
    let commands = usize::from(runs_command);
    assert_eq!(world.log(), "once\n".repeat(commands), "{context}");
    let unknown = results(&events).filter(|text| text.contains("outcome unknown")).count();
    let expected = usize::from(outcome(state, outage) == Outcome::UnknownCall);
    assert_eq!(unknown, expected, "{context}");
    let calls = usize::from(!matches!(state, State::Idle | State::Thinking | State::Streaming));
    assert_eq!(results(&events).count(), calls, "{context}");
    let ends = events.iter().filter(|event| event["data"]["status"] == "completed").count();
    assert_eq!(ends, usize::from(state != State::Idle), "{context}");
    for (number, event) in (1..).zip(&events) {
        assert_eq!(event["seq"], number, "{context}");
    }
}

/// The results of the task's calls.
fn results(events: &[Value]) -> impl Iterator<Item = String> {
    let message = |event: &Value| {
        let message = &event["data"]["message"];
        (message["type"] == "tool_result").then(|| message["content"].to_string())
    };
    events.iter().filter_map(message)
}

macro_rules! row {
    ($name:ident, $state:ident) => {
        mod $name {
            use crate::{Outage, State, meet};

            row!(@cells $state:
                model_away ModelAway, stream_cut StreamCut, disk_full DiskFull, sigterm Sigterm,
                sigkill Sigkill, sigstop Sigstop, clock_forward ClockForward, clock_back ClockBack);
        }
    };
    (@cells $state:ident: $($test:ident $outage:ident),*) => {
        $(
            #[test]
            fn $test() {
                meet(State::$state, Outage::$outage);
            }
        )*
    };
}

row!(idle, Idle);
row!(thinking, Thinking);
row!(streaming, Streaming);
row!(tool_running, ToolRunning);
row!(sandboxed_tool_running, SandboxedToolRunning);
row!(waiting_for_approval, WaitingForApproval);
row!(child, Child);
row!(remote_child, RemoteChild);
