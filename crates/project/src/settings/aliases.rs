//! Names of models that clients send, and what answers them here.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Names that clients send, each with an agent or a PROVIDER/MODEL. A final `*` in a name stands for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ModelAliases(BTreeMap<String, String>);

impl ModelAliases {
    /// What a name stands for. The name itself comes first, then the longest beginning.
    pub fn find(&self, name: &str) -> Option<&str> {
        let beginning =
            |alias: &str| alias.strip_suffix('*').is_some_and(|it| name.starts_with(it));
        let longest = || {
            let fitting = self.0.iter().filter(|(alias, _)| beginning(alias));
            fitting.max_by_key(|(alias, _)| alias.len()).map(|(_, target)| target)
        };
        self.0.get(name).or_else(longest).map(String::as_str)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_itself_comes_first_and_then_the_longest_beginning() {
        let text = "\"claude-*\" = \"a/b\"\n\"claude-haiku-*\" = \"a/c\"\n\"claude-haiku-4-5\" = \"reviewer\"";
        let aliases: ModelAliases = toml::from_str(text).unwrap();
        let found = |name| aliases.find(name);
        assert_eq!(found("claude-haiku-4-5"), Some("reviewer"));
        assert_eq!(found("claude-haiku-5"), Some("a/c"));
        assert_eq!(found("claude-opus-5"), Some("a/b"));
        assert_eq!(found("gpt-5"), None);
    }
}
