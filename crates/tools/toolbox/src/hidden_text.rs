//! Characters that hide text from a person but not from a model.
//!
//! Unicode tags spell whole sentences that a person does not see and a model reads; direction
//! overrides show a person another order than the model gets. Both become escapes, so that nothing
//! is lost and nothing is hidden.

use std::fmt::Write;

use memchr::memchr2;

/// Replaces tags and direction overrides by escapes such as `\u{e0041}`.
pub fn escape_hidden_text(text: &mut String) {
    // Tags are encoded `f3 a0 8…`, overrides `e2 80…` and `e2 81…`.
    if memchr2(0xf3, 0xe2, text.as_bytes()).is_none() || !text.chars().any(hides) {
        return;
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if hides(c) {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    *text = shown;
}

fn hides(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut text = text.to_owned();
        escape_hidden_text(&mut text);
        text
    }

    #[test]
    fn hidden_text_is_escaped() {
        assert_eq!(escaped("a\u{e0041}b\u{202e}c\u{2066}"), r"a\u{e0041}b\u{202e}c\u{2066}");
    }

    #[test]
    fn characters_that_languages_need_stay() {
        let plain = "नमस्\u{200d}ते “quotes” 👨\u{200d}👩 e\u{301} \u{fe0f}";
        assert_eq!(escaped(plain), plain);
    }
}
