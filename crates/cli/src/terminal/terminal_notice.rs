//! How the terminal of `antiphon run` notifies of a question and of the end of the task (`notify.terminal` of the
//! settings).

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use antiphon_project::environment::Environment;
use antiphon_project::settings::{NotifyConfig, NotifyWhen, UserSettings};
use antiphon_tui::NotificationSequence;

use crate::terminal;

/// Notifies in the terminal of this process.
pub(crate) struct TerminalNotices {
    config: NotifyConfig,
    sequence: NotificationSequence,
    started: Instant,
}

impl TerminalNotices {
    /// As the user's settings say. Settings that cannot be read are refused elsewhere.
    pub(crate) fn of(environment: &Environment) -> Self {
        let config = UserSettings::load(environment).map(|settings| settings.notify);
        let config = config.unwrap_or_default();
        let sequence = NotificationSequence::of(config.in_run(), |name| environment.text(name));
        Self { config, sequence, started: Instant::now() }
    }

    /// Without a notification.
    pub(crate) fn none() -> Self {
        Self {
            config: NotifyConfig::default(),
            sequence: NotificationSequence::Absent,
            started: Instant::now(),
        }
    }

    /// An agent waits for an answer.
    pub(crate) fn question(&self) {
        self.notify(NotifyWhen::Question, "an agent needs an answer");
    }

    /// The task has ended.
    pub(crate) fn done(&self) {
        if self.started.elapsed() >= Duration::from_secs(self.config.after_s) {
            self.notify(NotifyWhen::Done, "the task has ended");
        }
    }

    fn notify(&self, when: NotifyWhen, text: &str) {
        let mut out = std::io::stderr().lock();
        let shows = match self.sequence {
            NotificationSequence::Absent => false,
            NotificationSequence::Bell => true,
            NotificationSequence::Osc9 | NotificationSequence::Osc777 => !terminal::is_dumb(),
        };
        if !shows
            || !self.config.when.contains(&when)
            || !out.is_terminal()
            || !terminal::may_draw()
        {
            return;
        }
        // A closed terminal is no failure.
        let _ = out.write_all(self.sequence.bytes(text).as_bytes()).and_then(|()| out.flush());
    }
}
