//! Notifications of the terminal, for a person who looks at something else. The terminal program writes them only while
//! the terminal says that it does not have the focus; one that never says so gets none.

use std::path::Path;

use antiphon_project::settings::TerminalNotice;

/// Most characters of a notification.
const CHARS_MAX: usize = 200;

/// How the terminal is asked to notify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationSequence {
    /// OSC 9.
    Osc9,
    /// OSC 777.
    Osc777,
    /// The bell.
    Bell,
    /// It is not asked.
    Absent,
}

impl NotificationSequence {
    /// What the setting says, or what fits the terminal that the variables of the environment describe.
    pub fn of(setting: TerminalNotice, variable: impl Fn(&str) -> Option<String>) -> Self {
        match setting {
            TerminalNotice::Osc9 => return Self::Osc9,
            TerminalNotice::Osc777 => return Self::Osc777,
            TerminalNotice::Bell => return Self::Bell,
            TerminalNotice::Off => return Self::Absent,
            TerminalNotice::Auto => {}
        }
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        // A multiplexer passes on the bell alone.
        if is_set("TMUX") || is_set("STY") {
            return Self::Bell;
        }
        let (program, term) = (variable("TERM_PROGRAM"), variable("TERM").unwrap_or_default());
        match program.as_deref() {
            Some("iTerm.app" | "WezTerm" | "ghostty") => Self::Osc9,
            Some(_) | None if term == "xterm-kitty" => Self::Osc9,
            Some(_) | None if term.starts_with("foot") || term.starts_with("rxvt") => Self::Osc777,
            Some(_) | None => Self::Bell,
        }
    }

    /// What has to be written to notify of a text.
    pub fn bytes(self, text: &str) -> String {
        let shown = |c: &char| !c.is_control() && *c != ';';
        let text: String = text.chars().filter(shown).take(CHARS_MAX).collect();
        match self {
            Self::Osc9 => format!("\x1b]9;Antiphon: {text}\x07"),
            Self::Osc777 => format!("\x1b]777;notify;Antiphon;{text}\x07"),
            Self::Bell => "\x07".to_owned(),
            Self::Absent => String::new(),
        }
    }
}

/// Notifies the person while the terminal does not have the focus.
pub(crate) struct Notifier {
    sequence: NotificationSequence,
    /// Name of the project's folder.
    project: String,
    has_focus: bool,
}

impl Notifier {
    pub(crate) fn new(sequence: NotificationSequence, root: &Path) -> Self {
        let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
        let project = antiphon_view::display::escaped(&name).into_owned();
        Self { sequence, project, has_focus: true }
    }

    pub(crate) fn set_focus(&mut self, has_focus: bool) {
        self.has_focus = has_focus;
    }

    /// What has to be written to notify of this; nothing while the person is here.
    pub(crate) fn bytes(&self, text: &str) -> Option<String> {
        let is_away = !self.has_focus && self.sequence != NotificationSequence::Absent;
        is_away.then(|| self.sequence.bytes(&format!("{}: {text}", self.project)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> NotificationSequence {
        NotificationSequence::of(TerminalNotice::Auto, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_sequence_fits_the_terminal() {
        assert_eq!(of(&[]), NotificationSequence::Bell);
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]), NotificationSequence::Osc9);
        let in_tmux = [("TERM_PROGRAM", "WezTerm"), ("TMUX", "/tmp/x")];
        assert_eq!(of(&in_tmux), NotificationSequence::Bell);
        assert_eq!(of(&[("TERM", "foot-extra")]), NotificationSequence::Osc777);
        let off = NotificationSequence::of(TerminalNotice::Off, |_| Some("foot".to_owned()));
        assert_eq!(off, NotificationSequence::Absent);
    }

    #[test]
    fn a_notification_has_no_control_characters_and_comes_only_without_the_focus() {
        let root = Path::new("/home/u/har\u{1b}bor");
        let mut notifier = Notifier::new(NotificationSequence::Osc777, root);
        assert_eq!(notifier.bytes("done"), None);
        notifier.set_focus(false);
        let written = notifier.bytes("a;b\x07\u{9b}\x1b]0;x").unwrap();
        assert_eq!(written, "\x1b]777;notify;Antiphon;har\\u{1b}bor: ab]0x\x07");
    }
}
