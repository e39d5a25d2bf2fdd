//! The terminal program: its theme, its keys.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Settings of the terminal program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuiConfig {
    /// Colors of text.
    pub theme: Theme,
    /// The prompt has the keys of vi.
    pub vi: bool,
    /// Keys by the name of what they do; see `/keys`.
    pub keys: BTreeMap<String, KeyNames>,
}

/// Colors of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    /// The sixteen colors of the terminal's own theme.
    #[default]
    Terminal,
    /// Dark colors, for a light ground.
    Light,
    /// Light colors, for a dark ground.
    Dark,
    /// No colors; bold, dim and reversed text.
    Mono,
}

impl Theme {
    /// Every theme with its name.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Terminal, "terminal"),
        (Self::Light, "light"),
        (Self::Dark, "dark"),
        (Self::Mono, "mono"),
    ];
}

/// The key of an action, or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a key is a text such as \"ctrl-x\", or a list of such texts")]
pub enum KeyNames {
    /// One.
    One(String),
    /// Several; none leaves the action without a key.
    Several(Vec<String>),
}

impl KeyNames {
    /// The names of the keys.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}
