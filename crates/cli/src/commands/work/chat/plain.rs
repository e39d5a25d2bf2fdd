//! The terminal program as lines of text, for screen readers and for terminals without escape sequences: a prompt is a
//! line, an answer is text, and nothing is drawn again.

use std::time::{Duration, Instant};

use antiphon_api::{RunStarted, RunTarget};
use antiphon_core::{HandlingMode, SessionId, TaskId, TaskStatus};
use antiphon_process::{AttachedTask, WatchResult};
use antiphon_tui::{ProgramOptions, StartWith, TaskWork, Typed};
use uuid::Uuid;

use crate::failure::{Exit, Failure};
use crate::keyboard::{Keyboard, TypedAs};
use crate::outcome;
use crate::screen::{Screen, TranscriptFormat};
use crate::stop_signal::{Interrupts, StopSignal, StopSignals};
use crate::suspension::{Asked, Suspension};
use crate::terminal;
use crate::terminal_notice::TerminalNotices;
use crate::watch::{Watch, WatchStart};

/// A second Ctrl-C within this time quits.
const SECOND_INTERRUPT: Duration = Duration::from_secs(2);

const HELP: &str = "\
Type a prompt and Enter. While an agent works, it reads what you type after its current step; /pause suspends it.
Ctrl-C interrupts the agent. Ctrl-D or /quit ends the program. /new begins a new conversation.
";

/// What the user wants next.
enum Wanted {
    Prompt(String),
    Quit,
}

/// A conversation in lines of text.
pub(super) struct PlainChat {
    options: ProgramOptions,
    keyboard: Keyboard,
    /// The conversation, and its last task.
    session: Option<(SessionId, TaskId)>,
    /// The last task was interrupted, and can go on.
    is_suspended: bool,
    stop_signal: StopSignal,
    interrupts: Interrupts,
    suspension: Suspension,
}

impl PlainChat {
    pub(super) fn new(options: ProgramOptions) -> Result<Self, Failure> {
        Ok(Self {
            options,
            keyboard: Keyboard::listen(TypedAs::Lines),
            session: None,
            is_suspended: false,
            stop_signal: StopSignal::catch(StopSignals::Terminate)?,
            interrupts: Interrupts::catch()?,
            suspension: Suspension::catch()?,
        })
    }

    /// Takes prompts until the user quits.
    pub(super) async fn run(mut self, attachment: &mut AttachedTask<'_>) -> Result<(), Failure> {
        terminal::print(&format!(
            "Antiphon {}, {}. /help explains; Ctrl-D quits.\n",
            env!("CARGO_PKG_VERSION"),
            self.options.default_model
        ));
        attachment.serve();
        if self.options.start_with == StartWith::Last {
            let last = attachment.connection().find_session("last").await?;
            self.is_suspended = !last.status.is_terminal();
            self.session = Some((last.session_id, last.last_task));
        }
        let mut first = self.options.first_prompt.take();
        loop {
            let wanted = match first.take() {
                Some(prompt) => Wanted::Prompt(prompt),
                None => self.prompt(attachment).await?,
            };
            match wanted {
                Wanted::Quit => return Ok(()),
                Wanted::Prompt(prompt) => match self.work(attachment, prompt).await {
                    Ok(()) => {}
                    Err(failure) if failure.exit == Exit::Terminated => return Err(failure),
                    Err(failure) => terminal::print(&format!("Error: {failure}\n")),
                },
            }
        }
    }

    /// Reads the next prompt. Commands of the program are done here.
    async fn prompt(&mut self, attachment: &mut AttachedTask<'_>) -> Result<Wanted, Failure> {
        let mut interrupted: Option<Instant> = None;
        terminal::write("Prompt: ")?;
        loop {
            let line = tokio::select! {
                typed = self.keyboard.typed() => match typed {
                    Typed::Line(line) => line.text.trim().to_owned(),
                    Typed::End => return Ok(Wanted::Quit),
                    Typed::Changed | Typed::TooLong => continue,
                },
                () = self.interrupts.received() => {
                    if interrupted.is_some_and(|at| at.elapsed() < SECOND_INTERRUPT) {
                        return Ok(Wanted::Quit);
                    }
                    interrupted = Some(Instant::now());
                    terminal::write("\nPress Ctrl-C again to quit.\nPrompt: ")?;
                    continue;
                }
                Asked::Suspend = self.suspension.asked() => {
                    self.suspension.stop();
                    terminal::write("Prompt: ")?;
                    continue;
                }
                () = self.stop_signal.received() => return Ok(Wanted::Quit),
                () = attachment.asked_to_leave() => {
                    attachment.hand_over().await;
                    attachment.leave().await;
                    attachment.find_next_owner().await?;
                    attachment.serve();
                    continue;
                }
                () = attachment.owner_lost() => {
                    attachment.find_next_owner().await?;
                    if let Some(change) = attachment.take_owner_change() {
                        terminal::write(&format!("\n{}\nPrompt: ", change.text()))?;
                    }
                    continue;
                }
            };
            match line.as_str() {
                "/quit" => return Ok(Wanted::Quit),
                "/help" => terminal::print(HELP),
                "/new" => {
                    (self.session, self.is_suspended) = (None, false);
                    terminal::print("A new conversation.\n");
                }
                "" if !self.is_suspended => {}
                _ => return Ok(Wanted::Prompt(line)),
            }
            terminal::write("Prompt: ")?;
        }
    }

    /// Starts a task, or goes on with the one that was interrupted, and shows it.
    async fn work(
        &mut self,
        attachment: &mut AttachedTask<'_>,
        prompt: String,
    ) -> Result<(), Failure> {
        let suspended = self.session.as_ref().filter(|_| self.is_suspended);
        let (started, start) = match suspended.map(|(_, task)| task.clone()) {
            Some(task) => {
                if !prompt.is_empty() {
                    attachment.connection().send(&task, prompt, HandlingMode::Steer).await?;
                }
                let started = attachment.start(RunTarget::Resume(task), None).await?;
                let start = WatchStart::Resumed(started.after);
                (started, start)
            }
            None => {
                let request = self.options.new_task(
                    prompt.clone(),
                    &prompt,
                    self.session.clone(),
                    TaskWork::Prompt,
                )?;
                let key = Uuid::new_v4().to_string();
                let started = attachment.start(request, Some(&key)).await?;
                let start = WatchStart::Creation(started.after);
                (started, start)
            }
        };
        for warning in &started.warnings {
            terminal::print(&format!("Warning: {warning}\n"));
        }
        let created = attachment.connection().reader().created(&started.task_id).await?;
        self.session = Some((created.session_id, started.task_id.clone()));
        let result = self.watch(attachment, &started, start).await?;
        self.is_suspended = !result.state.status.is_terminal();
        if self.is_suspended {
            terminal::print("Interrupted. Enter goes on, or type how it should go on.\n");
        } else if result.state.status != TaskStatus::Completed {
            outcome::outcome(&result.state)?;
        }
        Ok(())
    }

    async fn watch(
        &mut self,
        attachment: &mut AttachedTask<'_>,
        started: &RunStarted,
        start: WatchStart,
    ) -> Result<WatchResult, Failure> {
        let task_id = &started.task_id;
        let prices = self.options.prices.clone();
        let watch = Watch {
            task_id,
            root: &started.root,
            screen: Screen::new(TranscriptFormat::Text, prices, None),
            keyboard: &mut self.keyboard,
            asks: true,
            notices: TerminalNotices::none(),
        };
        let watched = tokio::select! {
            watched = watch.run(attachment, start) => watched,
            () = self.stop_signal.received() => Err(Failure::terminated(task_id)),
        };
        if watched.as_ref().is_err_and(|failure| failure.exit == Exit::Terminated) {
            attachment.connection().interrupt(task_id).await?;
        }
        // Signals that arrived meanwhile were for the task.
        (self.interrupts, self.suspension) = (Interrupts::catch()?, Suspension::catch()?);
        watched
    }
}
