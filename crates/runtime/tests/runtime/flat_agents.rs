//! What a long-lived agent or a long task reads does not grow with its life.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, MemoryJournal};
use antiphon_core::port::Journal;
use antiphon_core::{AgentDefinition, EventBody, Position, TaskId};

use crate::counted_reads::{Cost, CountedReads};
use crate::flat_cost::ECHO;
use crate::live_agents::{LiveAgents, clerk, message};
use crate::team::{Roster, Team, agent, calls, otherwise, replying, results, says, step};
use crate::world::{Counting, new_task, orchestrator};

/// Longer than the state of an agent at rest is kept.
const LONG: Duration = Duration::from_secs(10);

/// Live agents on a journal that counts.
fn counted(mut live_agents: LiveAgents) -> (LiveAgents, Arc<DelegatingJournal<CountedReads>>) {
    let journal = CountedReads::on(&live_agents.team.journal);
    live_agents.orchestrator = live_agents.on(Arc::clone(&journal) as Arc<dyn Journal>);
    (live_agents, journal)
}

async fn say(live_agents: &LiveAgents, text: &str) -> TaskId {
    let (_, task_id) = live_agents.admit(message("clerk", text)).await;
    live_agents.at_rest("clerk").await;
    task_id
}

/// Sends a message, and waits until it is answered without reading anything.
async fn wake(live_agents: &LiveAgents) {
    live_agents.admit(message("clerk", "and now")).await;
    while live_agents.orchestrator.is_working() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What it costs to wake an agent that rested for long, after that many turns.
async fn wake_after_rest(turns: usize) -> Cost {
    let (live_agents, journal) = counted(LiveAgents::of(&["clerk"], ECHO.to_owned()));
    for number in 0..turns {
        say(&live_agents, &number.to_string()).await;
    }
    tokio::time::sleep(LONG).await;
    journal.take();
    wake(&live_agents).await;
    journal.take()
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_rested_reads_no_message_again() {
    let long = wake_after_rest(200).await;
    assert_eq!(long.histories, 0, "{long:?}");
    // The first page, and the events since the last checkpoint.
    assert!(long.events <= 2 * 64 + 16 && long.reads <= 12, "{long:?}");
}

/// What an order to a long-lived agent reads, in a process that has just started.
#[tokio::test(start_paused = true)]
async fn an_order_to_a_long_lived_agent_reads_none_of_its_messages() {
    let (mut live_agents, _) = counted(LiveAgents::of(&["clerk"], ECHO.to_owned()));
    let mut task_id = say(&live_agents, "0").await;
    for number in 1..200 {
        task_id = say(&live_agents, &number.to_string()).await;
    }
    live_agents.orchestrator.shutdown(Duration::ZERO).await;
    let journal = CountedReads::on(&live_agents.team.journal);
    live_agents.orchestrator = live_agents.on(Arc::clone(&journal) as Arc<dyn Journal>);
    live_agents.orchestrator.task_alone(&task_id).await.expect("a task");
    let cost = journal.take();
    assert!(cost.histories == 0 && cost.events <= 2 * 64 + 16, "{cost:?}");
}

/// What waking an agent reads that has dispatched that many tasks and rested since.
async fn wake_with_children(children: usize) -> Cost {
    let mut targets = String::new();
    for number in 0..children {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(targets, "{comma}{{\"agent\":\"hand\",\"prompt\":\"{number}\"}}");
    }
    let dispatch = calls(&format!("{{\"targets\":[{targets}],\"join\":\"all\"}}"));
    let script = format!(
        "name = \"team\"\n{}{}{}",
        replying("system_contains = \"I am clerk\", turn = 0", &dispatch),
        replying("system_contains = \"I am hand\"", &says("done")),
        otherwise(&says("ok")),
    );
    let roster = Roster::default().with(clerk("clerk")).with(clerk("hand"));
    let (live_agents, journal) = counted(LiveAgents::with(roster, script));
    say(&live_agents, "dispatch").await;
    assert_eq!(live_agents.team.tasks().await.len(), children + 1);
    tokio::time::sleep(LONG).await;
    journal.take();
    wake(&live_agents).await;
    journal.take()
}

#[tokio::test(start_paused = true)]
async fn waking_an_agent_reads_none_of_the_tasks_that_it_dispatched() {
    let (few, many) = (wake_with_children(2).await, wake_with_children(60).await);
    assert!(many.rows <= few.rows, "{few:?} {many:?}");
}

/// What a new process reads to go on with a single run of that many steps.
async fn load_of_run(steps: usize) -> Cost {
    let script = format!(
        "name = \"test\"\n{}{}",
        replying(&format!("turn = {steps}"), &step("hang", "{}")),
        otherwise(&step("look", "{}")),
    );
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let tools = Arc::new(Counting::default());
    let first = orchestrator(Arc::clone(&memory), &tools, &script);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = first.follow(Some(task_id.clone()), Position(0));
    loop {
        let event = follower.next().await.expect("an event");
        if matches!(&event.body, EventBody::ToolStarted(it) if it.tool_name == "hang") {
            break;
        }
    }
    let journal = CountedReads::on(&memory);
    let next = orchestrator(Arc::clone(&journal) as Arc<dyn Journal>, &tools, &script);
    next.task_alone(&task_id).await.expect("a task");
    let cost = journal.take();
    first.shutdown(Duration::ZERO).await;
    cost
}

#[tokio::test]
async fn a_long_run_goes_on_from_its_last_checkpoint() {
    let long = load_of_run(400).await;
    assert!(long.events <= 64 + 512 + 64, "{long:?}");
}

#[tokio::test]
async fn a_model_finds_one_of_many_agents() {
    let mut roster = Roster::default();
    for number in 0..150 {
        let about = if number == 140 { "Files tax returns." } else { "Does something else." };
        let description = about.to_owned();
        let name = format!("agent-{number:03}");
        roster = roster.with(AgentDefinition { description, ..agent(&name) });
    }
    let script = format!(
        "name = \"team\"\n{}{}{}",
        replying("turn = 0", &step("peers", "{\"filter\":\"TAX files\"}")),
        replying("turn = 1", &step("peers", "{}")),
        otherwise(&says("done")),
    );
    let team = Team::new(script, roster);
    let orchestrator = team.orchestrator();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let results = results(&state);
    let found: serde_json::Value = serde_json::from_str(&results[0].0).expect("JSON");
    let names = found["peers"].as_array().expect("a list").iter().map(|peer| &peer["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["agent-140"]);
    let all: serde_json::Value = serde_json::from_str(&results[1].0).expect("JSON");
    assert_eq!((all["peers"].as_array().map(Vec::len), &all["more"]), (Some(100), &50.into()));
}
