//! `kill -9` while the agents work, and the restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_view::Tone;
use antiphon_view::text::count;

use super::{Kill, RunningTour};
use crate::server::Server;
use crate::{DemoError, Speed};

/// Time without a server, for a person who watches.
const DOWNTIME: Duration = Duration::from_millis(1500);

/// Time to read what was recovered.
const READING: Duration = Duration::from_millis(2000);

impl RunningTour<'_> {
    /// Kills the server, and starts it again.
    pub(super) async fn kill(&mut self) -> Result<(), DemoError> {
        let pid = self.tour.server.pid;
        self.tour.output.chapter("kill", &format!("kill -9 {pid}"))?;
        let explanation = "The whole server dies at once, without a chance to save anything.";
        self.tour.output.say(Tone::Faint, explanation)?;
        self.show_running_work()?;
        self.tour.server.kill().await?;
        let at = SystemClock.now();
        self.streams.suspend();
        // Events that were sent before the kill.
        while let Some(event) = self.streams.try_next() {
            self.tree.apply(&event, Instant::now());
        }
        self.tour.output.agent("server", Tone::Bad, &format!("✗ process {pid} is gone"))?;
        self.draw()?;
        self.pause(DOWNTIME).await;
        let restarted = SystemClock.now();
        let demo = self.tour.demo;
        *self.tour.server = Server::start(&demo.options.program, demo.folder, demo.model).await?;
        self.client = self.tour.connect().await?;
        self.show_recovered()?;
        self.pause(READING).await;
        self.streams.resume(Arc::clone(&self.client));
        self.result.killed = Some(Kill { at, restarted });
        Ok(())
    }

    /// The calls and answers that the kill interrupts.
    fn show_running_work(&mut self) -> Result<(), DemoError> {
        let calls = self.tree.running_calls().map(|(task_id, call, _)| {
            (self.tree.agent(task_id).to_owned(), format!("runs {}", call.title))
        });
        let answers = self.tree.thinking().map(|task_id| {
            (self.tree.agent(task_id).to_owned(), "is in the middle of an answer".to_owned())
        });
        let running: Vec<(String, String)> = calls.chain(answers).collect();
        if running.is_empty() {
            let late = "No agent is running: the work was done before the kill.";
            return self.tour.output.say(Tone::Faint, late);
        }
        for (agent, work) in running {
            self.tour.output.agent(&agent, Tone::Plain, &work)?;
        }
        Ok(())
    }

    fn show_recovered(&mut self) -> Result<(), DemoError> {
        self.tour.output.chapter("recovery", "Restarted, it continues")?;
        let server = &*self.tour.server;
        let (pid, ms) = (server.pid, server.start_time.as_millis());
        let resumed =
            server.resumed_tasks.clone().unwrap_or_else(|| "no task was interrupted".to_owned());
        let listens = format!("✓ process {pid} listens after {ms} ms: {resumed}");
        self.tour.output.agent("server", Tone::Good, &listens)?;
        let done: Vec<(String, usize)> = self
            .tree
            .tasks()
            .map(|task| (task.agent.clone(), self.tree.done_calls(&task.task_id).count()))
            .filter(|(_, done)| *done > 0)
            .collect();
        let all: usize = done.iter().map(|(_, done)| done).sum();
        let each: Vec<String> =
            done.iter().map(|(agent, done)| format!("{agent} {done}")).collect();
        let not_repeated = format!(
            "✓ {} had a result and {} not run again ({})",
            count(all as u64, "call"),
            if all == 1 { "is" } else { "are" },
            each.join(", ")
        );
        self.tour.output.agent("journal", Tone::Good, &not_repeated)?;
        if self.tree.approvals > 0 {
            let decided = "✓ your answer is in the journal: you are not asked twice";
            self.tour.output.agent("", Tone::Good, decided)?;
        }
        let interrupted: Vec<String> = self
            .tree
            .running_calls()
            .map(|(task_id, call, _)| format!("{}: {}", self.tree.agent(task_id), call.title))
            .collect();
        for call in &interrupted {
            self.tour.output.agent("", Tone::Plain, &format!("! interrupted: {call}"))?;
        }
        if interrupted.is_empty() {
            return Ok(());
        }
        let unknown = "The outcome of an interrupted call is unknown, and Antiphon does not guess: the \
                       model is informed, and decides.";
        self.tour.output.say(Tone::Faint, unknown)
    }

    /// Waits while a person reads.
    async fn pause(&self, time: Duration) {
        match self.tour.demo.options.speed {
            Speed::Readable if self.tour.output.is_drawn() => tokio::time::sleep(time).await,
            Speed::Readable | Speed::Fast => {}
        }
    }
}
