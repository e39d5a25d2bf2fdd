//! What `antiphon run` writes to its terminal when an agent needs an answer or the task has ended: the bell, or a sequence
//! that shows a text on the desktop (`notify.terminal` of the settings).

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use antiphon_project::environment::Environment;
use antiphon_project::settings::{NotifyConfig, NotifyWhen, TerminalNotice, UserSettings};

use crate::terminal;

/// Tells the user in the terminal of this process.
pub(crate) struct TerminalNotices {
    config: NotifyConfig,
    started: Instant,
}

impl TerminalNotices {
    /// As the user's settings say. Settings that cannot be read are refused elsewhere.
    pub(crate) fn of(environment: &Environment) -> Self {
        let config = UserSettings::load(environment).map(|settings| settings.notify);
        Self { config: config.unwrap_or_default(), started: Instant::now() }
    }

    /// Nothing is told.
    pub(crate) fn none() -> Self {
        Self { config: NotifyConfig::default(), started: Instant::now() }
    }

    /// An agent waits for an answer.
    pub(crate) fn question(&self) {
        self.tell(NotifyWhen::Question, "an agent needs your answer");
    }

    /// The task has ended.
    pub(crate) fn done(&self) {
        if self.started.elapsed() >= Duration::from_secs(self.config.after_s) {
            self.tell(NotifyWhen::Done, "the task has ended");
        }
    }

    fn tell(&self, when: NotifyWhen, text: &str) {
        let mut out = std::io::stderr().lock();
        if !self.config.when.contains(&when) || !out.is_terminal() || !terminal::may_draw() {
            return;
        }
        let takes_sequences = !terminal::is_dumb();
        let sequence = match self.config.terminal {
            TerminalNotice::Bell => "\x07".to_owned(),
            TerminalNotice::Osc9 if takes_sequences => format!("\x1b]9;Antiphon: {text}\x07"),
            TerminalNotice::Osc777 if takes_sequences => {
                format!("\x1b]777;notify;Antiphon;{text}\x07")
            }
            TerminalNotice::Off | TerminalNotice::Osc9 | TerminalNotice::Osc777 => return,
        };
        // A closed terminal is no failure.
        let _ = out.write_all(sequence.as_bytes()).and_then(|()| out.flush());
    }
}
