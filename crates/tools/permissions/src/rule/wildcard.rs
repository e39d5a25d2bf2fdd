//! Text patterns in which `*` matches any characters.

/// A text with any number of `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wildcard {
    /// The parts between the stars, in order.
    parts: Vec<String>,
}

impl Wildcard {
    /// Parses `text`, in which every `*` is a star.
    pub(super) fn plain(text: &str) -> Self {
        Self { parts: text.split('*').map(str::to_owned).collect() }
    }

    /// A pattern without a star.
    pub(super) fn literal(text: String) -> Self {
        Self { parts: vec![text] }
    }

    /// Appends a character.
    pub(super) fn push(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(part) => part.push(c),
            None => self.parts.push(c.to_string()),
        }
    }

    /// Appends a star.
    pub(super) fn push_star(&mut self) {
        self.parts.push(String::new());
    }

    pub(super) fn is_literal(&self) -> bool {
        self.parts.len() <= 1
    }

    /// The text before the first star.
    pub(super) fn head(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }

    /// Whether it is a star and nothing else.
    pub(super) fn is_star(&self) -> bool {
        self.parts.len() > 1 && self.parts.iter().all(String::is_empty)
    }

    /// The text, if there is no star in it.
    pub(super) fn as_literal(&self) -> Option<&str> {
        self.is_literal().then(|| self.head())
    }

    /// Whether there is a slash in it.
    pub(super) fn has_slash(&self) -> bool {
        self.parts.iter().any(|part| part.contains('/'))
    }

    /// The part after the last slash.
    pub(super) fn file_name(&self) -> Self {
        let mut parts = Vec::new();
        for part in self.parts.iter().rev() {
            match part.rsplit_once('/') {
                Some((_, name)) => {
                    parts.push(name.to_owned());
                    break;
                }
                None => parts.push(part.clone()),
            }
        }
        parts.reverse();
        Self { parts }
    }

    /// Whether the whole `text` matches. Takes the first position where a part fits, because this
    /// leaves the most text for the following parts.
    pub(super) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.parts.as_slice() else {
            return self.head() == text;
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            match rest.find(part.as_str()) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Wildcard;

    #[test]
    fn a_star_is_any_characters_and_the_rest_is_itself() {
        let cases = [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*", "", true),
            ("a*b*c", "axbxbxc", true),
            ("a*ab", "ab", false),
            ("mcp__*__push", "mcp__github__push", true),
            ("", "", true),
            ("", "x", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Wildcard::plain(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_file_name_is_what_follows_the_last_slash() {
        assert_eq!(Wildcard::plain("/bin/r*").file_name(), Wildcard::plain("r*"));
        assert_eq!(Wildcard::plain("*/rm").file_name(), Wildcard::plain("rm"));
        assert_eq!(Wildcard::plain("r*m").file_name(), Wildcard::plain("r*m"));
    }
}
