//! Text with placeholders. `{{last_user}}`, `{{last_result}}`, a JSON pointer into it and
//! `{{turn}}` are replaced once; replacements are not templates themselves. Any other `{{` is
//! refused.

use std::borrow::Cow;

use serde::Deserialize;

use crate::request_facts::RequestFacts;

/// A text that may refer to the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    LastUser,
    LastResult,
    /// A JSON pointer into the last result.
    InLastResult(String),
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

    pub(crate) fn render(&self, facts: &RequestFacts<'_>) -> String {
        self.0.iter().map(|part| part.value(facts)).collect()
    }

    /// Length of [`render`](Self::render) in bytes, without rendering.
    pub(crate) fn rendered_bytes(&self, facts: &RequestFacts<'_>) -> usize {
        self.0.iter().map(|part| part.value(facts).len()).fold(0, usize::saturating_add)
    }

    /// Minimum length in bytes.
    pub(crate) fn literal_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text.len(),
                Part::LastUser | Part::LastResult | Part::InLastResult(_) | Part::Turn => 0,
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
            _ if name.starts_with("last_result/") => {
                Ok(Self::InLastResult(name["last_result".len()..].to_owned()))
            }
            _ => Err(format!(
                "unknown placeholder `{{{{{name}}}}}`, expected one of `{{{{last_user}}}}`, \
                 `{{{{last_result}}}}`, `{{{{last_result/…}}}}`, `{{{{turn}}}}`"
            )),
        }
    }

    fn value<'a>(&'a self, facts: &'a RequestFacts<'_>) -> Cow<'a, str> {
        match self {
            Self::Literal(text) => text.into(),
            Self::LastUser => facts.last_user.as_deref().unwrap_or_default().into(),
            Self::LastResult => {
                facts.last_result.as_ref().map_or("", |result| result.text.as_str()).into()
            }
            Self::InLastResult(pointer) => {
                let text = facts.last_result.as_ref().map_or("", |result| result.text.as_str());
                inside(text, pointer).into()
            }
            Self::Turn => facts.turn.to_string().into(),
        }
    }
}

/// The value at a JSON pointer: a string as it is, anything else as JSON; empty where there is no
/// value.
fn inside(text: &str, pointer: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let found = value.as_ref().and_then(|value| value.pointer(pointer));
    found
        .map(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn a_json_pointer_gives_a_string_or_json_or_nothing() {
        let text = r#"{"task_ids":["a","b"],"result":{"content":{"n":1}},"a/b":"slash"}"#;
        assert_eq!(inside(text, "/task_ids/1"), "b");
        assert_eq!(inside(text, "/result/content"), r#"{"n":1}"#);
        assert_eq!(inside(text, "/a~1b"), "slash");
        for nothing in ["/task_ids/2", "/no", "/task_ids/x"] {
            assert_eq!(inside(text, nothing), "");
        }
        assert_eq!(inside("no JSON", "/a"), "");
    }
}
