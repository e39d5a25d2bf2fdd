//! The tour itself: creates a task, follows its tree, steers an agent, answers approvals, kills the server
//! and starts it again.
//!
//! It reacts to events and to the clock. What does not happen in time is reported, and the tour continues.

mod approval;
mod kill;

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{Event, EventBody, HandlingMode, PriceTable, TaskId};
use antiphon_view::{Collapse, LastColumn, TaskTree, Tone, TreeDrawing};
use chrono::{DateTime, Utc};
use tokio::time::MissedTickBehavior;

use crate::event_lines::event_lines;
use crate::event_streams::EventStreams;
use crate::host::ServerClient;
use crate::keys::Keys;
use crate::observed::ObservedTree;
use crate::output::Output;
use crate::server::{Server, log_end};
use crate::triggers::{self, Timeouts};
use crate::{Demo, DemoError};
use approval::PendingApproval;

/// The prompt of the lead.
const PROMPT: &str = "Ten pieces are charged in full, and should be 10 % cheaper. Have it fixed.";

/// The message that steers an agent.
const STEERING: &str = "Name the ticket in the line you write, please: #42.";

/// How often the tree is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Time for the last events of the descendants to arrive.
const LAST_EVENTS_WAIT: Duration = Duration::from_secs(1);

/// Siblings that are drawn; the others are counted.
pub(crate) const COLLAPSE: Collapse = Collapse::Beyond(6);

/// What the tour needs.
pub(crate) struct Tour<'a> {
    pub(crate) demo: Demo<'a>,
    pub(crate) prices: &'a PriceTable,
    pub(crate) output: &'a mut Output,
    /// The keys of a user who can be asked.
    pub(crate) keys: Option<Keys>,
    pub(crate) server: &'a mut Server,
}

/// What happened on the tour.
#[derive(Debug, Default)]
pub(crate) struct TourResult {
    pub(crate) killed: Option<Kill>,
    pub(crate) steered: bool,
    /// How many approvals were requested.
    pub(crate) approvals: usize,
    /// The tree at the end.
    pub(crate) tree: Option<TaskTree>,
}

/// When the server was killed, and when the next one was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    pub(crate) at: DateTime<Utc>,
    pub(crate) restarted: DateTime<Utc>,
}

/// The tour while it runs.
struct RunningTour<'a> {
    tour: Tour<'a>,
    client: Arc<dyn ServerClient>,
    streams: EventStreams,
    tree: ObservedTree,
    timeouts: Timeouts,
    pending: Vec<PendingApproval>,
    result: TourResult,
}

impl Tour<'_> {
    pub(crate) async fn run(self) -> Result<TourResult, DemoError> {
        let client = self.connect().await?;
        let timeouts = if self.demo.model.is_scripted() {
            Timeouts::for_script(self.demo.options.speed)
        } else {
            Timeouts::for_real_model()
        };
        let running = RunningTour {
            streams: EventStreams::new(Arc::clone(&client)),
            client,
            tour: self,
            tree: ObservedTree::default(),
            timeouts,
            pending: Vec::new(),
            result: TourResult::default(),
        };
        running.run().await
    }

    async fn connect(&self) -> Result<Arc<dyn ServerClient>, DemoError> {
        let client = self.demo.host.connect(&self.demo.folder.root()).await?;
        let url = &self.server.url;
        client.ok_or_else(|| DemoError::unavailable(format!("no server answers at {url}")))
    }
}

impl RunningTour<'_> {
    async fn run(mut self) -> Result<TourResult, DemoError> {
        let began = Instant::now();
        self.create_task().await?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.tree.top_ended() {
            tokio::select! {
                event = self.streams.next() => self.apply(&event)?,
                key = approval::next_key(&mut self.tour.keys), if !self.pending.is_empty() => {
                    self.pressed(key).await?;
                }
                _ = self.tour.server.exited() => return Err(self.server_exited()),
                _ = ticks.tick() => {}
            }
            while let Some(event) = self.streams.try_next() {
                self.apply(&event)?;
            }
            self.act(Instant::now()).await?;
            self.draw()?;
            if began.elapsed() >= self.timeouts.all {
                return Err(self.timed_out());
            }
        }
        self.read_last_events().await?;
        if self.result.killed.is_none() {
            self.kill().await?;
        }
        self.tour.output.panel(Vec::new())?;
        self.explain_missing_parts()?;
        self.result.approvals = self.tree.approvals;
        self.result.tree = self.tree.into_tree();
        Ok(self.result)
    }

    /// The top has ended: waits for the last events of the descendants.
    async fn read_last_events(&mut self) -> Result<(), DemoError> {
        let until = tokio::time::Instant::now() + LAST_EVENTS_WAIT;
        while !self.tree.all_ended() {
            match tokio::time::timeout_at(until, self.streams.next()).await {
                Ok(event) => self.apply(&event)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Creates the task of the lead over HTTP.
    async fn create_task(&mut self) -> Result<(), DemoError> {
        self.tour.output.chapter("plan", "The lead plans")?;
        let model = self.tour.demo.model.model();
        let task_id = self.client.create_task("lead", model, PROMPT).await?;
        self.tour.output.agent("you", Tone::Plain, &format!("“{PROMPT}”"))?;
        let durable = format!(
            "POST /v1/tasks: task {}, on disk before the server answered",
            task_id.as_str().get(..8).unwrap_or_default()
        );
        self.tour.output.agent("", Tone::Faint, &durable)?;
        self.streams.follow(&task_id);
        Ok(())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn apply(&mut self, event: &Event) -> Result<(), DemoError> {
        self.tree.apply(event, Instant::now());
        let agent = self.tree.agent(&event.task_id).to_owned();
        let mut name = agent.as_str();
        for (tone, line) in event_lines(&self.tree, event) {
            self.tour.output.agent(name, tone, &line)?;
            name = "";
        }
        match &event.body {
            EventBody::Dispatched(dispatched) => {
                let first = self.tree.tasks().count() == 1;
                dispatched.children.iter().for_each(|child| self.streams.follow(child));
                if first { self.announce_dispatch(dispatched.children.len()) } else { Ok(()) }
            }
            EventBody::ApprovalRequested(requested) => self.approval_requested(&agent, requested),
            EventBody::ApprovalDecided(decided) => {
                self.pending.retain(|pending| pending.approval_id != decided.approval_id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn announce_dispatch(&mut self, count: usize) -> Result<(), DemoError> {
        let title = match count {
            1 => "One agent is called".to_owned(),
            3 => "Three agents at once".to_owned(),
            count => format!("{count} agents at once"),
        };
        self.tour.output.chapter("fan_out", &title)?;
        let explanation = "Each is a task of its own, with a conversation of its own and no tool that its \
                           caller does not have. They run in parallel; the lead is suspended.";
        self.tour.output.say(Tone::Faint, explanation)
    }

    /// Does everything whose condition holds now.
    async fn act(&mut self, now: Instant) -> Result<(), DemoError> {
        self.answer_expired(now).await?;
        if !self.result.steered
            && let Some(task_id) = triggers::steer(&self.tree, &self.timeouts, now)
        {
            self.result.steered = true;
            self.steer(&task_id).await?;
        }
        let steered = self.result.steered || self.is_too_late_to_steer(now);
        if self.result.killed.is_none() && triggers::kill(&self.tree, steered, &self.timeouts, now)
        {
            self.kill().await?;
        }
        Ok(())
    }

    async fn steer(&mut self, task_id: &TaskId) -> Result<(), DemoError> {
        let agent = self.tree.agent(task_id).to_owned();
        self.tour.output.chapter("steer", &format!("The {agent} is steered"))?;
        let explanation =
            "The agent reads a message in the middle of its turn, after the current step.";
        self.tour.output.say(Tone::Faint, explanation)?;
        self.tour.output.agent("you", Tone::Plain, &format!("“{STEERING}”"))?;
        if let Err(error) = self.client.send_message(task_id, STEERING, HandlingMode::Steer).await {
            // The task may just have ended.
            self.tour.output.agent("you", Tone::Bad, &format!("✗ too late: {error}"))?;
        }
        Ok(())
    }

    fn is_too_late_to_steer(&self, now: Instant) -> bool {
        let waited = self.tree.dispatched.map(|since| now.duration_since(since));
        waited.is_some_and(|waited| waited >= self.timeouts.steer)
    }

    /// Draws the tree and the pending approval below everything else.
    fn draw(&mut self) -> Result<(), DemoError> {
        if !self.tour.output.is_drawn() {
            return Ok(());
        }
        let Some(tree) = self.tree.tree() else { return Ok(()) };
        let colors = self.tour.output.colors();
        let drawing = TreeDrawing {
            prices: self.tour.prices,
            now: SystemClock.now(),
            width: self.tour.output.width(),
            collapse: COLLAPSE,
            last_column: LastColumn::Output,
            colors,
        };
        let mut lines = vec![String::new()];
        lines.extend(drawing.lines(tree));
        if let Some(pending) = self.pending.first() {
            lines.push(String::new());
            lines.push(colors.yellow(&pending.prompt(Instant::now())));
        }
        self.tour.output.panel(lines)
    }

    /// Says which parts of the tour did not happen, and why.
    fn explain_missing_parts(&mut self) -> Result<(), DemoError> {
        let missing = [
            (self.tree.dispatched.is_none(), "No agent was called: the model worked alone."),
            (!self.result.steered, "No agent was steered: none ran long enough."),
            (self.tree.approvals == 0, "No approval was needed for any call."),
        ];
        for (_, text) in missing.into_iter().filter(|(is_missing, _)| *is_missing) {
            self.tour.output.say(Tone::Faint, text)?;
        }
        Ok(())
    }

    fn server_exited(&self) -> DemoError {
        let log = log_end(self.tour.demo.folder);
        DemoError::unavailable(format!("the server exited by itself. The end of its log:\n{log}"))
    }

    fn timed_out(&self) -> DemoError {
        let running: Vec<&str> =
            self.tree.running_descendants().map(|task| task.agent.as_str()).collect();
        DemoError::failed(format!(
            "the demo stops after {} s; these agents still run: {}. Resume them in {} with `antiphon \
             serve`, and watch with `antiphon tasks watch`",
            self.timeouts.all.as_secs(),
            if running.is_empty() { "the lead".to_owned() } else { running.join(", ") },
            self.tour.demo.folder.root().display()
        ))
    }
}
