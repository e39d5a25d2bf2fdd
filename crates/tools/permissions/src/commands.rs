//! The commands of a script as rules see them: wrappers looked through, scripts within scripts
//! read, doubts noted.

mod builtin;
mod environment;
mod find;
mod git;
mod hidden;
mod options;
mod safe;
mod shells;
mod wrapper;

pub(crate) use environment::changes_programs;
pub(crate) use safe::{is_known, is_safe};

use crate::place::join;
use crate::shell::{Dialect, Redirect, Script, Simple, Word};

/// Longest script that is read, in bytes. A longer one is asked about.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// Most wrappers around one command, scripts within scripts counted as one each. More are not
/// looked through.
const WRAPPERS_MAX: usize = 16;

/// Most bytes of scripts within scripts that are read, beside the script itself.
const INNER_BYTES_MAX: usize = 2 * SCRIPT_BYTES_MAX;

/// Most folders that a script may be in when it opens a file by a relative path.
const PLACES_MAX: usize = 16;

/// What is in a script.
#[derive(Debug)]
pub(crate) enum Item {
    /// A command that would run.
    Command(Command),
    /// A file that would be opened.
    File(File),
    /// A function that is defined.
    Function(String),
    /// Something about the script as a whole.
    Doubt(Doubt),
}

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The program and its arguments.
    pub(crate) words: Vec<Word>,
    pub(crate) role: Role,
    pub(crate) doubts: Vec<Doubt>,
}

/// What a command is to the one who allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It only runs what is inside, which is an item of its own.
    Wrapper,
    /// It does something itself.
    Program,
}

/// A file that the shell or a program opens by name.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) writes: bool,
    pub(crate) path: Word,
    /// Where a relative path may begin, the likeliest last. `None`: somewhere else.
    pub(crate) places: Vec<Option<String>>,
}

/// A reason not to take a command for what it seems to be.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    pub(crate) reason: String,
    pub(crate) kind: DoubtKind,
}

/// What lifts a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoubtKind {
    /// A rule that names the program.
    Risky,
    /// Only a rule for the very text, or for the whole tool.
    Odd,
    /// As [`Odd`](Self::Odd), and any command may be behind it.
    Opaque,
}

impl Doubt {
    fn risky(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: DoubtKind::Risky }
    }

    fn odd(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: DoubtKind::Odd }
    }

    fn opaque(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: DoubtKind::Opaque }
    }
}

impl Command {
    /// As it is written, shortened.
    pub(crate) fn shown(&self) -> String {
        const SHOWN_CHARS_MAX: usize = 120;
        let mut text = String::new();
        for word in &self.words {
            if text.len() > SHOWN_CHARS_MAX * 4 {
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word.raw());
        }
        let text: String = text.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
        match text.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// Where a script begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    /// In this folder of the workspace; in the workspace itself if it is empty.
    In(&'a str),
    /// Somewhere else.
    Outside,
}

/// Everything in `script`.
pub(crate) fn look(script: &str, from: Start<'_>) -> Vec<Item> {
    if script.len() > SCRIPT_BYTES_MAX {
        let reason = format!("it is longer than {} KiB", SCRIPT_BYTES_MAX / 1024);
        return vec![Item::Doubt(Doubt::opaque(reason))];
    }
    let place = match from {
        Start::In(folder) => Some(folder.to_owned()),
        Start::Outside => None,
    };
    let mut looking = Looking {
        items: Vec::new(),
        places: vec![place],
        sets_names: false,
        inner_bytes: 0,
        dialect: Dialect::Bash,
    };
    if let Some(reason) = hidden::in_text(script) {
        looking.items.push(Item::Doubt(Doubt::odd(reason)));
    }
    if matches!(from, Start::Outside) {
        looking.items.push(Item::Doubt(Doubt::odd("it begins outside of the workspace")));
    }
    looking.script(script, Dialect::Bash, 0);
    looking.items
}

/// The last component of a program's path, as far as it is known.
pub(crate) fn program_name(program: &Word) -> Option<&str> {
    match program.literal() {
        Some(path) => Some(path.rsplit('/').next().unwrap_or(path)),
        None => program.tail().and_then(|tail| tail.rsplit_once('/')).map(|(_, name)| name),
    }
}

/// What a program that is known turns out to do.
#[derive(Debug, Default)]
struct Look {
    wraps: bool,
    doubts: Vec<Doubt>,
    inside: Vec<Inside>,
    writes: Vec<Word>,
    /// What is inside runs in another folder.
    elsewhere: bool,
}

#[derive(Debug)]
enum Inside {
    Command(Vec<Word>),
    /// A script for a shell of its own, or, without a dialect, for the shell that is running.
    Script(String, Option<Dialect>),
}

impl Look {
    /// It only runs `words`.
    fn wrapper(words: &[Word]) -> Self {
        Self { wraps: true, inside: vec![Inside::Command(words.to_vec())], ..Self::default() }
    }

    fn doubt(doubt: Doubt) -> Self {
        Self { doubts: vec![doubt], ..Self::default() }
    }
}

struct Looking {
    items: Vec<Item>,
    places: Vec<Option<String>>,
    /// A built-in that takes the names of variables is called.
    sets_names: bool,
    /// Whose script is being looked at.
    dialect: Dialect,
    /// So much of scripts within scripts was read.
    inner_bytes: usize,
}

impl Looking {
    fn script(&mut self, text: &str, dialect: Dialect, hops: usize) {
        let script = Script::read(text, dialect);
        let outer = std::mem::replace(&mut self.dialect, dialect);
        for simple in script.commands {
            self.simple(simple, hops);
        }
        self.items.extend(script.functions.into_iter().map(Item::Function));
        self.items.extend(script.odd.into_iter().map(|reason| Item::Doubt(Doubt::odd(reason))));
        if script.subscript && (script.evaluates || self.sets_names) {
            let reason = "a quoted text in it has a substitution in a subscript, which bash runs \
                          where it expects a number";
            self.items.push(Item::Doubt(Doubt::opaque(reason)));
        }
        if let Some(reason) = script.unclear {
            let reason = format!("it is not understood: {reason}");
            self.items.push(Item::Doubt(Doubt::opaque(reason)));
        }
        self.dialect = outer;
    }

    fn simple(&mut self, simple: Simple, hops: usize) {
        for Redirect { writes, path } in simple.files {
            self.file(writes, path);
        }
        let doubts: Vec<Doubt> = simple
            .assigns
            .iter()
            .filter(|name| changes_programs(name))
            .map(|name| Doubt::odd(format!("it sets `{name}`, which changes what runs")))
            .collect();
        if simple.words.is_empty() {
            self.items.extend(doubts.into_iter().map(Item::Doubt));
        } else {
            self.command(simple.words, doubts, hops);
        }
    }

    fn command(&mut self, words: Vec<Word>, mut doubts: Vec<Doubt>, hops: usize) {
        let Some(program) = words.first() else { return };
        let look = match program.literal() {
            _ if hops >= WRAPPERS_MAX => {
                Look::doubt(Doubt::opaque(format!("there are more than {WRAPPERS_MAX} wrappers")))
            }
            Some(path) => {
                let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                self.moves(&name, &words);
                self.sets_names |= builtin::sets_names(&name);
                look_at(&name, &words)
            }
            None => Look::doubt(Doubt::opaque("its program is not written out")),
        };
        doubts.extend(hidden::in_words(&words).map(Doubt::odd));
        doubts.extend(look.doubts);
        let role = if look.wraps { Role::Wrapper } else { Role::Program };
        self.items.push(Item::Command(Command { words, role, doubts }));
        for path in look.writes {
            self.file(true, path);
        }
        if look.elsewhere {
            self.places.push(None);
        }
        for inside in look.inside {
            match inside {
                Inside::Command(words) => self.command(words, Vec::new(), hops + 1),
                Inside::Script(text, dialect) => {
                    self.inner_bytes += text.len();
                    if self.inner_bytes > INNER_BYTES_MAX {
                        let reason = "there are too many scripts within scripts";
                        self.items.push(Item::Doubt(Doubt::opaque(reason)));
                        return;
                    }
                    self.script(&text, dialect.unwrap_or(self.dialect), hops + 1);
                }
            }
        }
    }

    fn file(&mut self, writes: bool, path: Word) {
        self.items.push(Item::File(File { writes, path, places: self.places.clone() }));
    }

    /// Notes where the script may be after `cd`. Whether that runs is not known, so wherever it
    /// was before remains possible.
    fn moves(&mut self, name: &str, words: &[Word]) {
        if !matches!(name, "cd" | "pushd" | "popd") {
            return;
        }
        let to = match words {
            [_, to] if name != "popd" => to.literal().filter(|to| !to.starts_with(['-', '+'])),
            _ => None,
        };
        let moved: Vec<_> = match to {
            Some(to) => self.places.iter().flatten().map(|place| Some(join(place, to))).collect(),
            None => vec![None],
        };
        for place in moved {
            self.places.retain(|known| *known != place);
            self.places.push(place);
        }
        if self.places.len() > PLACES_MAX {
            self.places = vec![None];
        }
    }
}

fn look_at(name: &str, words: &[Word]) -> Look {
    let known = wrapper::look(name, words)
        .or_else(|| shells::look(name, words))
        .or_else(|| builtin::look(name, words));
    match known {
        Some(look) => look,
        None => match name {
            "find" => find::look(words),
            "git" => git::look(words),
            _ => Look::default(),
        },
    }
}
