//! Parses a bash script into the commands it would run. Runs nothing.
//!
//! The reader finds every simple command: in lists, pipelines, groups, loops, functions,
//! substitutions and here-documents. At syntax that it does not support, or that shells read
//! differently, the reader stops, reports the reason and keeps the commands found so far. It
//! never guesses.
//!
//! Time is linear in the length of the script, and nesting is limited by [`NESTING_MAX`].

mod ansi_c;
mod compound;
mod expansion;
mod here_document;
mod list;
mod simple;
mod source;
mod test_expression;
mod word;
mod words;

pub(crate) use word::Word;

use here_document::PendingHereDocument;
use source::Source;

/// Deepest nesting of commands and substitutions in one script. Deeper nesting is unsupported.
pub(crate) const NESTING_MAX: usize = 40;

/// Most simple commands in one script. More are unsupported.
pub(crate) const COMMANDS_MAX: usize = 1000;

/// Shell language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Bash.
    Bash,
    /// Plain `sh`, which reads some syntax of bash differently.
    Posix,
}

/// A parsed script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Simple commands, in the order in which they end.
    pub(crate) commands: Vec<SimpleCommand>,
    /// Names of the functions the script defines.
    pub(crate) functions: Vec<String>,
    /// Variables that expansions set: `${NAME:=value}`.
    pub(crate) sets: Vec<String>,
    /// Reasons why the script is suspicious.
    pub(crate) suspicious: Vec<String>,
    /// Why the rest of the script could not be parsed.
    pub(crate) unsupported: Option<String>,
    /// The script evaluates an arithmetic expression; bash then runs substitutions in subscripts.
    pub(crate) evaluates: bool,
    /// A text in the script would run a command if bash evaluated it as a number.
    pub(crate) subscript: bool,
}

/// One command the shell runs. The redirections of a compound command form one without words.
#[derive(Debug, Default)]
pub(crate) struct SimpleCommand {
    /// Variables set for the command, or for the rest of the script.
    pub(crate) assigns: Vec<Assignment>,
    /// The program and its arguments.
    pub(crate) words: Vec<Word>,
    /// Files the shell opens for the command.
    pub(crate) files: Vec<Redirect>,
}

/// A variable that the shell sets.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// Its value, if that is written out.
    pub(crate) value: Option<String>,
}

/// A file the shell opens.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) writes: bool,
    pub(crate) path: Word,
}

impl Script {
    /// Parses `text`.
    pub(crate) fn read(text: &str, dialect: Dialect) -> Self {
        let mut script = Self::default();
        let mut reader = Reader::new(text, dialect, 0, &mut script);
        let result = reader.program();
        script.unsupported = result.err().map(|unsupported| unsupported.0);
        script
    }
}

/// Kind of a text nested in a script.
#[derive(Debug, Clone, Copy)]
enum NestedText {
    Script,
    HereDocument,
}

/// Why a script, or the rest of it, could not be parsed.
#[derive(Debug)]
struct Unsupported(String);

type ParseResult<T> = Result<T, Unsupported>;

fn unsupported<T>(reason: impl Into<String>) -> ParseResult<T> {
    Err(Unsupported(reason.into()))
}

/// Parses one text. A nested text, such as the body of a here-document, gets a separate reader
/// one level deeper.
struct Reader<'t, 's> {
    source: Source<'t>,
    dialect: Dialect,
    depth: usize,
    script: &'s mut Script,
    /// Here-documents whose bodies begin after the next line break.
    pending: Vec<PendingHereDocument>,
    /// Here-documents that are pending outside the current substitution.
    pending_outside: usize,
    /// The reader is inside the values of an array. Bash does not nest arrays: it reports an error
    /// and continues with the next line.
    in_array: bool,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, dialect: Dialect, depth: usize, script: &'s mut Script) -> Self {
        let source = Source::new(text);
        let pending = Vec::new();
        Self { source, dialect, depth, script, pending, pending_outside: 0, in_array: false }
    }

    /// Runs `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= NESTING_MAX {
            return unsupported(format!("it is nested deeper than {NESTING_MAX} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses a nested text, one level deeper.
    fn within(&mut self, text: &str, kind: NestedText) -> ParseResult<()> {
        if self.depth >= NESTING_MAX {
            return unsupported(format!("it is nested deeper than {NESTING_MAX} levels"));
        }
        let mut reader = Reader::new(text, self.dialect, self.depth + 1, self.script);
        match kind {
            NestedText::Script => reader.program(),
            NestedText::HereDocument => reader.here_text(),
        }
    }

    fn add(&mut self, command: SimpleCommand) -> ParseResult<()> {
        if self.script.commands.len() >= COMMANDS_MAX {
            return unsupported(format!("it has more than {COMMANDS_MAX} commands"));
        }
        self.script.commands.push(command);
        Ok(())
    }

    /// Rejects a form that only bash supports, unless the dialect is bash.
    fn only_bash(&self, form: &str) -> ParseResult<()> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => {
                unsupported(format!("`{form}` means different things to different shells"))
            }
        }
    }
}
