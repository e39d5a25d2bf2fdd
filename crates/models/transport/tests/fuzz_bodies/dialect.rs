//! Invalid streams for any dialect: its own events dropped, moved, repeated, changed or truncated,
//! and texts that are not events. The unit tests of the providers include this file, because their
//! dialects are private.

use antiphon_core::{Cancel, MessageStream, Piece, ProviderError, StreamEvent};
use antiphon_model_transport::Dialect;
use chrono::DateTime;
use futures_util::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Name and data of a server-sent event.
pub(crate) type Event = (String, String);

#[derive(Debug, Clone)]
enum Edit {
    Drop(Index),
    Swap(Index, Index),
    Insert(Index, Event),
}

/// One of the recorded streams with a few faults.
pub(crate) fn mangled(recorded: &[&str]) -> impl Strategy<Value = Vec<Event>> + use<> {
    let streams: Vec<Vec<Event>> = recorded.iter().map(|stream| events(stream)).collect();
    let event = select(streams.concat());
    let stranger = prop_oneof![
        8 => event.clone(),
        8 => (event.clone(), any::<Index>(), odd()).prop_map(changed),
        1 => (event, any::<Index>()).prop_map(cut_short),
        1 => (any::<String>(), any::<String>()),
    ];
    let edit = prop_oneof![
        any::<Index>().prop_map(Edit::Drop),
        any::<(Index, Index)>().prop_map(|(one, other)| Edit::Swap(one, other)),
        (any::<Index>(), stranger).prop_map(|(at, event)| Edit::Insert(at, event)),
    ];
    (select(streams), prop::collection::vec(edit, 0..8)).prop_map(|(mut stream, edits)| {
        for edit in edits {
            edit.apply(&mut stream);
        }
        stream
    })
}

/// Parses a stream like the transport and assembles its message. Nothing panics, and the message
/// contains only complete calls.
pub(crate) fn survives(dialect: impl Dialect, stream: &[Event]) -> Result<(), TestCaseError> {
    let wire = stream::iter(pieces(dialect, stream)).boxed();
    let mut answer = MessageStream::new(wire, Cancel::never(), DateTime::UNIX_EPOCH);
    let mut ended = Vec::new();
    while let Ok(Some(event)) = answer.next().now_or_never().expect("it is all there") {
        if let StreamEvent::ToolCallEnd { call } = event {
            ended.push(call);
        }
    }
    let message = answer.message().expect("it was read");
    let mut calls: Vec<_> = message.tool_calls().cloned().collect();
    for list in [&mut calls, &mut ended] {
        list.sort_by(|a, b| a.id.cmp(&b.id));
    }
    prop_assert_eq!(calls, ended);
    Ok(())
}

fn pieces(mut dialect: impl Dialect, stream: &[Event]) -> Vec<Result<Piece, ProviderError>> {
    let mut answer = Vec::new();
    for (name, data) in stream {
        let mut said = Vec::new();
        if let Err(error) = dialect.event(name, data, &mut said) {
            answer.push(Err(error));
            return answer;
        }
        answer.extend(said.into_iter().map(Ok));
    }
    let mut last = Vec::new();
    let end = dialect.end(&mut last);
    answer.extend(last.into_iter().map(Ok).chain(end.err().map(Err)));
    answer
}

fn events(recorded: &str) -> Vec<Event> {
    let mut name = "message".to_owned();
    let mut events = Vec::new();
    for line in recorded.lines() {
        if let Some(next) = line.strip_prefix("event: ") {
            next.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((name.clone(), data.to_owned()));
        }
    }
    events
}

impl Edit {
    fn apply(self, stream: &mut Vec<Event>) {
        let length = stream.len();
        match self {
            Self::Insert(at, event) => stream.insert(at.index(length + 1), event),
            Self::Drop(_) | Self::Swap(..) if length == 0 => {}
            Self::Drop(at) => drop(stream.remove(at.index(length))),
            Self::Swap(one, other) => stream.swap(one.index(length), other.index(length)),
        }
    }
}

/// A value of an unexpected type, nearly everywhere.
fn odd() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(u64::MAX),
        json!(0.5),
        json!(""),
        json!("{\"a\":"),
        json!([]),
        json!([null, "a"]),
        json!({}),
        json!({"type": "a", "text": "b", "id": "c"}),
    ])
}

/// The event with one of its values replaced.
fn changed(((name, data), at, odd): (Event, Index, Value)) -> Event {
    let Ok(mut value) = serde_json::from_str::<Value>(&data) else {
        return (name, data);
    };
    let mut left = at.index(count(&value));
    replace(&mut value, &mut left, &odd);
    (name, value.to_string())
}

fn count(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    1 + inside
}

/// Replaces the value after `left` others by `odd`.
fn replace(value: &mut Value, left: &mut usize, odd: &Value) -> bool {
    if *left == 0 {
        odd.clone_into(value);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, left, odd)),
        Value::Object(fields) => fields.values_mut().any(|field| replace(field, left, odd)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn cut_short(((name, data), at): (Event, Index)) -> Event {
    let ends: Vec<usize> = data.char_indices().map(|(end, _)| end).collect();
    let end = ends.get(at.index(ends.len().max(1))).copied().unwrap_or_default();
    (name, data[..end].to_owned())
}
