//! Finds where two requests differ.

use std::fmt;

use serde_json::{Map, Value};

/// Longest excerpt of a value, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// The first difference between a request and a recorded one.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    /// The value at this JSON pointer; `None` where there is none.
    Value { pointer: String, recorded: Option<Value>, asked: Option<Value> },
    /// The values are equal but serialized differently.
    Spelling { byte: usize },
}

impl Difference {
    /// The difference to the recorded request with the longest common prefix.
    pub(super) fn to_nearest<'a>(
        recorded: impl Iterator<Item = &'a str>,
        asked: &str,
    ) -> Option<Self> {
        let common =
            |text: &str| text.bytes().zip(asked.bytes()).take_while(|(a, b)| a == b).count();
        // Of several with the same prefix, the first.
        let (nearest, byte) = recorded.fold(None, |best, text| match (best, common(text)) {
            (Some((_, longest)), bytes) if bytes <= longest => best,
            (_, bytes) => Some((text, bytes)),
        })?;
        let values = serde_json::from_str(nearest).ok().zip(serde_json::from_str(asked).ok());
        let found = values.and_then(|(recorded, asked)| first(&recorded, &asked, ""));
        Some(found.unwrap_or(Self::Spelling { byte }))
    }
}

fn first(recorded: &Value, asked: &Value, pointer: &str) -> Option<Difference> {
    match (recorded, asked) {
        (Value::Object(recorded), Value::Object(asked)) => in_objects(recorded, asked, pointer),
        (Value::Array(recorded), Value::Array(asked)) => {
            let length = recorded.len().max(asked.len());
            (0..length).find_map(|index| {
                let pointer = format!("{pointer}/{index}");
                between(recorded.get(index), asked.get(index), pointer)
            })
        }
        (recorded, asked) if recorded == asked => None,
        (recorded, asked) => Some(Difference::Value {
            pointer: pointer.to_owned(),
            recorded: Some(recorded.clone()),
            asked: Some(asked.clone()),
        }),
    }
}

/// Keys in the order in which they are written, of both objects.
fn in_objects(
    recorded: &Map<String, Value>,
    asked: &Map<String, Value>,
    pointer: &str,
) -> Option<Difference> {
    let mut rest = asked.keys().filter(|key| !recorded.contains_key(*key)).peekable();
    let place = |key: &String| asked.keys().position(|other| other == key);
    let mut keys = Vec::new();
    for key in recorded.keys() {
        while let Some(only_asked) = rest.next_if(|only| place(only) < place(key)) {
            keys.push(only_asked);
        }
        keys.push(key);
    }
    keys.extend(rest);
    keys.into_iter().find_map(|key| {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        between(recorded.get(key), asked.get(key), format!("{pointer}/{escaped}"))
    })
}

fn between(recorded: Option<&Value>, asked: Option<&Value>, pointer: String) -> Option<Difference> {
    match (recorded, asked) {
        (Some(recorded), Some(asked)) => first(recorded, asked, &pointer),
        (recorded, asked) => {
            let (recorded, asked) = (recorded.cloned(), asked.cloned());
            Some(Difference::Value { pointer, recorded, asked })
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { pointer, recorded, asked } => {
                let (recorded, asked) = (shown(recorded.as_ref()), shown(asked.as_ref()));
                let same = recorded.chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
                let (recorded, asked) = (excerpt(&recorded, same), excerpt(&asked, same));
                write!(f, "at {pointer}: recorded {recorded}, asked {asked}")
            }
            Self::Spelling { byte } => {
                write!(f, "only in how its JSON is written, from byte {byte} on")
            }
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// The part of `text` around the character at `place`.
fn excerpt(text: &str, place: usize) -> String {
    let skipped = if place < EXCERPT_CHARS_MAX / 2 { 0 } else { place - EXCERPT_CHARS_MAX / 4 };
    let mut rest = text.chars().skip(skipped);
    let part: String = rest.by_ref().take(EXCERPT_CHARS_MAX).collect();
    let (before, behind) =
        (if skipped > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    format!("{before}{part}{behind}")
}
