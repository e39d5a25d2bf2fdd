//! A word of a command.

/// What is known of a word once its quotes are gone: all of it, or how it begins and ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    head: String,
    /// What follows the last part that is not known. `None`: all is known.
    tail: Option<String>,
    splits: bool,
    quoted: bool,
    assigns: Option<String>,
    raw: String,
}

impl Word {
    /// A word of which all is known.
    pub(crate) fn known(text: &str) -> Self {
        Self { head: text.to_owned(), raw: text.to_owned(), ..Self::default() }
    }

    /// One word of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { tail: Some(String::new()), raw: "…".to_owned(), ..Self::default() }
    }

    /// Any number of words of which nothing is known.
    pub(crate) fn unknown_rest() -> Self {
        Self { splits: true, ..Self::unknown() }
    }

    /// All of it, if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.tail.is_none().then_some(self.head.as_str())
    }

    /// How it begins.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// How it ends, if not all of it is known.
    pub(crate) fn tail(&self) -> Option<&str> {
        self.tail.as_deref()
    }

    /// Whether it may become several words, or none.
    pub(crate) fn splits(&self) -> bool {
        self.splits
    }

    /// The name that it sets when it stands before a command.
    pub(crate) fn assigns(&self) -> Option<&str> {
        self.assigns.as_deref()
    }

    /// As it is written.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether it is these characters, with nothing quoted.
    pub(super) fn is_plain(&self, text: &str) -> bool {
        !self.quoted && self.literal() == Some(text)
    }

    /// Whether nothing in it is quoted or unknown so far.
    pub(super) fn plain(&self) -> Option<&str> {
        if self.quoted { None } else { self.literal() }
    }

    pub(super) fn push(&mut self, c: char) {
        self.tail.as_mut().unwrap_or(&mut self.head).push(c);
    }

    /// Something that is not known: one word's worth.
    pub(super) fn push_unknown(&mut self) {
        self.tail = Some(String::new());
    }

    /// Something that is not known and may be several words, or none.
    pub(super) fn push_splitting(&mut self) {
        self.push_unknown();
        self.splits = true;
    }

    pub(super) fn quote(&mut self) {
        self.quoted = true;
    }

    pub(super) fn set_assigns(&mut self, name: &str) {
        self.assigns = Some(name.to_owned());
    }

    pub(super) fn set_raw(&mut self, raw: &str) {
        raw.clone_into(&mut self.raw);
    }

    /// Whether a text in it would run something if it were evaluated as a number: `a[$(rm b)]`.
    pub(super) fn has_subscript(&self) -> bool {
        if self.tail.is_some() {
            // The part that is not known may hold the name and the bracket.
            return self.has_expansion();
        }
        let named = |(at, _): &(usize, &str)| {
            self.head[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        };
        let opened = self.head.match_indices('[').find(named);
        opened.is_some_and(|(at, _)| is_expanded(&self.head[at..]))
    }

    /// Whether a text in it would be expanded if it were read again.
    pub(super) fn has_expansion(&self) -> bool {
        is_expanded(&self.head) || self.tail.as_deref().is_some_and(is_expanded)
    }
}

fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains("${") || text.contains('`')
}
