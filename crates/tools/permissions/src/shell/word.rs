//! A word of a command.

/// The known parts of a word without its quotes: all of it, or its head and tail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    head: String,
    /// Text after the last unknown part. `None`: the whole word is known.
    tail: Option<String>,
    splits: bool,
    quoted: bool,
    assigns: Option<String>,
    raw: String,
}

impl Word {
    /// A word that is fully known.
    pub(crate) fn known(text: &str) -> Self {
        Self { head: text.to_owned(), raw: text.to_owned(), ..Self::default() }
    }

    /// One unknown word.
    pub(crate) fn unknown() -> Self {
        Self { tail: Some(String::new()), raw: "…".to_owned(), ..Self::default() }
    }

    /// Any number of unknown words.
    pub(crate) fn unknown_rest() -> Self {
        Self { splits: true, ..Self::unknown() }
    }

    /// The whole word, if it is fully known.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.tail.is_none().then_some(self.head.as_str())
    }

    /// The known start of the word.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// The known end of the word, if a part of it is unknown.
    pub(crate) fn tail(&self) -> Option<&str> {
        self.tail.as_deref()
    }

    /// Whether it may expand to several words, or to none.
    pub(crate) fn splits(&self) -> bool {
        self.splits
    }

    /// The variable it sets when it precedes a command.
    pub(crate) fn assigns(&self) -> Option<&str> {
        self.assigns.as_deref()
    }

    /// The word as written, with its quotes.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether it is exactly these unquoted characters.
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

    /// Appends an unknown part that stays one word.
    pub(super) fn push_unknown(&mut self) {
        self.tail = Some(String::new());
    }

    /// Appends an unknown part that may become several words, or none.
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

    /// Whether it would run a command if bash evaluated it as a number: `a[$(rm b)]`.
    pub(super) fn has_subscript(&self) -> bool {
        if self.tail.is_some() {
            // The unknown part may contain the name and the bracket.
            return self.has_expansion();
        }
        let named = |(at, _): &(usize, &str)| {
            self.head[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        };
        let opened = self.head.match_indices('[').find(named);
        opened.is_some_and(|(at, _)| is_expanded(&self.head[at..]))
    }

    /// Whether bash would expand a part of it if it parsed the text again.
    pub(super) fn has_expansion(&self) -> bool {
        is_expanded(&self.head) || self.tail.as_deref().is_some_and(is_expanded)
    }
}

fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains("${") || text.contains('`')
}
