//! Where the options of a program end.

use crate::shell::Word;

/// The options that a program understands. One that is not listed is not understood.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    /// Short ones without a value.
    pub(super) flags: &'static str,
    /// Short ones whose value is the rest of the word, or the next one.
    pub(super) valued: &'static str,
    /// Short ones whose value, if there is one, is the rest of the word.
    pub(super) attached: &'static str,
    /// Long ones without a value, or with one after `=`.
    pub(super) long_flags: &'static [&'static str],
    /// Long ones whose value is after `=`, or the next word.
    pub(super) long_valued: &'static [&'static str],
}

/// One option as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given<'w> {
    Short(char, Option<&'w Word>),
    /// A short one with its value in the same word.
    Attached(char, &'w str),
    Long(&'w str),
}

/// Options that are not understood: which.
#[derive(Debug)]
pub(super) struct Unknown(pub(super) String);

impl Options {
    /// The options that were given, and where what follows them begins.
    pub(super) fn read<'w>(&self, words: &'w [Word]) -> Result<(Vec<Given<'w>>, usize), Unknown> {
        let mut given = Vec::new();
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                if word.head().is_empty() || word.head().starts_with('-') {
                    return Err(Unknown(word.raw().to_owned()));
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
                // A value that is several words would move the end of the options.
                if let Some(value) = words.get(at).filter(|value| value.splits()) {
                    return Err(Unknown(value.raw().to_owned()));
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
        given: &mut Vec<Given<'w>>,
    ) -> Result<bool, Unknown> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        given.push(Given::Long(name));
        if self.long_valued.contains(&name) {
            return Ok(value.is_none());
        }
        if self.long_flags.contains(&name) { Ok(false) } else { Err(Unknown(text.to_owned())) }
    }

    fn short<'w>(
        &self,
        option: &'w str,
        next: Option<&'w Word>,
        text: &str,
        given: &mut Vec<Given<'w>>,
    ) -> Result<bool, Unknown> {
        for (at, c) in option.char_indices() {
            let rest = &option[at + c.len_utf8()..];
            if self.attached.contains(c) {
                given.push(Given::Attached(c, rest));
                return Ok(false);
            }
            if self.valued.contains(c) {
                if rest.is_empty() {
                    given.push(Given::Short(c, next));
                    return Ok(true);
                }
                given.push(Given::Attached(c, rest));
                return Ok(false);
            }
            if !self.flags.contains(c) {
                return Err(Unknown(text.to_owned()));
            }
            given.push(Given::Short(c, None));
        }
        Ok(false)
    }
}
