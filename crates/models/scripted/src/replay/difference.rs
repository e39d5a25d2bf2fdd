//! Finds where two requests differ.

use std::fmt;

use serde_json::{Map, Value};

/// Longest excerpt of a value, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// The first difference between a request and a recorded one.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    /// The value at this JSON pointer; `None` where there is none.
    Value { pointer: String, recorded: Option<Value>, requested: Option<Value> },
    /// The values are equal but serialized differently.
    Spelling { byte: usize },
}

impl Difference {
    /// The difference to the recorded request with the longest common prefix.
    pub(super) fn to_nearest<'a>(
        recorded: impl Iterator<Item = &'a str>,
        requested: &str,
    ) -> Option<Self> {
        let common =
            |text: &str| text.bytes().zip(requested.bytes()).take_while(|(a, b)| a == b).count();
        // Of several with the same prefix, the first.
        let (nearest, byte) = recorded.fold(None, |best, text| match (best, common(text)) {
            (Some((_, longest)), bytes) if bytes <= longest => best,
            (_, bytes) => Some((text, bytes)),
        })?;
        let values = serde_json::from_str(nearest).ok().zip(serde_json::from_str(requested).ok());
        let found = values.and_then(|(recorded, requested)| first(&recorded, &requested, ""));
        Some(found.unwrap_or(Self::Spelling { byte }))
    }
}

fn first(recorded: &Value, requested: &Value, pointer: &str) -> Option<Difference> {
    match (recorded, requested) {
        (Value::Object(recorded), Value::Object(requested)) => {
            in_objects(recorded, requested, pointer)
        }
        (Value::Array(recorded), Value::Array(requested)) => {
            let length = recorded.len().max(requested.len());
            (0..length).find_map(|index| {
                let pointer = format!("{pointer}/{index}");
                between(recorded.get(index), requested.get(index), pointer)
            })
        }
        (recorded, requested) if recorded == requested => None,
        (recorded, requested) => Some(Difference::Value {
            pointer: pointer.to_owned(),
            recorded: Some(recorded.clone()),
            requested: Some(requested.clone()),
        }),
    }
}

/// Keys in the order in which they are written, of both objects.
fn in_objects(
    recorded: &Map<String, Value>,
    requested: &Map<String, Value>,
    pointer: &str,
) -> Option<Difference> {
    let mut rest = requested.keys().filter(|key| !recorded.contains_key(*key)).peekable();
    let place = |key: &String| requested.keys().position(|other| other == key);
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
        between(recorded.get(key), requested.get(key), format!("{pointer}/{escaped}"))
    })
}

fn between(
    recorded: Option<&Value>,
    requested: Option<&Value>,
    pointer: String,
) -> Option<Difference> {
    match (recorded, requested) {
        (Some(recorded), Some(requested)) => first(recorded, requested, &pointer),
        (recorded, requested) => {
            let (recorded, requested) = (recorded.cloned(), requested.cloned());
            Some(Difference::Value { pointer, recorded, requested })
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { pointer, recorded, requested } => {
                let (recorded, requested) = (shown(recorded.as_ref()), shown(requested.as_ref()));
                let same =
                    recorded.chars().zip(requested.chars()).take_while(|(a, b)| a == b).count();
                let (recorded, requested) = (excerpt(&recorded, same), excerpt(&requested, same));
                write!(f, "at {pointer}: recorded {recorded}, asked {requested}")
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
