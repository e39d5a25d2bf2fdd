//! Characters that make a command look like another.

use crate::shell::Word;

/// Describes a character in `text` that is invisible or displayed elsewhere.
pub(super) fn in_text(text: &str) -> Option<String> {
    let c = text.chars().find(|c| is_hidden(*c))?;
    Some(format!("it has the character U+{:04X}, which does not show as it is", u32::from(c)))
}

/// Describes a character in the names of programs and options that looks like another.
pub(super) fn in_words(words: &[Word]) -> Option<String> {
    let non_ascii = |text: &str| text.chars().find(|c| !c.is_ascii());
    let program = words.first().and_then(|word| non_ascii(word.head()));
    let option = words.iter().skip(1).map(Word::head).find_map(|text| {
        let mut chars = text.chars();
        match (chars.next()?, chars.next()) {
            ('-', Some('-')) => non_ascii(text.split('=').next().unwrap_or_default()),
            ('-', second) => second.filter(|second| !second.is_ascii()),
            // A character that looks like a dash. In front of a sentence it is harmless.
            (first, _) => Some(first).filter(|c| is_dash(*c) && !text.contains(' ')),
        }
    });
    let c = program.or(option)?;
    Some(format!("it has the character `{c}` (U+{:04X}) where ASCII is expected", u32::from(c)))
}

fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}')
}

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        _ if c.is_control() => true,
        // Spaces that are not the space, marks without width, and changes of direction.
        '\u{a0}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{1680}'
        | '\u{180e}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{3000}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}
