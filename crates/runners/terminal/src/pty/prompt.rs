//! Whether a program waits for input at its prompt. Decided from the screen, from the terminal's modes and
//! from which program has the terminal. When in doubt, it does not.
//!
//! | the program                                              | a message                            |
//! |----------------------------------------------------------|--------------------------------------|
//! | has a profile without `ready`                            | waits: nothing is typed by itself    |
//! | has started another program that has the terminal        | waits                                |
//! | reads a line without showing it, such as a password      | waits                                |
//! | asks a question on the line of the cursor (`[y/N]`, …)   | waits                                |
//! | shows what `busy` describes                              | waits                                |
//! | shows what `ready` describes, and nothing is typed there | is typed                             |

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetsid};

use crate::profile::TerminalProfile;
use crate::pty::screen::Screen;
use crate::pty::typing::InputStyle;

/// Questions that a program may ask on its last line. A message never answers one, whatever `ready` says.
static QUESTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?ix)
        [\[(] \s* (y|yes) \s* [/|] \s* (n|no) \b |
        \b (password|passphrase|passcode|pin|otp|verification\ code) \b .{0,60} : \s* $ |
        \b (press|hit) \s+ (any\ key|enter|return) \b |
        \? \s* $";
    Regex::new(pattern).ok()
});

/// Decides whether the program of a terminal waits for input at its prompt.
pub(crate) struct Prompt {
    pub(crate) screen: Arc<Screen>,
    pty: OwnedFd,
    patterns: Patterns,
}

/// How a program looks when it waits for input.
struct Patterns {
    ready: Option<Regex>,
    busy: Option<Regex>,
    lines: u16,
}

/// Why a message is not typed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// The profile has no `ready`.
    NoPattern,
    /// Another program has the terminal.
    OtherProgram,
    /// The program reads a line without showing it.
    HiddenInput,
    /// The program asks a question.
    Question,
    /// The program is busy, or shows a dialog.
    Busy,
    /// The prompt is not on the screen, or something is typed there.
    NoPrompt,
    /// The program writes.
    Writing,
    /// Every message has several lines, and the program has not enabled bracketed paste.
    ManyLines,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPattern => {
                "its profile has no `ready` pattern, so nothing is typed by itself: attach and type it, or \
                 add `ready` to the profile"
            }
            Self::OtherProgram => "another program has its terminal",
            Self::HiddenInput => "the program asks for hidden input: attach and answer it",
            Self::Question => "the program asks a question: attach and answer it",
            Self::Busy => "the program is busy or shows a dialog",
            Self::NoPrompt => "the program does not show an empty prompt",
            Self::Writing => "the program writes",
            Self::ManyLines => {
                "the message has several lines, and the program has not enabled bracketed paste: attach and \
                 type it"
            }
        })
    }
}

impl Prompt {
    /// The patterns of a profile are checked: one that is invalid counts as absent, so nothing is typed.
    pub(crate) fn new(profile: &TerminalProfile, screen: Arc<Screen>, pty: OwnedFd) -> Self {
        Self { screen, pty, patterns: Patterns::of(profile) }
    }

    /// How the program takes a message now, or why it does not.
    pub(crate) fn check(&self) -> Result<InputStyle, NotReady> {
        if self.patterns.ready.is_none() {
            return Err(NotReady::NoPattern);
        }
        if !self.has_terminal() {
            return Err(NotReady::OtherProgram);
        }
        if self.hides_input() {
            return Err(NotReady::HiddenInput);
        }
        self.patterns.judge(&self.screen)
    }

    /// Whether the return key may still be pressed after the text of a message was typed.
    pub(crate) fn may_submit(&self, style: InputStyle) -> bool {
        let takes_paste = self.screen.takes_paste();
        let same = match style {
            InputStyle::Pastes => takes_paste,
            InputStyle::Line => true,
        };
        same && self.has_terminal() && !self.hides_input()
    }

    /// Whether the program itself has the terminal, and none that it started: it leads the session.
    fn has_terminal(&self) -> bool {
        match (tcgetpgrp(&self.pty), tcgetsid(&self.pty)) {
            (Ok(foreground), Ok(session)) => foreground == session,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Whether the terminal collects a line without echo, as for a password.
    fn hides_input(&self) -> bool {
        tcgetattr(&self.pty).map_or(true, |modes| {
            modes.local_modes.contains(LocalModes::ICANON)
                && !modes.local_modes.contains(LocalModes::ECHO)
        })
    }
}

impl Patterns {
    fn of(profile: &TerminalProfile) -> Self {
        let pattern = |text: &Option<String>| text.as_deref().and_then(|it| Regex::new(it).ok());
        Self {
            ready: pattern(&profile.ready),
            busy: pattern(&profile.busy),
            lines: profile.ready_lines,
        }
    }

    /// How the program takes a message, by what it shows.
    fn judge(&self, screen: &Screen) -> Result<InputStyle, NotReady> {
        let Some(ready) = &self.ready else { return Err(NotReady::NoPattern) };
        let seen = screen.near_cursor(self.lines);
        if QUESTION.as_ref().is_none_or(|question| question.is_match(&seen.line)) {
            return Err(NotReady::Question);
        }
        if self.busy.as_ref().is_some_and(|busy| busy.is_match(&seen.region)) {
            return Err(NotReady::Busy);
        }
        let shown = if self.lines <= 1 { &seen.before_cursor } else { &seen.region };
        if !ready.is_match(shown) || (self.lines <= 1 && seen.is_typed_after_cursor) {
            return Err(NotReady::NoPrompt);
        }
        Ok(if seen.takes_paste { InputStyle::Pastes } else { InputStyle::Line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BASH, CLAUDE_CODE, CODEX};
    use crate::pty::size::Size;

    /// What is decided about a screen of 24 lines.
    fn judged(profile: &str, output: &str) -> Result<InputStyle, NotReady> {
        let screen = Screen::new(Size::default());
        screen.feed(output.replace('\n', "\r\n").as_bytes());
        Patterns::of(&TerminalProfile::built_in()[profile]).judge(&screen)
    }

    #[test]
    fn a_shell_waits_at_an_empty_prompt_alone() {
        assert_eq!(judged(BASH, "me@host:~/src$ "), Ok(InputStyle::Line));
        assert_eq!(
            judged(BASH, "\x1b[?2004h\x1b[01;32mroot@host\x1b[00m:/# "),
            Ok(InputStyle::Pastes)
        );
        for (output, expected) in [
            ("", NotReady::NoPrompt),
            ("me@host:~/src$ rm -rf", NotReady::NoPrompt),
            ("me@host:~/src$ rm -rf\x1b[6D", NotReady::NoPrompt),
            ("me@host:~/src$ sleep 9\n", NotReady::NoPrompt),
            ("> ", NotReady::NoPrompt),
            ("Do you want to continue? [Y/n] ", NotReady::Question),
            (
                "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
                NotReady::Question,
            ),
            ("[sudo] password for me: ", NotReady::Question),
            ("Overwrite file$ (y/n) $ ", NotReady::Question),
        ] {
            assert_eq!(judged(BASH, output), Err(expected), "{output:?}");
        }
    }

    #[test]
    fn claude_waits_at_its_empty_input_and_not_in_a_dialog() {
        let boxed = "\x1b[?2004h done.\n╭────────────╮\n│ >          │\n╰────────────╯\n  ? for shortcuts\n";
        assert_eq!(judged(CLAUDE_CODE, boxed), Ok(InputStyle::Pastes));
        let lines =
            "\x1b[?2004h done.\n─────────\n❯ Try \"fix the tests\"\n─────────\n  ? for shortcuts";
        assert_eq!(judged(CLAUDE_CODE, lines), Ok(InputStyle::Pastes));
        for output in [
            " Do you trust the files in this folder?\n\n ❯ 1. Yes, proceed\n   2. No, exit\n\n Enter to confirm\n",
            "│ Do you want to make this edit?  │\n│ ❯ 1. Yes   │\n│   2. No    │\n╰────╯\n",
            "* Thinking… (esc to interrupt)\n╭───╮\n│ > │\n╰───╯\n",
        ] {
            assert_eq!(judged(CLAUDE_CODE, output), Err(NotReady::Busy), "{output}");
        }
        let typed = "╭───────╮\n│ > half │\n╰───────╯\n";
        assert_eq!(judged(CLAUDE_CODE, typed), Err(NotReady::NoPrompt));
    }

    #[test]
    fn codex_waits_with_the_cursor_in_its_empty_input_and_not_in_a_dialog() {
        let suggestion = "\x1b[?2004h\n› \x1b[2mAsk Codex to do anything\x1b[0m\x1b[24D";
        assert_eq!(judged(CODEX, suggestion), Ok(InputStyle::Pastes));
        assert_eq!(judged(CODEX, "\n› fix it\x1b[6D"), Err(NotReady::NoPrompt));
        assert_eq!(judged(CODEX, "Allow command?\n› 1. Yes\x1b[6D"), Err(NotReady::Busy));
    }

    #[test]
    fn a_pattern_that_would_match_every_screen_is_refused() {
        for pattern in ["", ".*", "^", "x?", "(", "$"] {
            let profile =
                TerminalProfile { ready: Some(pattern.to_owned()), ..TerminalProfile::of("bash") };
            assert!(profile.check().is_err(), "{pattern}");
        }
    }
}
