//! What a script for bash would run, without running it.
//!
//! The whole script is read: every simple command in it is found, wherever it stands: in lists,
//! pipelines, groups, loops, functions, substitutions and here-documents. Where bash would
//! understand something that this reader does not, or might understand it differently, the
//! reader says so and stops; what it found until then is kept. It never guesses.
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

use here_document::Pending;
use source::Source;

/// Deepest nesting of commands and substitutions in one script. Deeper is not understood.
pub(crate) const NESTING_MAX: usize = 40;

/// Most simple commands in one script. More are not understood.
pub(crate) const COMMANDS_MAX: usize = 1000;

/// Whose language a script is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// That of bash.
    Bash,
    /// That of a plain `sh`, which understands some of what bash does in its own way.
    Posix,
}

/// What was found in a script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// In the order in which they end.
    pub(crate) commands: Vec<Simple>,
    /// Names of the functions that are defined.
    pub(crate) functions: Vec<String>,
    /// What is odd about it, in words.
    pub(crate) odd: Vec<String>,
    /// Why the rest could not be read.
    pub(crate) unclear: Option<String>,
    /// Something in it is evaluated as a number: bash runs substitutions in subscripts then.
    pub(crate) evaluates: bool,
    /// A text in it would run something if it were evaluated as a number.
    pub(crate) subscript: bool,
}

/// One command as the shell runs it. Redirections of a compound command are one without words.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    /// Names that are set for it, or for all that follows.
    pub(crate) assigns: Vec<String>,
    /// The program and its arguments.
    pub(crate) words: Vec<Word>,
    /// Files that the shell opens for it.
    pub(crate) files: Vec<Redirect>,
}

/// A file the shell opens.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) writes: bool,
    pub(crate) path: Word,
}

impl Script {
    /// Reads `text`.
    pub(crate) fn read(text: &str, dialect: Dialect) -> Self {
        let mut script = Self::default();
        let mut reader = Reader::new(text, dialect, 0, &mut script);
        let result = reader.program();
        script.unclear = result.err().map(|unclear| unclear.0);
        script
    }
}

/// A text within a text.
#[derive(Debug, Clone, Copy)]
enum Inner {
    Script,
    HereDocument,
}

/// Why a script, or the rest of it, is not understood.
#[derive(Debug)]
struct Unclear(String);

type Read<T> = Result<T, Unclear>;

fn unclear<T>(reason: impl Into<String>) -> Read<T> {
    Err(Unclear(reason.into()))
}

/// Reads one text. Texts within it that are read on their own, such as the body of a
/// here-document, get a reader of their own, one level deeper.
struct Reader<'t, 's> {
    source: Source<'t>,
    dialect: Dialect,
    depth: usize,
    script: &'s mut Script,
    /// Here-documents whose bodies begin after the next line break.
    pending: Vec<Pending>,
    /// Here-documents that wait around the substitution that is being read.
    pending_outside: usize,
    /// The values of an array are being read. Bash does not nest them, and goes on with the next
    /// line after it has complained.
    in_array: bool,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, dialect: Dialect, depth: usize, script: &'s mut Script) -> Self {
        let source = Source::new(text);
        let pending = Vec::new();
        Self { source, dialect, depth, script, pending, pending_outside: 0, in_array: false }
    }

    /// Reads something one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= NESTING_MAX {
            return unclear(format!("it is nested deeper than {NESTING_MAX} levels"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads a text of its own, one level deeper.
    fn within(&mut self, text: &str, kind: Inner) -> Read<()> {
        if self.depth >= NESTING_MAX {
            return unclear(format!("it is nested deeper than {NESTING_MAX} levels"));
        }
        let mut reader = Reader::new(text, self.dialect, self.depth + 1, self.script);
        match kind {
            Inner::Script => reader.program(),
            Inner::HereDocument => reader.here_text(),
        }
    }

    fn add(&mut self, command: Simple) -> Read<()> {
        if self.script.commands.len() >= COMMANDS_MAX {
            return unclear(format!("it has more than {COMMANDS_MAX} commands"));
        }
        self.script.commands.push(command);
        Ok(())
    }

    /// A form that only bash has.
    fn only_bash(&self, form: &str) -> Read<()> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => {
                unclear(format!("`{form}` means different things to different shells"))
            }
        }
    }
}
