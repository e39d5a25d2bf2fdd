//! Patterns for commands: words, compared one by one.

use super::Match;
use super::wildcard::Wildcard;
use crate::commands::program_name;
use crate::shell::Word;

/// How many words a specific rule names: the program and its first argument.
const SPECIFIC_WORDS: usize = 2;

/// `git push *`: these words, and any further words if the last word is a star.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    words: Vec<Wildcard>,
    rest: bool,
}

/// How the program of a command is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By the last component of the path: `/bin/rm` is `rm`. For rules that deny or ask.
    Name,
    /// As written: `./rm` is not `rm`. For rules that allow.
    AsWritten,
}

impl CommandPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut words = split(pattern)?;
        let rest = words.last().is_some_and(|(word, quoted)| word.is_star() && !quoted);
        if rest {
            words.pop();
        }
        if words.first().is_some_and(|(word, quoted)| !quoted && word.head().contains('=')) {
            return Err("it begins with an assignment: begin with the program".to_owned());
        }
        Ok(Self { words: words.into_iter().map(|(word, _)| word).collect(), rest })
    }

    /// Whether `words` match the pattern.
    pub(crate) fn matches(&self, words: &[Word], naming: Naming) -> Match {
        let mut found = Match::Certain;
        for (at, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else { return Match::No };
            let fits =
                if at == 0 { program(pattern, word, naming) } else { argument(pattern, word) };
            if fits == Match::No {
                return Match::No;
            }
            if word.splits() && word.literal().is_none() && (at > 0 || fits < Match::Certain) {
                // It may be several words, so the start of the next word is unknown.
                return Match::Possible;
            }
            found = found.min(fits);
        }
        let further = words.get(self.words.len()..).unwrap_or_default();
        if self.rest || further.is_empty() {
            found
        } else if further.iter().all(Word::splits) {
            found.min(Match::Possible)
        } else {
            Match::No
        }
    }

    /// Whether it names this program, without a star in the name.
    pub(crate) fn names(&self, program: &str) -> bool {
        self.program().is_some_and(|name| name == program)
    }

    /// The program it names.
    pub(crate) fn program(&self) -> Option<&str> {
        self.words.first().and_then(Wildcard::as_literal)
    }

    /// Whether the pattern is as specific as the rule proposed for a command of `words` words.
    pub(crate) fn is_specific(&self, words: usize) -> bool {
        let named = self.words.iter().take_while(|word| word.is_literal()).count();
        named >= words.min(SPECIFIC_WORDS) && (words >= SPECIFIC_WORDS || !self.rest)
    }
}

fn program(pattern: &Wildcard, word: &Word, naming: Naming) -> Match {
    match (naming, word.literal()) {
        (Naming::AsWritten, None) => Match::No,
        (Naming::AsWritten, Some(path)) => {
            // A star does not match across folders.
            Match::from(pattern.matches(path) && (pattern.has_slash() || !path.contains('/')))
        }
        (Naming::Name, _) => match program_name(word) {
            Some(name) => Match::from(pattern.file_name().matches(name)),
            None => Match::Possible,
        },
    }
}

fn argument(pattern: &Wildcard, word: &Word) -> Match {
    match word.literal() {
        Some(text) => Match::from(pattern.matches(text)),
        None if pattern.is_star() && !word.splits() => Match::Certain,
        None => {
            let (ours, theirs) = (pattern.head(), word.head());
            let fits = if pattern.is_literal() {
                ours.starts_with(theirs)
            } else {
                ours.starts_with(theirs) || theirs.starts_with(ours)
            };
            if fits { Match::Possible } else { Match::No }
        }
    }
}

/// The words of a pattern, and whether they were quoted.
fn split(pattern: &str) -> Result<Vec<(Wildcard, bool)>, String> {
    let mut words = Vec::new();
    let mut chars = pattern.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        let mut word = Wildcard::literal(String::new());
        let mut quoted = false;
        while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
            match c {
                '*' => word.push_star(),
                '\\' => {
                    quoted = true;
                    word.push(chars.next().ok_or("it ends in a backslash")?);
                }
                '\'' | '"' => {
                    quoted = true;
                    loop {
                        match chars.next() {
                            Some(end) if end == c => break,
                            Some(inside) => word.push(inside),
                            None => return Err(format!("its {c} is not closed")),
                        }
                    }
                }
                '|' | ';' | '&' | '<' | '>' | '`' | '$' => {
                    return Err(format!(
                        "it has `{c}` in it: a pattern is one command; quote what is meant as it is"
                    ));
                }
                _ => word.push(c),
            }
        }
        words.push((word, quoted));
    }
}
