//! `kill -9`, in the middle of work, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Clock as _, SystemClock};

use super::Scene;
use crate::commands::demo::Speed;
use crate::commands::demo::server::Server;
use crate::failure::Failure;
use crate::terminal::count;
use crate::watch::Tone;

/// How long nobody is there, for those who watch.
const SILENCE: Duration = Duration::from_millis(1500);

/// How long somebody has to read what came back.
const READING: Duration = Duration::from_millis(2000);

impl Scene<'_> {
    /// Kills the server, and starts it again.
    pub(super) async fn kill(&mut self) -> Result<(), Failure> {
        let pid = self.needs.server.pid;
        self.needs.view.scene("kill", &format!("kill -9 {pid}"))?;
        let why = "The whole server dies at once: nothing is saved, nobody is asked.";
        self.needs.view.say(Tone::Faint, why)?;
        self.in_the_middle()?;
        self.needs.server.kill().await?;
        let killed = SystemClock.now();
        self.streams.rest();
        // What was on the way when it died is known from before.
        while let Some(event) = self.streams.ready() {
            self.stage.apply(&event, std::time::Instant::now());
        }
        self.needs.view.agent("server", Tone::Bad, &format!("✗ process {pid} is gone"))?;
        self.draw()?;
        self.pause(SILENCE).await;
        let started = SystemClock.now();
        *self.needs.server = Server::start(self.needs.scratch, self.needs.cast).await?;
        self.server_client = Arc::new(self.needs.server.client(self.needs.scratch).await?);
        self.back()?;
        self.pause(READING).await;
        self.streams.go_on(Arc::clone(&self.server_client));
        self.played.killed = Some((killed, started));
        Ok(())
    }

    /// Who is in the middle of what.
    fn in_the_middle(&mut self) -> Result<(), Failure> {
        let running = self.stage.running().map(|(task_id, call, _)| {
            (self.stage.agent(task_id).to_owned(), format!("runs {}", call.title))
        });
        let thinking = self.stage.thinking().map(|task_id| {
            (self.stage.agent(task_id).to_owned(), "is in the middle of an answer".to_owned())
        });
        let middle: Vec<(String, String)> = running.chain(thinking).collect();
        if middle.is_empty() {
            let late = "Nobody is in the middle of anything: the work was faster than the kill.";
            return self.needs.view.say(Tone::Faint, late);
        }
        for (agent, what) in middle {
            self.needs.view.agent(&agent, Tone::Plain, &what)?;
        }
        Ok(())
    }

    /// What is there again.
    fn back(&mut self) -> Result<(), Failure> {
        self.needs.view.scene("recovery", "Started again, it goes on")?;
        let server = &*self.needs.server;
        let (pid, took) = (server.pid, server.took.as_millis());
        let going_on = server.going_on.clone().unwrap_or_else(|| "nothing was cut off".to_owned());
        let listens = format!("✓ process {pid} listens after {took} ms: {going_on}");
        self.needs.view.agent("server", Tone::Good, &listens)?;
        let done: Vec<(String, usize)> = self
            .stage
            .tasks()
            .map(|task| (task.agent.clone(), self.stage.done(&task.task_id).count()))
            .filter(|(_, done)| *done > 0)
            .collect();
        let all: usize = done.iter().map(|(_, done)| done).sum();
        let each: Vec<String> =
            done.iter().map(|(agent, done)| format!("{agent} {done}")).collect();
        let kept = format!(
            "{} had a result and {} not run again ({})",
            count(all as u64, "call"),
            if all == 1 { "is" } else { "are" },
            each.join(", ")
        );
        self.needs.view.agent("journal", Tone::Good, &format!("✓ {kept}"))?;
        if self.stage.asked > 0 {
            let kept = "✓ what you answered is kept: nobody is asked twice";
            self.needs.view.agent("", Tone::Good, kept)?;
        }
        let cut_off: Vec<String> = self
            .stage
            .running()
            .map(|(task_id, call, _)| format!("{}: {}", self.stage.agent(task_id), call.title))
            .collect();
        for call in &cut_off {
            self.needs.view.agent("", Tone::Plain, &format!("! cut off: {call}"))?;
        }
        if cut_off.is_empty() {
            return Ok(());
        }
        let told =
            "Nobody knows how far that got, and nobody guesses: its model is told, and decides.";
        self.needs.view.say(Tone::Faint, told)
    }

    /// Lets those who watch read.
    pub(super) async fn pause(&self, time: Duration) {
        match self.needs.speed {
            Speed::Readable if self.needs.view.is_drawn() => tokio::time::sleep(time).await,
            Speed::Readable | Speed::Fast => {}
        }
    }
}
