//! `$'…'`: quotes in which a backslash writes any character.

use super::source::Source;
use super::word::Word;
use super::{ParseResult, unsupported};

/// Continues after `$'`.
pub(super) fn read(source: &mut Source<'_>, word: &mut Word) -> ParseResult<()> {
    word.quote();
    loop {
        match source.take_raw() {
            None => return unsupported("a single quote is not closed"),
            Some('\'') => return Ok(()),
            Some('\\') => escape(source, word)?,
            Some(c) => word.push(c),
        }
    }
}

fn escape(source: &mut Source<'_>, word: &mut Word) -> ParseResult<()> {
    let Some(kind) = source.take_raw() else {
        return unsupported("a single quote is not closed");
    };
    let code = match kind {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '?' => kind as u32,
        '0'..='7' => {
            let first = kind.to_digit(8).unwrap_or_default();
            // Three octal digits can be more than a byte; the shell keeps the lower part.
            digits(source, 8, 2, first).0 & 0xff
        }
        'x' | 'u' | 'U' => {
            let most = match kind {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            if kind == 'x' && source.raw() == Some('{') {
                return unsupported(r"`\x{` is written in `$'…'`");
            }
            let (code, found) = digits(source, 16, most, 0);
            if found == 0 {
                word.push('\\');
                word.push(kind);
                return Ok(());
            }
            if kind == 'x' { code } else { return text(char::from_u32(code), word) }
        }
        'c' => return unsupported(r"`\c` is written in `$'…'`"),
        other => {
            word.push('\\');
            word.push(other);
            return Ok(());
        }
    };
    // Above ASCII it is one byte of an unknown character.
    if code < 0x80 {
        return text(char::from_u32(code), word);
    }
    word.push_unknown();
    Ok(())
}

fn text(c: Option<char>, word: &mut Word) -> ParseResult<()> {
    match c {
        Some('\0') | None => unsupported("a character in `$'…'` cannot be written"),
        Some(c) => {
            word.push(c);
            Ok(())
        }
    }
}

/// Parses up to `most` digits onto `value`; returns the number and the count of digits.
fn digits(source: &mut Source<'_>, radix: u32, most: usize, mut value: u32) -> (u32, usize) {
    let mut found = 0;
    while found < most {
        let Some(digit) = source.raw().and_then(|c| c.to_digit(radix)) else { break };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        source.take_raw();
        found += 1;
    }
    (value, found)
}
