//! Finds the commands of a script that rules apply to. Unwraps wrappers, parses nested scripts and
//! records warnings.

mod builtin;
mod environment;
mod find;
mod git;
mod hidden;
mod options;
mod overwrites;
mod program_options;
mod safe;
mod shells;
mod wrapper;

pub(crate) use environment::changes_programs;
pub(crate) use git::{Repository, is_text, repository};
pub(crate) use safe::{is_known, is_safe};

use crate::normalized_path::join;
use crate::shell::{Dialect, Redirect, Script, SimpleCommand, Word};

/// Longest script the gate parses, in bytes. The gate asks about a longer one.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// Most wrappers around one command; a nested script counts as one. Deeper wrappers are not
/// unwrapped.
const WRAPPERS_MAX: usize = 16;

/// Most bytes of nested scripts that are parsed, in addition to the script itself.
const INNER_BYTES_MAX: usize = 2 * SCRIPT_BYTES_MAX;

/// Most candidate working folders of a script when it opens a file by a relative path.
const FOLDERS_MAX: usize = 16;

/// One part of a script that the gate judges.
#[derive(Debug)]
pub(crate) enum Item {
    /// A command the script runs.
    Command(Command),
    /// A file the script opens.
    File(File),
    /// Name of a function the script defines.
    Function(String),
    /// A warning about the script as a whole.
    Warning(Warning),
}

/// One command of a script.
#[derive(Debug)]
pub(crate) struct Command {
    /// The program and its arguments.
    pub(crate) words: Vec<Word>,
    pub(crate) role: Role,
    pub(crate) warnings: Vec<Warning>,
    /// Folders it may run in, the likeliest last. `None`: an unknown folder.
    pub(crate) folders: Vec<Option<String>>,
}

/// Whether a rule that allows the command has to match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command only runs a nested command, which is a separate item.
    Wrapper,
    /// The command acts itself.
    Program,
}

/// A file that the shell or a program opens by name.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) writes: bool,
    pub(crate) path: Word,
    /// Folders a relative path may start in, the likeliest last. `None`: an unknown folder.
    pub(crate) folders: Vec<Option<String>>,
    /// It may be a folder, and then all that is in it changes, too.
    pub(crate) tree: bool,
}

/// A reason why a command may do something else than its text says.
#[derive(Debug, Clone)]
pub(crate) struct Warning {
    pub(crate) reason: String,
    pub(crate) kind: WarningKind,
}

/// Which rule overrides a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarningKind {
    /// A rule that names the program.
    Risky,
    /// Like [`Suspicious`](Self::Suspicious) where no sandbox bounds the command. In a sandbox it
    /// only keeps the command from writing to the repository.
    Unbounded,
    /// Only a rule for exactly this text, or for the whole tool.
    Suspicious,
    /// Like [`Suspicious`](Self::Suspicious); in addition, it may run any command.
    Opaque,
}

impl Warning {
    fn risky(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: WarningKind::Risky }
    }

    fn unbounded(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: WarningKind::Unbounded }
    }

    fn suspicious(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: WarningKind::Suspicious }
    }

    fn opaque(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), kind: WarningKind::Opaque }
    }
}

impl Command {
    /// The command as written, shortened for display.
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

/// Folder a script starts in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StartFolder<'a> {
    /// A folder of the workspace; empty means the workspace itself.
    In(&'a str),
    /// A folder outside the workspace.
    Outside,
}

/// Lists the commands, files, functions and warnings of `script`.
pub(crate) fn analyze(script: &str, from: StartFolder<'_>) -> Vec<Item> {
    if script.len() > SCRIPT_BYTES_MAX {
        let reason = format!("it is longer than {} KiB", SCRIPT_BYTES_MAX / 1024);
        return vec![Item::Warning(Warning::opaque(reason))];
    }
    let folder = match from {
        StartFolder::In(folder) => Some(folder.to_owned()),
        StartFolder::Outside => None,
    };
    let mut analyzer = Analyzer {
        items: Vec::new(),
        folders: vec![folder],
        sets_names: false,
        inner_bytes: 0,
        dialect: Dialect::Bash,
    };
    if let Some(reason) = hidden::in_text(script) {
        analyzer.items.push(Item::Warning(Warning::suspicious(reason)));
    }
    if matches!(from, StartFolder::Outside) {
        analyzer
            .items
            .push(Item::Warning(Warning::suspicious("it begins outside of the workspace")));
    }
    analyzer.script(script, Dialect::Bash, 0);
    analyzer.items
}

/// The last component of a program's path, if it is known.
pub(crate) fn program_name(program: &Word) -> Option<&str> {
    match program.literal() {
        Some(path) => Some(path.rsplit('/').next().unwrap_or(path)),
        None => program.tail().and_then(|tail| tail.rsplit_once('/')).map(|(_, name)| name),
    }
}

/// Result of analyzing one command.
#[derive(Debug, Default)]
struct Analysis {
    wraps: bool,
    warnings: Vec<Warning>,
    nested: Vec<Nested>,
    writes: Vec<Word>,
    /// Files or whole folders that it moves, removes or gives a second name.
    moves: Vec<Word>,
    /// The nested commands run in another folder.
    changes_folder_inside: bool,
}

#[derive(Debug)]
enum Nested {
    Command(Vec<Word>),
    /// A script for a new shell, or, without a dialect, for the current shell.
    Script(String, Option<Dialect>),
}

impl Analysis {
    /// A command that only runs `words`.
    fn wrapper(words: &[Word]) -> Self {
        Self { wraps: true, nested: vec![Nested::Command(words.to_vec())], ..Self::default() }
    }

    fn warning(warning: Warning) -> Self {
        Self { warnings: vec![warning], ..Self::default() }
    }
}

struct Analyzer {
    items: Vec<Item>,
    folders: Vec<Option<String>>,
    /// The script calls a built-in that takes names of variables.
    sets_names: bool,
    /// Dialect of the script that is being analyzed.
    dialect: Dialect,
    /// Bytes of nested scripts parsed so far.
    inner_bytes: usize,
}

impl Analyzer {
    fn script(&mut self, text: &str, dialect: Dialect, depth: usize) {
        let script = Script::read(text, dialect);
        let outer = std::mem::replace(&mut self.dialect, dialect);
        for simple in script.commands {
            self.simple(simple, depth);
        }
        let sets = script.sets.iter().filter_map(|name| environment::warning(name, None));
        self.items.extend(sets.map(Item::Warning));
        self.items.extend(script.functions.into_iter().map(Item::Function));
        self.items.extend(
            script.suspicious.into_iter().map(|reason| Item::Warning(Warning::suspicious(reason))),
        );
        if script.subscript && (script.evaluates || self.sets_names) {
            let reason = "a quoted text in it has a substitution in a subscript, which bash runs \
                          where it expects a number";
            self.items.push(Item::Warning(Warning::opaque(reason)));
        }
        if let Some(reason) = script.unsupported {
            let reason = format!("it cannot be parsed: {reason}");
            self.items.push(Item::Warning(Warning::opaque(reason)));
        }
        self.dialect = outer;
    }

    fn simple(&mut self, simple: SimpleCommand, depth: usize) {
        for Redirect { writes, path } in simple.files {
            self.file(writes, path);
        }
        let assigns = simple.assigns.iter();
        let warnings: Vec<Warning> = assigns
            .filter_map(|set| environment::warning(&set.name, set.value.as_deref()))
            .collect();
        if simple.words.is_empty() {
            self.items.extend(warnings.into_iter().map(Item::Warning));
        } else {
            self.command(simple.words, warnings, depth);
        }
    }

    fn command(&mut self, words: Vec<Word>, mut warnings: Vec<Warning>, depth: usize) {
        let Some(program) = words.first() else { return };
        let analysis = match program.literal() {
            _ if depth >= WRAPPERS_MAX => Analysis::warning(Warning::opaque(format!(
                "there are more than {WRAPPERS_MAX} wrappers"
            ))),
            Some(path) => {
                let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                self.track_folder(&name, &words);
                self.sets_names |= builtin::sets_names(&name);
                analyze_program(&name, &words)
            }
            None => Analysis::warning(Warning::opaque("its program is not written out")),
        };
        warnings.extend(hidden::in_words(&words).map(Warning::suspicious));
        warnings.extend(analysis.warnings);
        let role = if analysis.wraps { Role::Wrapper } else { Role::Program };
        let folders = self.folders.clone();
        self.items.push(Item::Command(Command { words, role, warnings, folders }));
        for path in analysis.writes {
            self.file(true, path);
        }
        for path in analysis.moves {
            let folders = self.folders.clone();
            self.items.push(Item::File(File { writes: true, path, folders, tree: true }));
        }
        if analysis.changes_folder_inside {
            self.folders.push(None);
        }
        for nested in analysis.nested {
            match nested {
                Nested::Command(words) => self.command(words, Vec::new(), depth + 1),
                Nested::Script(text, dialect) => {
                    self.inner_bytes += text.len();
                    if self.inner_bytes > INNER_BYTES_MAX {
                        let reason = "there are too many scripts within scripts";
                        self.items.push(Item::Warning(Warning::opaque(reason)));
                        return;
                    }
                    self.script(&text, dialect.unwrap_or(self.dialect), depth + 1);
                }
            }
        }
    }

    fn file(&mut self, writes: bool, path: Word) {
        self.items.push(Item::File(File {
            writes,
            path,
            folders: self.folders.clone(),
            tree: false,
        }));
    }

    /// Records the folders the script may be in after `cd`. Whether the `cd` runs is unknown, so
    /// the earlier folders remain candidates.
    fn track_folder(&mut self, name: &str, words: &[Word]) {
        if !matches!(name, "cd" | "pushd" | "popd") {
            return;
        }
        let to = match words {
            [_, to] if name != "popd" => to.literal().filter(|to| !to.starts_with(['-', '+'])),
            _ => None,
        };
        let moved: Vec<_> = match to {
            Some(to) => {
                self.folders.iter().flatten().map(|folder| Some(join(folder, to))).collect()
            }
            None => vec![None],
        };
        for folder in moved {
            self.folders.retain(|known| *known != folder);
            self.folders.push(folder);
        }
        if self.folders.len() > FOLDERS_MAX {
            self.folders = vec![None];
        }
    }
}

fn analyze_program(name: &str, words: &[Word]) -> Analysis {
    let known = wrapper::analyze(name, words)
        .or_else(|| shells::analyze(name, words))
        .or_else(|| builtin::analyze(name, words))
        .or_else(|| overwrites::analyze(name, words));
    let mut analysis = match (known, name) {
        (Some(analysis), _) => analysis,
        (None, "find") => find::analyze(words),
        (None, "git") => git::analyze(words),
        (None, _) => Analysis::default(),
    };
    program_options::add(name, words, &mut analysis);
    if analysis.wraps && !wrapper::changes_nothing(name) {
        let reason = format!("`{name}` may change what the command in it does");
        analysis.warnings.push(Warning::unbounded(reason));
    }
    if analysis.changes_folder_inside {
        analysis.warnings.push(Warning::unbounded("it runs in another folder"));
    }
    analysis
}
