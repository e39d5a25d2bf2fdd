//! Names that the user gave to conversations. They are labels of the user of this machine, in the state folder of the
//! project: no model reads them, and the journal does not hold them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::SessionId;
use antiphon_private_file::{Durability, lock_within, open, open_lock_at, write_atomic};

use crate::error::ProjectError;

const FILE: &str = "session_names.json";
const LOCK: &str = "session_names.lock";

/// Conversations of a project that have a name.
const NAMES_MAX: usize = 1_000;

/// Characters of a name.
const NAME_CHARS_MAX: usize = 80;

/// Bytes of the file that are read: room for every name.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How long another process may hold the lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// The names of a project's conversations.
#[derive(Debug, Clone)]
pub struct SessionNames {
    state: PathBuf,
}

impl SessionNames {
    /// The names in a state folder.
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// Every name. A file that cannot be read has none.
    pub fn all(&self) -> BTreeMap<SessionId, String> {
        self.read().unwrap_or_default()
    }

    /// The name of a conversation.
    pub fn of(&self, session: &SessionId) -> Option<String> {
        self.all().remove(session)
    }

    /// The conversation with a name.
    pub fn session(&self, name: &str) -> Option<SessionId> {
        self.all().into_iter().find(|(_, known)| known == name).map(|(session, _)| session)
    }

    /// Names a conversation, or takes its name away. Two conversations have two names.
    pub fn set(&self, session: &SessionId, name: Option<&str>) -> Result<(), ProjectError> {
        let name = name.map(str::trim);
        if let Some(name) = name {
            check(name)?;
        }
        let failed = |error: io::Error| {
            ProjectError::Failed(format!(
                "the name cannot be kept in {}: {error}",
                self.state.display()
            ))
        };
        let lock = File::open(&self.state).and_then(|state| open_lock_at(state, LOCK));
        let lock = lock.map_err(failed)?;
        lock_within(&lock, LOCK_WAIT).map_err(|error| failed(io::Error::other(error)))?;
        let mut names = self.read().map_err(failed)?;
        match name {
            None => drop(names.remove(session)),
            Some(name) => {
                if let Some((other, _)) =
                    names.iter().find(|(id, known)| *known == name && *id != session)
                {
                    return Err(ProjectError::InvalidInput(format!(
                        "session {other} has this name: choose another one, or take it away with `antiphon sessions name {other}`"
                    )));
                }
                names.insert(session.clone(), name.to_owned());
            }
        }
        if names.len() > NAMES_MAX {
            return Err(ProjectError::InvalidInput(format!(
                "{NAMES_MAX} conversations have names: take one away with `antiphon sessions name SESSION`"
            )));
        }
        let text = serde_json::to_string_pretty(&names).map_err(io::Error::other);
        let text = text.map_err(failed)?;
        let path = self.state.join(FILE);
        write_atomic(&path, format!("{text}\n").as_bytes(), Durability::Synced).map_err(failed)
    }

    fn read(&self) -> io::Result<BTreeMap<SessionId, String>> {
        let file = match open(&self.state.join(FILE)) {
            Ok(file) => file,
            Err(error) => {
                let error = io::Error::from(error);
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                return if is_missing { Ok(BTreeMap::new()) } else { Err(error) };
            }
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }
}

/// Refuses a name that would not be shown as it is, or that names a conversation in another way.
fn check(name: &str) -> Result<(), ProjectError> {
    let invalid = |reason: &str| Err(ProjectError::InvalidInput(format!("the name {reason}")));
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return invalid("has to have 1 to 80 characters");
    }
    if antiphon_core::escaped(name) != name {
        return invalid("has control characters: leave them out");
    }
    if name == "last" || name.contains(['/', '.']) {
        return invalid(
            "must not be `last` and must not contain `/` or `.`, which name other things",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    #[test]
    fn a_conversation_has_one_name_and_a_name_one_conversation() {
        let state = tempfile::tempdir().unwrap();
        let names = SessionNames::new(state.path());
        assert_eq!(names.all(), BTreeMap::new());
        names.set(&id("a"), Some(" the parser ")).unwrap();
        names.set(&id("b"), Some("docs")).unwrap();
        assert_eq!(names.session("the parser"), Some(id("a")));
        assert_eq!(names.of(&id("b")), Some("docs".to_owned()));
        let taken = names.set(&id("b"), Some("the parser")).unwrap_err().to_string();
        assert!(taken.contains("session a has this name"), "{taken}");
        names.set(&id("a"), None).unwrap();
        names.set(&id("b"), Some("the parser")).unwrap();
        assert_eq!(names.all(), BTreeMap::from([(id("b"), "the parser".to_owned())]));
    }

    #[test]
    fn a_name_that_is_long_empty_or_controls_a_terminal_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let names = SessionNames::new(state.path());
        for name in
            ["", "  ", &"a".repeat(81), "a\x1b[2J", "a\u{202e}b", "last", "a/b", "talk.json"]
        {
            assert!(names.set(&id("a"), Some(name)).is_err(), "{name:?}");
        }
        assert_eq!(names.all(), BTreeMap::new());
    }
}
