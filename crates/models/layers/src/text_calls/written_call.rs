//! A call as a model writes it: `{"name", "arguments"}`.
//!
//! The name may also be called `tool`, the arguments `parameters`, `input` or `args`, and all of it
//! may be inside of `function`. Arguments are kept byte for byte; missing ones are `{}`, and an
//! object that is encoded as a string is decoded. Any other text, or one with a tool that was not
//! offered, is not a call.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A call found in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenCall {
    pub(super) name: String,
    /// As JSON text.
    pub(super) arguments: String,
}

#[derive(Deserialize)]
struct CallWire<'a> {
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    name: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl WrittenCall {
    /// The calls of a text, if it consists of one call of these tools or a list of them.
    pub(super) fn all(text: &str, tools: &[String]) -> Option<Vec<Self>> {
        let text = text.trim();
        if text.starts_with('{') {
            return Some(vec![Self::one(text, tools)?]);
        }
        let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let calls: Vec<Self> =
            items.into_iter().map(|item| Self::one(item.get(), tools)).collect::<Option<_>>()?;
        (!calls.is_empty()).then_some(calls)
    }

    fn one(text: &str, tools: &[String]) -> Option<Self> {
        let mut call: CallWire<'_> = object(text)?;
        if let Some(function) = call.function.filter(|function| function.get().starts_with('{')) {
            call = object(function.get())?;
        }
        let name = call.name.or(call.tool).filter(|name| tools.contains(name))?;
        let arguments = call.arguments.or(call.parameters).or(call.input).or(call.args);
        let arguments = arguments.map_or("{}", RawValue::get);
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.to_owned());
        Some(Self { name, arguments })
    }
}

/// Only from an object: `serde` would also accept a list.
fn object(text: &str) -> Option<CallWire<'_>> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok())?
}
