//! Parses the options of a program to find where they end.

use crate::shell::Word;

/// The options that a program accepts. Any other option is unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options whose value is the rest of the word, or the next word.
    pub(super) valued: &'static str,
    /// Short options whose optional value is the rest of the word.
    pub(super) attached: &'static str,
    /// Long options without a value, or with a value after `=`.
    pub(super) long_flags: &'static [&'static str],
    /// Long options whose value follows `=`, or is the next word.
    pub(super) long_valued: &'static [&'static str],
}

/// One parsed option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParsedOption<'w> {
    Short(char, Option<&'w Word>),
    /// A short option with its value in the same word.
    Attached(char, &'w str),
    Long(&'w str),
}

/// An option that the program is not known to accept.
#[derive(Debug)]
pub(super) struct UnknownOption(pub(super) String);

/// Whether `word` may be the long option `long`: each prefix of an option stands for it.
pub(super) fn is_long(word: &Word, long: &str) -> bool {
    let Some(given) = word.head().strip_prefix("--") else { return false };
    let (name, has_value) = given.split_once('=').map_or((given, false), |(name, _)| (name, true));
    let is_whole = has_value || word.literal().is_some();
    (!name.is_empty() && long.starts_with(name)) || (!is_whole && name.starts_with(long))
}

/// What follows the short option `short` in `word`, which may hold several: `-ixVALUE`.
pub(super) fn ends_in_short(word: &Word, short: char) -> Option<&str> {
    let given = word.head().strip_prefix('-').filter(|given| !given.starts_with('-'))?;
    let (before, value) = given.split_once(short)?;
    before.chars().all(|c| c.is_ascii_alphanumeric()).then_some(value)
}

impl Options {
    /// Parses the options; returns them with the index of the first word after them.
    pub(super) fn read<'w>(
        &self,
        words: &'w [Word],
    ) -> Result<(Vec<ParsedOption<'w>>, usize), UnknownOption> {
        let mut given = Vec::new();
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                if word.head().is_empty() || word.head().starts_with('-') {
                    return Err(UnknownOption(word.raw().to_owned()));
                }
                break;
            };
            if text == "--" {
                at += 1;
                break;
            }
            let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else {
                break;
            };
            at += 1;
            let takes_next = match option.strip_prefix('-') {
                Some(long) => self.long(long, text, &mut given)?,
                None => self.short(option, words.get(at), text, &mut given)?,
            };
            if takes_next {
                // A value of several words would move the end of the options.
                if let Some(value) = words.get(at).filter(|value| value.splits()) {
                    return Err(UnknownOption(value.raw().to_owned()));
                }
                at += 1;
            }
        }
        Ok((given, at.min(words.len())))
    }

    fn long<'w>(
        &self,
        long: &'w str,
        text: &str,
        given: &mut Vec<ParsedOption<'w>>,
    ) -> Result<bool, UnknownOption> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        given.push(ParsedOption::Long(name));
        if self.long_valued.contains(&name) {
            return Ok(value.is_none());
        }
        if self.long_flags.contains(&name) {
            Ok(false)
        } else {
            Err(UnknownOption(text.to_owned()))
        }
    }

    fn short<'w>(
        &self,
        option: &'w str,
        next: Option<&'w Word>,
        text: &str,
        given: &mut Vec<ParsedOption<'w>>,
    ) -> Result<bool, UnknownOption> {
        for (at, c) in option.char_indices() {
            let rest = &option[at + c.len_utf8()..];
            if self.attached.contains(c) {
                given.push(ParsedOption::Attached(c, rest));
                return Ok(false);
            }
            if self.valued.contains(c) {
                if rest.is_empty() {
                    given.push(ParsedOption::Short(c, next));
                    return Ok(true);
                }
                given.push(ParsedOption::Attached(c, rest));
                return Ok(false);
            }
            if !self.flags.contains(c) {
                return Err(UnknownOption(text.to_owned()));
            }
            given.push(ParsedOption::Short(c, None));
        }
        Ok(false)
    }
}
