//! The show itself: a task is asked for, its tree is followed, and when its cue comes an agent is
//! steered, a question is answered, the server is killed and started again.
//!
//! It reacts to events and to the clock. What does not happen in time is said, and the show goes on.

mod kill;
mod question;

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{Event, EventBody, HandlingMode, PriceTable};
use chrono::{DateTime, Utc};
use tokio::time::MissedTickBehavior;

use super::cues::{self, Patience};
use super::keys::Keys;
use super::scratch::Scratch;
use super::server::{Server, last_words};
use super::stage::Stage;
use super::streams::Streams;
use super::telling::told;
use super::view::View;
use super::{Cast, Speed};
use crate::commands::tasks::drawing::{Drawing, Fold, Telling};
use crate::failure::Failure;
use crate::served::Served;
use crate::watch::{Family, Tone};
use question::Question;

/// What the lead is asked.
const PROMPT: &str = "Ten pieces are charged in full, and should be 10 % cheaper. Have it mended.";

/// What an agent is told in the middle of its work.
const STEERING: &str = "Name the ticket in the line you write, please: #42.";

/// How often the tree is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How long what was said last may be on the way.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// Tasks side by side that are drawn.
pub(super) const DRAWN: Fold = Fold::Beyond(6);

/// What the show needs.
pub(super) struct Show<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) cast: &'a Cast,
    pub(super) speed: Speed,
    pub(super) prices: &'a PriceTable,
    pub(super) view: &'a mut View,
    /// Somebody who can be asked.
    pub(super) keys: Option<Keys>,
    pub(super) server: &'a mut Server,
}

/// What happened in it.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// When the server was gone, and when the next one was started.
    pub(super) killed: Option<(DateTime<Utc>, DateTime<Utc>)>,
    pub(super) steered: bool,
    pub(super) asked: usize,
    /// The tree as it was in the end.
    pub(super) family: Option<Family>,
}

/// The show while it goes on.
struct Scene<'a> {
    needs: Show<'a>,
    served: Arc<Served>,
    streams: Streams,
    stage: Stage,
    patience: Patience,
    questions: Vec<Question>,
    played: Played,
}

impl Show<'_> {
    pub(super) async fn play(self) -> Result<Played, Failure> {
        let served = Arc::new(self.server.client(self.scratch).await?);
        let patience = if self.cast.is_scripted() {
            Patience::with_script(self.speed)
        } else {
            Patience::with_model()
        };
        let scene = Scene {
            streams: Streams::from(Arc::clone(&served)),
            served,
            needs: self,
            stage: Stage::default(),
            patience,
            questions: Vec::new(),
            played: Played::default(),
        };
        scene.run().await
    }
}

impl Scene<'_> {
    async fn run(mut self) -> Result<Played, Failure> {
        let began = Instant::now();
        self.ask().await?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.stage.is_over() {
            tokio::select! {
                event = self.streams.next() => self.hear(&event)?,
                key = question::key(&mut self.needs.keys), if !self.questions.is_empty() => {
                    self.pressed(key).await?;
                }
                _ = self.needs.server.ended() => return Err(self.gone()),
                _ = ticks.tick() => {}
            }
            while let Some(event) = self.streams.ready() {
                self.hear(&event)?;
            }
            self.act(Instant::now()).await?;
            self.draw()?;
            if began.elapsed() >= self.patience.all {
                return Err(self.too_long());
            }
        }
        self.rest().await?;
        if self.played.killed.is_none() {
            self.kill().await?;
        }
        self.needs.view.panel(Vec::new())?;
        self.explain()?;
        self.played.asked = self.stage.asked;
        self.played.family = self.stage.into_family();
        Ok(self.played)
    }

    /// The top has ended: what is still on the way from the others.
    async fn rest(&mut self) -> Result<(), Failure> {
        let until = tokio::time::Instant::now() + LAST_WORDS_WAIT;
        while !self.stage.is_quiet() {
            match tokio::time::timeout_at(until, self.streams.next()).await {
                Ok(event) => self.hear(&event)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Asks for the task, over HTTP.
    async fn ask(&mut self) -> Result<(), Failure> {
        self.needs.view.scene("plan", "The lead plans")?;
        let model = self.needs.cast.model();
        let task_id = self.served.submit("lead", model, PROMPT).await?;
        self.needs.view.agent("you", Tone::Plain, &format!("“{PROMPT}”"))?;
        let kept = format!(
            "POST /v1/tasks: task {}, on disk before it was answered",
            task_id.as_str().get(..8).unwrap_or_default()
        );
        self.needs.view.agent("", Tone::Faint, &kept)?;
        self.streams.follow(&task_id);
        Ok(())
    }

    fn hear(&mut self, event: &Event) -> Result<(), Failure> {
        self.stage.apply(event, Instant::now());
        let agent = self.stage.agent(&event.task_id).to_owned();
        let mut name = agent.as_str();
        for (tone, line) in told(&self.stage, event) {
            self.needs.view.agent(name, tone, &line)?;
            name = "";
        }
        if let EventBody::Dispatched(dispatched) = &event.body {
            let first = self.stage.tasks().count() == 1;
            dispatched.children.iter().for_each(|child| self.streams.follow(child));
            if first { self.fan_out(dispatched.children.len()) } else { Ok(()) }
        } else if let EventBody::ApprovalRequested(asked) = &event.body {
            self.asked(&agent, asked)
        } else {
            if let EventBody::ApprovalDecided(decided) = &event.body {
                self.questions.retain(|question| question.approval_id != decided.approval_id);
            }
            Ok(())
        }
    }

    fn fan_out(&mut self, count: usize) -> Result<(), Failure> {
        let title = match count {
            1 => "One agent is sent out".to_owned(),
            3 => "Three agents at once".to_owned(),
            count => format!("{count} agents at once"),
        };
        self.needs.view.scene("fan_out", &title)?;
        let why = "Each is a task of its own, with a conversation of its own and no tool that its \
                   caller does not have. They run side by side; the lead rests.";
        self.needs.view.say(Tone::Faint, why)
    }

    /// Does what its time has come for.
    async fn act(&mut self, now: Instant) -> Result<(), Failure> {
        self.answer_late(now).await?;
        if !self.played.steered
            && let Some(task_id) = cues::steer(&self.stage, &self.patience, now)
        {
            self.played.steered = true;
            self.steer(&task_id).await?;
        }
        let steered = self.played.steered || self.is_nobody_to_steer(now);
        if self.played.killed.is_none() && cues::kill(&self.stage, steered, &self.patience, now) {
            self.kill().await?;
        }
        Ok(())
    }

    async fn steer(&mut self, task_id: &antiphon_core::TaskId) -> Result<(), Failure> {
        let agent = self.stage.agent(task_id).to_owned();
        self.needs.view.scene("steer", &format!("The {agent} is steered"))?;
        let why = "A message reaches an agent in the middle of its turn, at the next safe point.";
        self.needs.view.say(Tone::Faint, why)?;
        self.needs.view.agent("you", Tone::Plain, &format!("“{STEERING}”"))?;
        if let Err(failure) = self.served.say(task_id, STEERING, HandlingMode::Steer).await {
            // It may just have ended.
            self.needs.view.agent("you", Tone::Bad, &format!("✗ too late: {failure}"))?;
        }
        Ok(())
    }

    /// Whether everybody who could have been steered is gone, or nobody came in time.
    fn is_nobody_to_steer(&self, now: Instant) -> bool {
        let waited = self.stage.fanned_out.map(|since| now.duration_since(since));
        waited.is_some_and(|waited| waited >= self.patience.steer)
    }

    /// The tree as it is, and what is asked, beneath everything.
    fn draw(&mut self) -> Result<(), Failure> {
        if !self.needs.view.is_drawn() {
            return Ok(());
        }
        let Some(family) = self.stage.family() else { return Ok(()) };
        let drawing = Drawing {
            prices: self.needs.prices,
            now: SystemClock.now(),
            width: self.needs.view.width(),
            fold: DRAWN,
            telling: Telling::Words,
            ink: Some(self.needs.view.ink),
        };
        let mut lines = vec![String::new()];
        lines.extend(drawing.lines(family));
        if let Some(question) = self.questions.first() {
            lines.push(String::new());
            lines.push(self.needs.view.ink.yellow(&question.prompt(Instant::now())));
        }
        self.needs.view.panel(lines)
    }

    /// What did not happen, and why.
    fn explain(&mut self) -> Result<(), Failure> {
        let missing = [
            (self.stage.fanned_out.is_none(), "Nobody was sent out: the model did it alone."),
            (!self.played.steered, "Nobody was steered: nobody was at work for long enough."),
            (self.stage.asked == 0, "Nothing was asked: no call needed somebody's word here."),
        ];
        for (_, text) in missing.into_iter().filter(|(is_missing, _)| *is_missing) {
            self.needs.view.say(Tone::Faint, text)?;
        }
        Ok(())
    }

    fn gone(&self) -> Failure {
        let words = last_words(self.needs.scratch);
        Failure::unavailable(format!("the server ended by itself. The last it said:\n{words}"))
    }

    fn too_long(&self) -> Failure {
        let at_work: Vec<&str> = self.stage.at_work().map(|task| task.agent.as_str()).collect();
        Failure::failed(format!(
            "the demo gives up after {} s, and these are still at work: {}. Go on in {} with `antiphon \
             serve`, and watch with `antiphon tasks watch`",
            self.patience.all.as_secs(),
            if at_work.is_empty() { "the lead".to_owned() } else { at_work.join(", ") },
            self.needs.scratch.root().display()
        ))
    }
}
