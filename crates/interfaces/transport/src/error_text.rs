//! Texts of errors. They repeat what a client sent, which may be megabytes: a long text loses its middle.

/// Longest text of an error, in bytes.
pub const ERROR_TEXT_BYTES_MAX: usize = 8 * 1024;

/// How much of the end of a long text stays: what to do is said there.
const END_BYTES: usize = 1024;

/// The text, shortened to [`ERROR_TEXT_BYTES_MAX`].
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > ERROR_TEXT_BYTES_MAX {
        let begin = text.floor_char_boundary(ERROR_TEXT_BYTES_MAX - END_BYTES - "…".len());
        let end = text.ceil_char_boundary(text.len() - END_BYTES);
        text.replace_range(begin..end, "…");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_begin_and_its_end() {
        let short = "`model`: unknown".to_owned();
        assert_eq!(bounded(short.clone()), short);
        for letter in ["x", "é", "🦀"] {
            let long = format!("`model`: {} is unknown", letter.repeat(ERROR_TEXT_BYTES_MAX));
            let text = bounded(long);
            assert!(text.len() <= ERROR_TEXT_BYTES_MAX, "{}", text.len());
            assert!(text.starts_with("`model`: ") && text.ends_with(" is unknown"), "{letter}");
            assert!(text.contains(&format!("{letter}…{letter}")), "{letter}");
        }
    }
}
