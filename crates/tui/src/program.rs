//! The loop of the program: keys, events and deltas in, lines and orders out.
//!
//! Nothing is decided here about tasks: orders go to the [`Connection`], and what became of them comes back as events.

mod clipboard;
mod commands;
mod compact;
mod conversation;
mod cost;
mod detach;
mod draw;
mod earlier;
mod editing;
mod events;
mod keys;
mod lookups;
mod models;
mod new_task;
mod outside;
mod overlay;
mod palette;
mod permissions;
mod plan;
mod questions;
mod rest;
mod sessions;
mod settings;
mod signals;
mod tree_focus;

use std::collections::VecDeque;
use std::io::{self, Stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::{ModelRef, Position, PriceTable, SessionId, TaskAccess, TaskId, TaskLimits};
use antiphon_process::{AttachedTask, Connection, TaskStream};
use antiphon_project::error::ProjectError;
use antiphon_project::models::{Models, Route};
use antiphon_project::project::Project;
use antiphon_project::settings::ContextWindows;
use crossterm::event::EventStream;
use futures_util::StreamExt as _;
use ratatui_core::text::Line;
use tokio::task::JoinSet;

use crate::asked_question::AskedQuestion;
use crate::board::Board;
use crate::choice::ChoiceList;
use crate::command::Command;
use crate::completion::Completions;
use crate::composer::{Composer, Vi};
use crate::hang_up::HangUp;
use crate::history::History;
use crate::inline_screen::{InlineScreen, Size, Styles};
use crate::keymap::Keymap;
use crate::notification::{NotificationSequence, Notifier};
use crate::project_files::ProjectFiles;
use crate::prompt_entry::{ExpandPrompt, PromptEntry};
use crate::terminal_mode::{self, TerminalMode};
use crate::transcript::TaskTranscript;
use lookups::Found;
pub use new_task::TaskWork;
use overlay::{Opening, Overlay};
use rest::Rest;
use sessions::Preview;
use signals::{Asked, Signals, next_signal};
use tempfile::TempDir;
use tree_focus::TreeFocus;

/// Shortest time between two frames that no key asked for.
const FRAME: Duration = Duration::from_millis(16);

/// How often the sign of progress moves.
const TICK: Duration = Duration::from_millis(100);

/// Which conversation the program begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartWith {
    /// A new one.
    New,
    /// The one with the newest task.
    Last,
}

/// Where questions of the tasks here are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// In the program, as they come.
    Here,
    /// Elsewhere; here when the user asks for them.
    Elsewhere,
}

/// What the program is started with.
pub struct ProgramOptions {
    /// The conversation it begins with.
    pub start_with: StartWith,
    /// Model of new tasks; when absent, the agent's, the conversation's or the default one.
    pub model: Option<ModelRef>,
    /// The model that is used when none is chosen, as it is shown.
    pub default_model: String,
    /// Agent of new conversations; the default one when absent.
    pub agent: Option<String>,
    /// Names and descriptions of the defined agents.
    pub agents: Vec<(String, String)>,
    /// Commands that are prompts in files.
    pub prompts: Vec<PromptEntry>,
    /// Makes their prompts.
    pub expand: ExpandPrompt,
    /// Sent at once.
    pub first_prompt: Option<String>,
    /// How the model is reached, and what the process gives to its tasks.
    pub route: Route,
    /// Limits of new tasks.
    pub limits: TaskLimits,
    /// Whether the next task plans first.
    pub access: TaskAccess,
    /// Where questions of tasks are asked.
    pub asks: Asks,
    /// The models that can be chosen, with the settings of the user.
    pub models: Arc<Models>,
    /// Prices of models.
    pub prices: PriceTable,
    /// Sizes of context windows.
    pub windows: ContextWindows,
    /// The folder whose files `@` completes.
    pub root: PathBuf,
    /// File that keeps the prompts.
    pub history: PathBuf,
    /// Name of the decider of an approval in the journal.
    pub decider: &'static str,
    /// This program, which other commands are run with.
    pub program: String,
    /// Options that such a command gets, so that it works on the same project in the same way.
    pub program_options: Vec<String>,
    /// Command line of the user's editor.
    pub editor: String,
    /// Command line of the user's shell.
    pub shell: String,
    /// Whether text is colored.
    pub colors: bool,
    /// What keys do.
    pub keymap: Keymap,
    /// How the terminal is asked to notify.
    pub notifications: NotificationSequence,
    /// The project.
    pub project: Project,
}

/// Runs the program until the user quits. The terminal is as before when this returns.
pub async fn run(
    attachment: &mut AttachedTask<'_>,
    options: ProgramOptions,
) -> Result<(), ProjectError> {
    terminal_mode::restore_at_panic();
    let mode = TerminalMode::enter().map_err(unusable)?;
    let mut terminal_end = HangUp::watch().map_err(unusable)?;
    let mut program = Program::new(attachment, options);
    let ended = match program.begin().await {
        Ok(()) => program.run(&mut terminal_end).await,
        Err(error) => Err(error),
    };
    let cleared = program.screen.clear().map_err(unusable);
    terminal_mode::set_alternate(false);
    drop(mode);
    if terminal_end.has_come() {
        // What failed since then failed because of it.
        return Ok(());
    }
    cleared?;
    ended?;
    program.say_goodbye();
    Ok(())
}

fn unusable(error: io::Error) -> ProjectError {
    ProjectError::Failed(format!("the terminal cannot be used: {error}"))
}

/// The conversation that the next prompt continues.
#[derive(Debug, Clone, Default)]
struct Conversation {
    /// Its session and the last task of it.
    session: Option<(SessionId, TaskId)>,
    /// The model of that task; absent when it has none.
    model: Option<ModelRef>,
    /// What the user calls it.
    name: Option<String>,
}

/// What the user chooses from a list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Picked {
    Session(SessionId),
    Task(TaskId),
    Agent(String),
    Prompt(String),
    Model(ModelRef),
    /// A task that was interrupted or paused.
    Resumed(TaskId),
    Command(Command),
    File(String),
    /// Index and text of an earlier message of the conversation.
    Earlier(usize, String),
}

/// Whether the program goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Quit,
}

/// What becomes of a working task when the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    /// It is interrupted, and can be resumed.
    Interrupt,
    /// It goes on without this program.
    Detach,
}

/// Whether the list of everything has the files of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaletteFiles {
    Shown,
    /// The list gets them when they are read.
    Awaited,
}

struct Program<'a, 'p> {
    attachment: &'a mut AttachedTask<'p>,
    options: ProgramOptions,
    screen: InlineScreen<Stdout>,
    composer: Composer,
    /// The keys of vi, when they are on.
    vi: Option<Vi>,
    history: History,
    completions: Option<Completions>,
    list: Option<ChoiceList<Picked>>,
    files: ProjectFiles,
    palette_files: PaletteFiles,
    /// The tree has the keyboard.
    focus: Option<TreeFocus>,
    /// The task that the next prompt is for; the conversation's when absent.
    addressee: Option<TaskId>,
    /// A task beside the conversation whose question is asked here.
    asked_task: Option<TaskId>,
    overlay: Option<Overlay>,
    /// The transcript that will be the overlay.
    opening: Option<Opening>,
    /// When Esc was pressed last, with nothing to interrupt.
    escaped: Option<Instant>,
    conversation: Conversation,
    watched: Option<TaskTranscript>,
    /// The newest task that this program has started.
    started: Option<TaskId>,
    /// The watched task works.
    is_working: bool,
    rest: Rest,
    /// The watched task was interrupted or paused, or stopped early, and can go on.
    is_suspended: bool,
    /// The task that shortens the conversation.
    compacting: Option<TaskId>,
    at_end: AtEnd,
    /// Prompts that are sent when the task has ended.
    queue: VecDeque<String>,
    board: Board,
    /// What is looked up beside the loop.
    lookups: JoinSet<Found>,
    /// The conversation that is selected in a list, and what was said in it last.
    preview: Option<Preview>,
    /// Images that were taken from the clipboard; removed at the end.
    images: Option<TempDir>,
    /// What the user typed for the prompt that is sent now, if it is of a command's file.
    typed: Option<String>,
    question: Option<AskedQuestion>,
    /// Why a key or a text did not answer the question.
    warning: Option<String>,
    notifier: Notifier,
    /// Lines that are written above the live rows with the next frame.
    finished: Vec<Line<'static>>,
    position: Position,
    stream: TaskStream,
    keys: Option<EventStream>,
    signals: Option<Signals>,
    /// The key that quits was pressed once.
    wants_to_quit: Option<Instant>,
    is_dirty: bool,
    drawn: Instant,
}

impl<'a, 'p> Program<'a, 'p> {
    fn new(attachment: &'a mut AttachedTask<'p>, options: ProgramOptions) -> Self {
        let config = &options.models.settings().tui;
        let styles = if options.colors { Styles::In(config.theme) } else { Styles::Off };
        let vi = config.vi.then(Vi::default);
        let size = Size::of(crossterm::terminal::size().unwrap_or((0, 0)));
        let history = History::read(options.history.clone());
        let files = ProjectFiles::new(options.root.clone());
        let notifier = Notifier::new(options.notifications, &options.root);
        Self {
            attachment,
            options,
            screen: InlineScreen::new(io::stdout(), styles, size),
            composer: Composer::default(),
            vi,
            history,
            completions: None,
            list: None,
            files,
            palette_files: PaletteFiles::Shown,
            focus: None,
            addressee: None,
            asked_task: None,
            overlay: None,
            opening: None,
            escaped: None,
            conversation: Conversation::default(),
            watched: None,
            started: None,
            is_working: false,
            rest: Rest::Unknown,
            is_suspended: false,
            compacting: None,
            at_end: AtEnd::Interrupt,
            queue: VecDeque::new(),
            board: Board::default(),
            lookups: JoinSet::new(),
            preview: None,
            images: None,
            typed: None,
            question: None,
            warning: None,
            notifier,
            finished: Vec::new(),
            position: Position(0),
            stream: TaskStream::Nothing,
            keys: None,
            signals: None,
            wants_to_quit: None,
            is_dirty: true,
            drawn: Instant::now(),
        }
    }

    /// Reads what is at work, and follows it.
    async fn begin(&mut self) -> Result<(), ProjectError> {
        let reader = self.attachment.connection().reader().clone();
        self.position = reader.head().await?;
        self.board.read(&reader).await?;
        self.stream = self.attachment.journal_stream(self.position);
        self.attachment.serve();
        self.keys = Some(EventStream::new());
        self.welcome();
        if self.options.start_with == StartWith::Last {
            self.continue_last().await?;
        }
        match self.options.first_prompt.take() {
            Some(prompt) => self.begin_with(prompt).await,
            None => Ok(()),
        }
    }

    async fn run(&mut self, terminal_end: &mut HangUp) -> Result<(), ProjectError> {
        let ended = self.follow(terminal_end).await;
        self.leave_task().await;
        ended
    }

    /// Follows keys, tasks and signals until one of them ends the program.
    async fn follow(&mut self, terminal_end: &mut HangUp) -> Result<(), ProjectError> {
        let cannot = |error| ProjectError::Failed(format!("cannot listen for signals: {error}"));
        self.signals = Some(Signals::catch().map_err(cannot)?);
        let mut ticks = tokio::time::interval(TICK);
        let mut handing_over = JoinSet::new();
        loop {
            self.draw_if_due()?;
            self.await_rest();
            let seen = self.watched.as_ref().map_or(antiphon_core::Seq(0), |task| task.seen);
            let frame_in = FRAME.saturating_sub(self.drawn.elapsed());
            let ready_at = self.question.as_ref().and_then(AskedQuestion::ready_at);
            let next = tokio::select! {
                biased;
                () = terminal_end.comes() => Next::Quit,
                key = next_key(&mut self.keys) => match key {
                    Some(Ok(event)) => self.input(event).await?,
                    // The terminal is gone.
                    Some(Err(_)) | None => Next::Quit,
                },
                () = until(ready_at) => {
                    self.question_is_ready();
                    Next::Continue
                }
                () = self.files.changed() => {
                    self.complete();
                    self.add_files_to_palette();
                    self.is_dirty = true;
                    Next::Continue
                }
                asked = next_signal(&mut self.signals) => match asked {
                    Asked::Quit => Next::Quit,
                    Asked::Interrupt => self.interrupt_or_quit().await?,
                    Asked::Suspend => {
                        self.suspend()?;
                        Next::Continue
                    }
                    Asked::Continue => {
                        self.continued()?;
                        Next::Continue
                    }
                },
                item = self.stream.next(seen) => self.stream_item(item).await?,
                rest = self.rest.reached(), if handing_over.is_empty() => {
                    self.task_rests(rest);
                    Next::Continue
                }
                () = self.attachment.asked_to_leave(), if handing_over.is_empty() => {
                    handing_over.spawn(self.attachment.hand_over());
                    Next::Continue
                }
                Some(_) = handing_over.join_next() => {
                    // Both hold the journal.
                    (self.stream, self.rest) = (TaskStream::Nothing, Rest::Known);
                    self.attachment.leave().await;
                    self.find_owner().await?
                }
                Some(found) = self.lookups.join_next() => {
                    self.found(found);
                    Next::Continue
                }
                () = tokio::time::sleep(frame_in), if self.is_dirty => Next::Continue,
                _ = ticks.tick(), if self.is_working => {
                    self.is_dirty = true;
                    Next::Continue
                }
            };
            if next == Next::Quit {
                return Ok(());
            }
        }
    }

    fn connection(&self) -> &Connection {
        self.attachment.connection()
    }

    fn width(&self) -> usize {
        self.screen.size().columns
    }
}

/// The next key, paste or size of the terminal.
async fn next_key(keys: &mut Option<EventStream>) -> Option<io::Result<crossterm::event::Event>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// Returns at a time; never without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
