//! The keys of the prompt that can be given other ones in the settings, and what each does.

use std::collections::BTreeMap;
use std::fmt;

use antiphon_project::settings::KeyNames;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    NewLine,
    Queue,
    Plan,
    History,
    Transcript,
    Tasks,
    Palette,
    Editor,
    Image,
    Redraw,
    Suspend,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    RemoveWordLeft,
    RemoveWordRight,
    RemoveToLineStart,
    RemoveToLineEnd,
    InsertRemoved,
}

/// An action as it is named, with its usual keys.
pub(crate) struct ActionEntry {
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
}

const fn entry(
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> ActionEntry {
    ActionEntry { action, name, keys, help }
}

/// Every action, in the order in which they are listed.
const ACTIONS: [ActionEntry; 22] = [
    entry(Action::NewLine, "new-line", &["alt-enter", "shift-enter", "ctrl-j"], "a new line"),
    entry(Action::Queue, "queue", &["tab"], "queue the prompt, or take a completion"),
    entry(Action::Plan, "plan", &["shift-tab"], "the next task plans first, or does not"),
    entry(Action::History, "history", &["ctrl-r"], "find an earlier prompt"),
    entry(Action::Transcript, "transcript", &["ctrl-t"], "the whole transcript"),
    entry(Action::Tasks, "tasks", &["ctrl-o"], "the tasks at work"),
    entry(Action::Palette, "palette", &["ctrl-p"], "find a command, conversation, task or file"),
    entry(Action::Editor, "editor", &["ctrl-g"], "write the prompt in your editor"),
    entry(Action::Image, "image", &["ctrl-v"], "take the image of the clipboard"),
    entry(Action::Redraw, "redraw", &["ctrl-l"], "draw the rows of the prompt again"),
    entry(Action::Suspend, "suspend", &["ctrl-z"], "suspend the program"),
    entry(Action::Left, "left", &["ctrl-b"], "a character to the left"),
    entry(Action::Right, "right", &["ctrl-f"], "a character to the right"),
    entry(Action::WordLeft, "word-left", &["alt-b", "ctrl-left"], "a word to the left"),
    entry(Action::WordRight, "word-right", &["alt-f", "ctrl-right"], "a word to the right"),
    entry(Action::LineStart, "line-start", &["ctrl-a"], "the start of the line"),
    entry(Action::LineEnd, "line-end", &["ctrl-e"], "the end of the line"),
    entry(
        Action::RemoveWordLeft,
        "remove-word-left",
        &["ctrl-w", "alt-backspace"],
        "remove the word to the left",
    ),
    entry(Action::RemoveWordRight, "remove-word-right", &["alt-d"], "remove the word to the right"),
    entry(
        Action::RemoveToLineStart,
        "remove-to-line-start",
        &["ctrl-u"],
        "remove up to the start of the line",
    ),
    entry(
        Action::RemoveToLineEnd,
        "remove-to-line-end",
        &["ctrl-k"],
        "remove up to the end of the line",
    ),
    entry(Action::InsertRemoved, "insert-removed", &["ctrl-y"], "insert what was removed last"),
];

/// Keys that always do the same.
const FIXED: [&str; 9] =
    ["enter", "esc", "backspace", "delete", "up", "down", "left", "right", "ctrl-c"];

/// Keys that a terminal sends as another one.
const SENT_AS: [(&str, &str); 3] = [("ctrl-i", "tab"), ("ctrl-m", "enter"), ("ctrl-[", "esc")];

/// A key with the keys that are held with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Which key does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    keys: Vec<(Key, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let known = |entry: &ActionEntry| {
            let keys = entry.keys.iter().filter_map(|name| Key::parse(name).ok());
            keys.map(|key| (key, entry.action)).collect::<Vec<_>>()
        };
        Self { keys: ACTIONS.iter().flat_map(known).collect() }
    }
}

impl Keymap {
    /// The usual keys, with those of the settings in place of the usual ones of the same action.
    pub fn new(settings: &BTreeMap<String, KeyNames>) -> Result<Self, String> {
        let mut keymap = Self::default();
        for (name, keys) in settings {
            let entry = ACTIONS.iter().find(|entry| entry.name == name).ok_or_else(|| {
                let names: Vec<&str> = ACTIONS.iter().map(|entry| entry.name).collect();
                format!("there is no action `{name}`: use one of {}", names.join(", "))
            })?;
            keymap.keys.retain(|(_, action)| *action != entry.action);
            for key in keys.names() {
                keymap.keys.push((Key::parse(key)?, entry.action));
            }
        }
        match keymap.shared_key() {
            None => Ok(keymap),
            Some((key, one, other)) => Err(format!(
                "the key `{key}` is given to `{}` and to `{}`: give one of them another key",
                name_of(one),
                name_of(other)
            )),
        }
    }

    fn shared_key(&self) -> Option<(Key, Action, Action)> {
        self.keys.iter().enumerate().find_map(|(index, (key, one))| {
            let later = self.keys.iter().skip(index + 1);
            later
                .filter(|(other, action)| other == key && action != one)
                .map(|(_, other)| (*key, *one, *other))
                .next()
        })
    }

    /// What a key does; `None` when it is text, or always does the same.
    pub(crate) fn action(&self, event: KeyEvent) -> Option<Action> {
        let pressed = Key::of(event);
        self.keys.iter().find(|(key, _)| *key == pressed).map(|(_, action)| *action)
    }

    /// Keys and what each does, in the order in which they are listed.
    pub(crate) fn rows(&self) -> Vec<(String, &'static str, &'static str)> {
        let row = |entry: &ActionEntry| {
            let keys = self.keys.iter().filter(|(_, action)| *action == entry.action);
            let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
            let keys = if keys.is_empty() { "no key".to_owned() } else { keys.join(", ") };
            (keys, entry.name, entry.help)
        };
        ACTIONS.iter().map(row).collect()
    }
}

fn name_of(action: Action) -> &'static str {
    ACTIONS.iter().find(|entry| entry.action == action).map_or("", |entry| entry.name)
}

impl Key {
    fn of(event: KeyEvent) -> Self {
        let held = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let mut modifiers = event.modifiers & held;
        if event.code == KeyCode::BackTab {
            return Self { code: KeyCode::Tab, modifiers: modifiers | KeyModifiers::SHIFT };
        }
        if let KeyCode::Char(c) = event.code {
            // Terminals differ in whether they say that Shift is held with a letter.
            modifiers -= KeyModifiers::SHIFT;
            return Self { code: KeyCode::Char(c.to_ascii_lowercase()), modifiers };
        }
        Self { code: event.code, modifiers }
    }

    /// A key by its name, such as `ctrl-x`, `alt-enter` or `f5`.
    fn parse(name: &str) -> Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        if FIXED.contains(&lower.as_str()) || lower == "ctrl-d" {
            return Err(format!("the key `{name}` always does the same: choose another one"));
        }
        if let Some((_, sent)) = SENT_AS.iter().find(|(key, _)| *key == lower) {
            return Err(format!("a terminal sends `{name}` as `{sent}`: choose another one"));
        }
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = lower.as_str();
        while let Some((held, after)) = rest.split_once('-').filter(|(_, after)| !after.is_empty())
        {
            modifiers |= match held {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                _ => return Err(unknown(name)),
            };
            rest = after;
        }
        let mut chars = rest.chars();
        let code = match (rest, chars.next(), chars.next()) {
            (_, Some(c), None)
                if modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
            {
                KeyCode::Char(c)
            }
            (_, Some(_), None) => {
                return Err(format!(
                    "the key `{name}` is text of the prompt: hold Ctrl or Alt with it, as in `ctrl-{name}`"
                ));
            }
            ("enter", ..) => KeyCode::Enter,
            ("tab", ..) => KeyCode::Tab,
            ("backspace", ..) => KeyCode::Backspace,
            ("delete", ..) => KeyCode::Delete,
            ("left", ..) => KeyCode::Left,
            ("right", ..) => KeyCode::Right,
            ("up", ..) => KeyCode::Up,
            ("down", ..) => KeyCode::Down,
            ("home", ..) => KeyCode::Home,
            ("end", ..) => KeyCode::End,
            ("pageup", ..) => KeyCode::PageUp,
            ("pagedown", ..) => KeyCode::PageDown,
            ("space", ..) if !modifiers.is_empty() => KeyCode::Char(' '),
            (function, ..) => {
                let number = function.strip_prefix('f').and_then(|number| number.parse().ok());
                let number = number.filter(|number| (1..=12).contains(number));
                KeyCode::F(number.ok_or_else(|| unknown(name))?)
            }
        };
        Ok(Self { code, modifiers })
    }
}

fn unknown(name: &str) -> String {
    format!("there is no key `{name}`: name one as in `ctrl-x`, `alt-enter`, `shift-tab` or `f5`")
}

impl fmt::Display for Key {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other key has a name in the settings")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in [
            (KeyModifiers::CONTROL, "ctrl-"),
            (KeyModifiers::ALT, "alt-"),
            (KeyModifiers::SHIFT, "shift-"),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("space"),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            KeyCode::PageUp => f.write_str("pageup"),
            KeyCode::PageDown => f.write_str("pagedown"),
            code => f.write_str(&format!("{code:?}").to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keymap(keys: &[(&str, &str)]) -> Result<Keymap, String> {
        let keys = keys
            .iter()
            .map(|(action, key)| ((*action).to_owned(), KeyNames::One((*key).to_owned())));
        Keymap::new(&keys.collect())
    }

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn usual_keys_have_no_conflict_and_each_can_be_pressed() {
        let usual = keymap(&[]).unwrap();
        assert_eq!(usual.keys.len(), ACTIONS.iter().map(|entry| entry.keys.len()).sum::<usize>());
        for (key, action) in &usual.keys {
            assert_eq!(usual.action(press(key.code, key.modifiers)), Some(*action), "{key}");
            assert_eq!(Key::parse(&key.to_string()).as_ref(), Ok(key));
        }
        let back_tab = press(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(usual.action(back_tab), Some(Action::Plan));
        assert_eq!(usual.action(press(KeyCode::Char('t'), KeyModifiers::NONE)), None);
    }

    #[test]
    fn a_key_of_the_settings_replaces_the_usual_one() {
        let keymap = keymap(&[("transcript", "F5")]).unwrap();
        assert_eq!(
            keymap.action(press(KeyCode::F(5), KeyModifiers::NONE)),
            Some(Action::Transcript)
        );
        assert_eq!(keymap.action(press(KeyCode::Char('t'), KeyModifiers::CONTROL)), None);
    }

    #[test]
    fn keys_and_actions_that_cannot_be_are_refused_with_a_reason() {
        for (action, key, reason) in [
            ("transcripts", "f5", "there is no action `transcripts`"),
            ("transcript", "x", "is text of the prompt"),
            ("transcript", "hyper-x", "there is no key `hyper-x`"),
            ("transcript", "f13", "there is no key `f13`"),
            ("transcript", "ctrl-c", "always does the same"),
            ("transcript", "ctrl-m", "a terminal sends `ctrl-m` as `enter`"),
            ("transcript", "ctrl-g", "is given to `editor` and to `transcript`"),
        ] {
            let refused = keymap(&[(action, key)]).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
