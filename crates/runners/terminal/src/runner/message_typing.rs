//! Types messages: those that may be typed, one at a time, when the program waits for input. Says why the
//! others wait.
//!
//! A message is recorded as typed before it is typed. When the program stops waiting in between, the message
//! is kept and typed at the next prompt; only a crash loses it there.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use antiphon_core::port::{InputPermit, InputSubject, RunnerError, RunnerInput};
use antiphon_core::{InteractionId, UserMessage};
use tokio::sync::mpsc::OwnedPermit;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::profile::TerminalProfile;
use crate::pty::keyboard::{Input, Keyboard, Typed, TypedMessage};
use crate::pty::prompt::{NotReady, Prompt};
use crate::pty::typing::{InputStyle, TYPED_BYTES_MAX, keys, text_for, text_of, typeable};
use crate::task::folder::TaskFolder;
use crate::task::journal::{Answers, JournalView, MessageSource, PendingMessage};

/// How often modes of the terminal are read while a message waits: their changes are not reported.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long a message waits for the same reason before the reason is recorded.
const NOTE_AFTER: Duration = Duration::from_secs(2);

/// What a person has to do about a question.
pub(super) fn question_note(question: &str) -> String {
    format!("a person has to answer: {question} See `antiphon approvals list`")
}

/// Types the messages of one run.
pub(super) struct MessageTyping<'a> {
    profile: &'a TerminalProfile,
    folder: &'a TaskFolder,
    permits: HashMap<InteractionId, InputPermit>,
    /// The answers that `permits` are based on.
    answers: Answers,
    /// Messages that may be typed, in order.
    allowed: Vec<PendingMessage>,
    /// The first open question about a message.
    question: Option<String>,
    current: CurrentMessage,
    /// Why the next message waits, and since when.
    waits: Option<(String, Instant)>,
    /// What is recorded of it.
    noted: Option<String>,
}

/// The current message.
enum CurrentMessage {
    None,
    /// Recorded as typed, but not typed: the program stopped waiting.
    Recorded(UserMessage),
    /// Given to the keyboard.
    Sent(UserMessage, oneshot::Receiver<Typed>),
}

/// What to do next.
pub(super) enum Step {
    /// Type this message.
    Type { message: Box<PendingMessage>, style: InputStyle, room: OwnedPermit<Input> },
    /// The keyboard is done with the current message.
    Typed(Typed),
    /// Record why the next message waits.
    Note(Option<String>),
}

/// Whether the next message can be typed.
enum Readiness {
    Now(Box<PendingMessage>, InputStyle),
    Wait { reason: Option<String>, check_after: Duration },
}

impl<'a> MessageTyping<'a> {
    pub(super) fn new(profile: &'a TerminalProfile, folder: &'a TaskFolder) -> Self {
        Self {
            profile,
            folder,
            permits: HashMap::new(),
            answers: Answers::default(),
            allowed: Vec::new(),
            question: None,
            current: CurrentMessage::None,
            waits: None,
            noted: None,
        }
    }

    /// Finds the messages that may be typed. Asks a person about the others.
    pub(super) async fn choose(
        &mut self,
        input: &dyn RunnerInput,
        journal_view: &mut JournalView,
    ) -> Result<(), RunnerError> {
        if self.answers != journal_view.answers() {
            self.answers = journal_view.answers();
            self.permits.retain(|_, permit| *permit == InputPermit::Allowed);
        }
        let pending = journal_view.pending();
        let waits = |id: &InteractionId| {
            pending.iter().any(|message| message.source == MessageSource::Inbox(*id))
        };
        self.permits.retain(|id, _| waits(id));
        self.allowed.clear();
        self.question = None;
        for message in pending {
            // The start of the program was decided with the messages of the task's creation.
            let MessageSource::Inbox(id) = message.source else {
                self.allowed.push(message);
                continue;
            };
            let permit = match self.permits.get(&id) {
                Some(known) => known.clone(),
                None => input.permit(InputSubject::Message(id)).await?,
            };
            match &permit {
                InputPermit::Allowed => self.allowed.push(message),
                InputPermit::Asked { question } => {
                    self.question.get_or_insert_with(|| question_note(question));
                }
                InputPermit::Denied { reason } => {
                    tracing::info!(interaction.id = %id, reason, "a message was not typed");
                    journal_view.catch_up().await?;
                }
            }
            self.permits.insert(id, permit);
        }
        Ok(())
    }

    /// Waits for the next step. Cancel safe.
    pub(super) async fn next(&mut self, prompt: &Prompt, keyboard: &Keyboard) -> Step {
        if let CurrentMessage::Sent(_, done) = &mut self.current {
            return match done.await {
                Ok(typed) => Step::Typed(typed),
                // The keyboard is gone with the program.
                Err(_) => std::future::pending().await,
            };
        }
        let mut changes = prompt.screen.changes();
        loop {
            changes.mark_unchanged();
            let (reason, check_after) = match self.readiness(prompt) {
                Readiness::Now(message, style) => match keyboard.room().await {
                    Some(room) => return Step::Type { message, style, room },
                    None => return std::future::pending().await,
                },
                Readiness::Wait { reason, check_after } => (reason, check_after),
            };
            if let Some(note) = self.note_of(reason) {
                return note;
            }
            tokio::select! {
                () = sleep(check_after) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// Whether a message can be typed now.
    fn readiness(&self, prompt: &Prompt) -> Readiness {
        let wait =
            |reason: String| Readiness::Wait { reason: Some(reason), check_after: CHECK_EVERY };
        let recorded = match &self.current {
            CurrentMessage::Recorded(message) => Some(message),
            CurrentMessage::None | CurrentMessage::Sent(..) => None,
        };
        if recorded.is_none() && self.allowed.is_empty() {
            // Without a message there is nothing to check.
            let check_after = if self.question.is_some() { NOTE_AFTER } else { Duration::MAX };
            return Readiness::Wait { reason: self.question.clone(), check_after };
        }
        let style = match prompt.check() {
            Ok(style) => style,
            Err(reason) => return wait(reason.to_string()),
        };
        let still = prompt.screen.touched() + self.profile.quiet();
        let left = still.saturating_duration_since(std::time::Instant::now());
        if !left.is_zero() {
            return Readiness::Wait {
                reason: Some(NotReady::Writing.to_string()),
                check_after: left,
            };
        }
        let fits = |message: &UserMessage| style == InputStyle::Pastes || is_one_line(message);
        let found = match recorded {
            Some(message) => Some(PendingMessage {
                source: MessageSource::Creation(antiphon_core::Seq(0)),
                message: message.clone(),
            }),
            None => self.allowed.iter().find(|pending| fits(&pending.message)).cloned(),
        };
        match found.filter(|found| fits(&found.message)) {
            Some(message) => Readiness::Now(Box::new(message), style),
            None => wait(NotReady::ManyLines.to_string()),
        }
    }

    /// The step that records a wait, or its end, when that is not recorded yet.
    fn note_of(&mut self, reason: Option<String>) -> Option<Step> {
        match reason {
            None => self.waits = None,
            Some(reason) if self.waits.as_ref().is_none_or(|(known, _)| *known != reason) => {
                self.waits = Some((reason, Instant::now()));
            }
            Some(_) => {}
        }
        let due = match &self.waits {
            None => None,
            Some((reason, since)) if since.elapsed() >= NOTE_AFTER => Some(reason.clone()),
            // Too early to tell.
            Some(_) => return None,
        };
        (due != self.noted).then_some(Step::Note(due))
    }

    pub(super) async fn act(
        &mut self,
        step: Step,
        journal_view: &mut JournalView,
    ) -> Result<(), RunnerError> {
        match step {
            Step::Note(note) => {
                self.noted.clone_from(&note);
                journal_view.note_wait(note).await?;
            }
            Step::Typed(typed) => self.typed(typed),
            Step::Type { message, style, room } => {
                let is_taken = matches!(self.current, CurrentMessage::Recorded(_));
                if !is_taken && !journal_view.take(&message).await? {
                    return Ok(());
                }
                let message = message.message;
                let text = self.text(&message, journal_view);
                let Some(keys) = keys(&text, style) else {
                    self.current = CurrentMessage::Recorded(message);
                    return Ok(());
                };
                let (done, typed) = oneshot::channel();
                let submit = self.profile.submit.clone().into_bytes();
                room.send(Input::Message(TypedMessage { keys, style, submit, done }));
                self.current = CurrentMessage::Sent(message, typed);
            }
        }
        Ok(())
    }

    fn typed(&mut self, typed: Typed) {
        let work = std::mem::replace(&mut self.current, CurrentMessage::None);
        match (typed, work) {
            (Typed::Withheld, CurrentMessage::Sent(message, _)) => {
                self.current = CurrentMessage::Recorded(message);
            }
            (Typed::NotSubmitted, _) => {
                tracing::warn!(
                    "a message was typed but not submitted: another program got the terminal"
                );
            }
            (Typed::Submitted | Typed::Withheld, _) => {}
        }
    }

    /// The text to type. A message that is too long is written to a file.
    fn text(&self, message: &UserMessage, journal_view: &JournalView) -> String {
        let text = text_of(message);
        if text.len() <= TYPED_BYTES_MAX {
            return text;
        }
        let file: PathBuf = self.folder.file(&format!("message-{}.md", journal_view.seq()));
        match std::fs::write(&file, &text) {
            Ok(()) => text_for(&file),
            Err(error) => {
                tracing::warn!(%error, "a long message cannot be put into a file");
                format!("[A message of {} bytes is too long to be typed.]", text.len())
            }
        }
    }
}

/// Whether a message is typed as one line. One that is too long is put into a file.
fn is_one_line(message: &UserMessage) -> bool {
    let text = text_of(message);
    text.len() > TYPED_BYTES_MAX || !typeable(&text).contains('\n')
}
