//! Text with placeholders. `{{last_user}}`, `{{last_result}}` and `{{turn}}` are replaced once;
//! what replaces them is never read as a template. Any other `{{` is refused.

use std::borrow::Cow;

use serde::Deserialize;

use crate::scene::Scene;

/// A text that may refer to the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    LastUser,
    LastResult,
    Turn,
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Literal(before.to_owned()));
            }
            let (name, after) = behind.split_once("}}").ok_or("`{{` is never closed with `}}`")?;
            parts.push(Part::named(name)?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    pub(crate) fn render(&self, scene: &Scene<'_>) -> String {
        self.0.iter().map(|part| part.value(scene)).collect()
    }

    /// How long [`render`](Self::render) makes it, without making it.
    pub(crate) fn rendered_bytes(&self, scene: &Scene<'_>) -> usize {
        self.0.iter().map(|part| part.value(scene).len()).fold(0, usize::saturating_add)
    }

    /// How long it is at least.
    pub(crate) fn literal_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text.len(),
                Part::LastUser | Part::LastResult | Part::Turn => 0,
            })
            .sum()
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl Part {
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "last_user" => Ok(Self::LastUser),
            "last_result" => Ok(Self::LastResult),
            "turn" => Ok(Self::Turn),
            _ => Err(format!(
                "unknown placeholder `{{{{{name}}}}}`, expected one of `{{{{last_user}}}}`, \
                 `{{{{last_result}}}}`, `{{{{turn}}}}`"
            )),
        }
    }

    fn value<'a>(&'a self, scene: &'a Scene<'_>) -> Cow<'a, str> {
        match self {
            Self::Literal(text) => text.into(),
            Self::LastUser => scene.last_user.as_deref().unwrap_or_default().into(),
            Self::LastResult => {
                scene.last_result.as_ref().map_or("", |result| result.text.as_str()).into()
            }
            Self::Turn => scene.turn.to_string().into(),
        }
    }
}
