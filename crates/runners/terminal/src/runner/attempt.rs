//! One run of a program, from its start to its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{RunnerError, RunnerTask};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::message_typing::MessageTyping;
use super::{RESULT_BYTES_MAX, Verdict, refused, verdict};
use crate::guard::process_list::end_processes_of;
use crate::process::{Ending, Launch, Process};
use crate::profile::TerminalProfile;
use crate::pty::Pty;
use crate::pty::keyboard::{Keyboard, keyboard};
use crate::pty::output_thread::OutputThread;
use crate::pty::prompt::Prompt;
use crate::pty::recording::Recording;
use crate::pty::screen::Screen;
use crate::pty::size::Size;
use crate::settings::TerminalSettings;
use crate::task::folder::TaskFolder;
use crate::task::journal::JournalView;
use crate::watch::{SharedTerminal, serve_watchers};

/// How long watchers may take to receive the end.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// Parameters of one run.
pub(super) struct Attempt<'a> {
    pub(super) settings: &'a TerminalSettings,
    pub(super) folder: &'a TaskFolder,
    pub(super) profile: &'a TerminalProfile,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// The outcome of a run. No process of it is left.
pub(super) enum Outcome {
    /// The program has ended.
    Over { ending: Ending, last_text: String },
    /// The task was stopped.
    Stopped,
}

/// A program that runs.
struct Running {
    process: Process,
    output_thread: OutputThread,
    screen: Arc<Screen>,
    prompt: Arc<Prompt>,
    keyboard: Keyboard,
    over: watch::Sender<Option<String>>,
    /// Writes queued input.
    input_writer: JoinSet<()>,
    /// Serves watchers.
    watchers: JoinSet<()>,
}

impl Attempt<'_> {
    pub(super) async fn run(
        &self,
        run: &mut RunnerTask,
        journal_view: &mut JournalView,
    ) -> Result<Outcome, RunnerError> {
        // Not `Unavailable`: a second attempt could not know whether the program had started.
        let failed = |error: io::Error| refused(format!("its terminal cannot be had: {error}"));
        let mut running = self.start().map_err(failed)?;
        let over = self.type_until_end(&mut running, run, journal_view).await;
        let Running {
            process,
            output_thread,
            screen,
            over: told,
            mut input_writer,
            mut watchers,
            ..
        } = running;
        let ending = match &over {
            Ok(Some(ending)) => Some(ending.clone()),
            Ok(None) | Err(_) => None,
        };
        process.close().await;
        if ending == Some(Ending::Lost) {
            let mark = run.task_id.clone();
            let _ = tokio::task::spawn_blocking(move || end_processes_of(mark.as_str())).await;
        }
        output_thread.finish().await;
        told.send_replace(Some(end_sentence(ending.as_ref())));
        self.folder.remove_socket();
        let _ = timeout(END_WAIT_MAX, watchers.join_next()).await;
        watchers.shutdown().await;
        input_writer.shutdown().await;
        Ok(match over? {
            Some(ending) => Outcome::Over { ending, last_text: screen.last_text(RESULT_BYTES_MAX) },
            None => Outcome::Stopped,
        })
    }

    fn start(&self) -> io::Result<Running> {
        let size = Size::default();
        let pty = Pty::open(size)?;
        let screen = Arc::new(Screen::new(size));
        let (keyboard, strokes) = keyboard();
        let copy = |pty: &OwnedFd| pty.try_clone();
        let (over, told) = watch::channel(None);
        let terminal =
            SharedTerminal::new(Arc::clone(&screen), keyboard.clone(), copy(&pty.ours)?, told);
        let listener = self.folder.listen()?;
        let (file, before) = (self.folder.file("screen.cast"), self.folder.file("screen.1.cast"));
        let recording = Recording::begin(file, before, size);
        let typed = copy(&pty.ours)?;
        let prompt = Prompt::new(self.profile, Arc::clone(&screen), copy(&pty.ours)?);
        let prompt = Arc::new(prompt);
        let output_thread =
            OutputThread::start(pty.ours, Arc::clone(&screen), recording, keyboard.clone())?;
        let process = Process::launch(Launch {
            guard: &self.settings.guard,
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            root: &self.settings.root,
            lock: self.folder.lock()?,
            terminal: pty.theirs,
        })?;
        let (mut input_writer, mut watchers) = (JoinSet::new(), JoinSet::new());
        input_writer.spawn(strokes.deliver(typed, Arc::clone(&prompt)));
        watchers.spawn(serve_watchers(listener, Arc::new(terminal)));
        Ok(Running {
            process,
            output_thread,
            screen,
            prompt,
            keyboard,
            over,
            input_writer,
            watchers,
        })
    }

    /// Types messages until the program has ended or the task is stopped.
    async fn type_until_end(
        &self,
        running: &mut Running,
        run: &mut RunnerTask,
        journal_view: &mut JournalView,
    ) -> Result<Option<Ending>, RunnerError> {
        let mut typing = MessageTyping::new(self.profile, self.folder);
        loop {
            if journal_view.has_ended() {
                return Ok(None);
            }
            typing.choose(&*run.input, journal_view).await?;
            let Running { process, prompt, keyboard, .. } = running;
            tokio::select! {
                biased;
                () = &mut run.cancel => return Ok(None),
                () = &mut run.shutdown => return Ok(None),
                ending = process.ended() => return Ok(Some(ending)),
                () = run.updates.next() => journal_view.catch_up().await?,
                step = typing.next(prompt, keyboard) => typing.act(step, journal_view).await?,
            }
        }
    }
}

/// The sentence that watchers get at the end.
fn end_sentence(ending: Option<&Ending>) -> String {
    match ending.cloned().map(verdict) {
        Some(Ok(Verdict::Done)) => "the program has ended".to_owned(),
        Some(Ok(Verdict::Failed(how))) => format!("the program {how}"),
        Some(Err(error)) => error.to_string(),
        None => "the program was stopped".to_owned(),
    }
}
