//! One time that a program runs, from its beginning to its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::UserMessage;
use antiphon_core::port::{Run, RunnerError};
use tokio::sync::mpsc::OwnedPermit;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::{LAST_WORDS_BYTES_MAX, Verdict, refused, verdict};
use crate::door::{Glass, keep_open};
use crate::guard::census::end_marked;
use crate::keyboard::{Keyboard, Stroke, keyboard};
use crate::ledger::{Ledger, Urgency};
use crate::place::Place;
use crate::process::{Ending, Launch, Process};
use crate::profile::TerminalProfile;
use crate::pty::Pty;
use crate::pump::Pump;
use crate::recording::Recording;
use crate::screen::Screen;
use crate::settings::TerminalSettings;
use crate::size::Size;
use crate::typing::{TYPED_BYTES_MAX, Taking, keys, text_for, text_of};

/// How long a program that says nothing is taken not to listen yet.
const FIRST_WORD_MAX: Duration = Duration::from_secs(5);

/// How long those who watch may take to see the end.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// What a program is run with.
pub(super) struct Attempt<'a> {
    pub(super) settings: &'a TerminalSettings,
    pub(super) place: &'a Place,
    pub(super) profile: &'a TerminalProfile,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// What came of it. Nothing of it runs any more.
pub(super) enum Outcome {
    /// The program has ended.
    Over { ending: Ending, last_words: String },
    /// It was not to go on.
    Stopped,
}

/// A program that runs.
struct Running {
    process: Process,
    pump: Pump,
    screen: Arc<Screen>,
    keyboard: Keyboard,
    over: watch::Sender<Option<String>>,
    /// Who types.
    typist: JoinSet<()>,
    /// Who lets watchers in.
    door: JoinSet<()>,
    begun: Instant,
}

impl Attempt<'_> {
    pub(super) async fn run(
        &self,
        run: &mut Run,
        ledger: &mut Ledger,
    ) -> Result<Outcome, RunnerError> {
        // Asked again, nobody could tell whether it had begun.
        let failed = |error: io::Error| refused(format!("its terminal cannot be had: {error}"));
        let mut running = self.start().map_err(failed)?;
        let over = self.attend(&mut running, run, ledger).await;
        let Running { process, pump, screen, over: told, mut typist, mut door, .. } = running;
        let ending = match &over {
            Ok(Some(ending)) => Some(ending.clone()),
            Ok(None) | Err(_) => None,
        };
        process.close().await;
        if ending == Some(Ending::Lost) {
            let mark = run.task_id.clone();
            let _ = tokio::task::spawn_blocking(move || end_marked(mark.as_str())).await;
        }
        pump.finish().await;
        told.send_replace(Some(farewell(ending.as_ref())));
        self.place.take_socket_away();
        let _ = timeout(FAREWELL_MAX, door.join_next()).await;
        door.shutdown().await;
        typist.shutdown().await;
        Ok(match over? {
            Some(ending) => {
                Outcome::Over { ending, last_words: screen.last_words(LAST_WORDS_BYTES_MAX) }
            }
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
        let glass = Glass::new(Arc::clone(&screen), keyboard.clone(), copy(&pty.ours)?, told);
        let listener = self.place.listen()?;
        let (file, before) = (self.place.file("screen.cast"), self.place.file("screen.1.cast"));
        let recording = Recording::begin(file, before, size);
        let typed = copy(&pty.ours)?;
        let pump = Pump::start(pty.ours, Arc::clone(&screen), recording, keyboard.clone())?;
        let process = Process::launch(Launch {
            guard: &self.settings.guard,
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            root: &self.settings.root,
            lock: self.place.lock()?,
            terminal: pty.theirs,
        })?;
        let (mut typist, mut door) = (JoinSet::new(), JoinSet::new());
        typist.spawn(strokes.deliver(typed, Arc::clone(&screen)));
        door.spawn(keep_open(listener, Arc::new(glass)));
        let begun = Instant::now();
        Ok(Running { process, pump, screen, keyboard, over, typist, door, begun })
    }

    /// Until the program has ended, or is not to go on. Types what arrives.
    async fn attend(
        &self,
        running: &mut Running,
        run: &mut Run,
        ledger: &mut Ledger,
    ) -> Result<Option<Ending>, RunnerError> {
        loop {
            if ledger.has_ended() {
                return Ok(None);
            }
            let Running { process, screen, keyboard, begun, .. } = running;
            let waiting = ledger.waiting();
            tokio::select! {
                biased;
                () = &mut run.cancel => return Ok(None),
                () = &mut run.shutdown => return Ok(None),
                ending = process.ended() => return Ok(Some(ending)),
                () = run.updates.next() => ledger.catch_up().await?,
                room = self.moment(screen, keyboard, *begun, waiting) => {
                    let Some(message) = ledger.take().await? else { continue };
                    screen.touch();
                    room.send(self.stroke(&message, ledger, screen));
                }
            }
        }
    }

    /// When the next message can be typed. Cancel safe.
    async fn moment(
        &self,
        screen: &Screen,
        keyboard: &Keyboard,
        begun: Instant,
        waiting: Option<Urgency>,
    ) -> OwnedPermit<Stroke> {
        let Some(urgency) = waiting else { return std::future::pending().await };
        let mut changes = screen.changes();
        loop {
            changes.mark_unchanged();
            let listens = if screen.has_spoken() { begun } else { begun + FIRST_WORD_MAX };
            let still = match urgency {
                Urgency::Steer => begun,
                Urgency::Queue => Instant::from_std(screen.touched()) + self.profile.quiet(),
            };
            let moment = listens.max(still);
            if moment <= Instant::now() {
                break;
            }
            tokio::select! {
                () = sleep_until(moment) => {}
                _ = changes.changed() => {}
            }
        }
        match keyboard.room().await {
            Some(room) => room,
            None => std::future::pending().await,
        }
    }

    /// What is typed for a message. One that is too long is put into a file.
    fn stroke(&self, message: &UserMessage, ledger: &Ledger, screen: &Screen) -> Stroke {
        let mut text = text_of(message);
        if text.len() > TYPED_BYTES_MAX {
            let file = self.place.file(&format!("message-{}.md", ledger.seq()));
            text = match std::fs::write(&file, &text) {
                Ok(()) => text_for(&file),
                Err(error) => {
                    tracing::warn!(%error, "a long message cannot be put into a file");
                    format!("[A message of {} bytes is too long to be typed.]", text.len())
                }
            };
        }
        let taking = if screen.takes_paste() { Taking::Pastes } else { Taking::Lines };
        let submit = self.profile.submit.clone().into_bytes();
        Stroke::Message { keys: keys(&text, taking), submit }
    }
}

/// What those who watch are told in the end.
fn farewell(ending: Option<&Ending>) -> String {
    match ending.cloned().map(verdict) {
        Some(Ok(Verdict::Done)) => "the program has ended".to_owned(),
        Some(Ok(Verdict::Failed(how))) => format!("the program {how}"),
        Some(Err(error)) => error.to_string(),
        None => "the program was stopped".to_owned(),
    }
}
