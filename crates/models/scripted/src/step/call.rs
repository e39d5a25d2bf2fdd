//! A scripted tool call. Its arguments are a TOML table, whose strings may contain placeholders, or
//! a text that is kept byte for byte and need not be JSON. Dates and numbers that JSON does not
//! have are refused.

use serde::Deserialize;
use serde_json::{Map, Number, Value as Json};
use toml::{Table, Value as Toml};

use crate::request_facts::RequestFacts;
use crate::template::Template;

/// A tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "CallWire")]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The id on the wire; may repeat another or be invalid on purpose.
    pub(crate) id: Option<String>,
    pub(crate) arguments: Arguments,
    pub(crate) signature: Option<String>,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arguments {
    Object(Argument),
    /// Sent unchanged.
    Raw(String),
}

/// A value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Text(Template),
    /// A number or a boolean.
    Fixed(Json),
    List(Vec<Argument>),
    /// In the order of the script.
    Object(Vec<(String, Argument)>),
}

impl Arguments {
    /// The arguments as text.
    pub(crate) fn render(&self, facts: &RequestFacts<'_>) -> String {
        match self {
            Self::Object(object) => object.render(facts).to_string(),
            Self::Raw(text) => text.clone(),
        }
    }

    /// Number of bytes that [`render`](Self::render) takes from the request and the script, before
    /// JSON quotes and escapes.
    pub(crate) fn rendered_bytes(&self, facts: &RequestFacts<'_>) -> usize {
        match self {
            Self::Object(object) => object.rendered_bytes(facts),
            Self::Raw(text) => text.len(),
        }
    }
}

impl Argument {
    fn render(&self, facts: &RequestFacts<'_>) -> Json {
        match self {
            Self::Text(text) => Json::String(text.render(facts)),
            Self::Fixed(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.render(facts)).collect(),
            Self::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), value.render(facts)))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    fn rendered_bytes(&self, facts: &RequestFacts<'_>) -> usize {
        let sum = |bytes: &mut dyn Iterator<Item = usize>| bytes.fold(0, usize::saturating_add);
        match self {
            Self::Text(text) => text.rendered_bytes(facts),
            Self::Fixed(_) => 0,
            Self::List(items) => sum(&mut items.iter().map(|item| item.rendered_bytes(facts))),
            Self::Object(fields) => sum(&mut fields
                .iter()
                .map(|(key, value)| key.len().saturating_add(value.rendered_bytes(facts)))),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallWire {
    name: String,
    id: Option<String>,
    arguments: Option<Table>,
    arguments_json: Option<String>,
    signature: Option<String>,
}

impl TryFrom<CallWire> for Call {
    type Error = String;

    fn try_from(wire: CallWire) -> Result<Self, String> {
        let arguments = match (wire.arguments, wire.arguments_json) {
            (Some(_), Some(_)) => {
                return Err(
                    "a call has either `arguments` or `arguments_json`, not both".to_owned()
                );
            }
            (None, Some(text)) => Arguments::Raw(text),
            (table, None) => {
                Arguments::Object(Argument::try_from(Toml::Table(table.unwrap_or_default()))?)
            }
        };
        Ok(Self { name: wire.name, id: wire.id, arguments, signature: wire.signature })
    }
}

impl TryFrom<Toml> for Argument {
    type Error = String;

    fn try_from(value: Toml) -> Result<Self, String> {
        Ok(match value {
            Toml::String(text) => Self::Text(Template::parse(&text)?),
            Toml::Integer(number) => Self::Fixed(number.into()),
            Toml::Float(number) => Self::Fixed(
                Number::from_f64(number)
                    .ok_or_else(|| {
                        format!("JSON has no number `{number}`: use a string or `arguments_json`")
                    })?
                    .into(),
            ),
            Toml::Boolean(value) => Self::Fixed(value.into()),
            Toml::Datetime(date) => {
                return Err(format!("JSON has no dates: write \"{date}\" as a string"));
            }
            Toml::Array(items) => {
                Self::List(items.into_iter().map(Self::try_from).collect::<Result<_, _>>()?)
            }
            Toml::Table(fields) => Self::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::try_from(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }
}
