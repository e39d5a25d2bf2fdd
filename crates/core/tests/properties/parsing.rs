//! Every input is read or refused; nothing panics, and a value that was read means the same when
//! it is written and read again.

use antiphon_core::{
    ChatCompletionRequest, Event, Interaction, Invocation, Message, OrchestratorRequest, RawJson,
    Request, SilentIntents, classify, render, sendable,
};
use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::any_event::event;
use crate::any_exchange::{chat, control, invocation};
use crate::any_json::{familiar, value};
use crate::config;

/// Reads bytes as a `T`; writes and reads what was read once more.
fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let text = serde_json::to_string(&value).unwrap();
    let again: T = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    Some(value)
}

/// Tries every parser, and what stands behind it.
fn try_all(bytes: &[u8]) {
    let now = DateTime::from_timestamp(1_737_367_200, 0).unwrap();
    if let Some(message) = read::<Message>(bytes) {
        let _ = sendable(&[message.into()]);
    }
    if let Some(interaction) = read::<Interaction>(bytes) {
        let _ = render(&interaction);
        let _ = classify(interaction, &SilentIntents::default());
    }
    let _ = read::<Event>(bytes);
    let _ = read::<Request>(bytes);
    let _ = read::<RawJson>(bytes);
    let _ = read::<Invocation>(bytes).map(Invocation::validate);
    let _ = read::<OrchestratorRequest>(bytes).map(|request| request.validate());
    let _ = read::<ChatCompletionRequest>(bytes).map(|request| request.into_request(now));
}

/// Also from a value in memory, which is another path through `serde`.
fn try_value(value: &Value) {
    try_all(value.to_string().as_bytes());
    let _ = Message::deserialize(value);
    let _ = Event::deserialize(value);
    let _ = Interaction::deserialize(value);
    let _ = Invocation::deserialize(value);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_json_makes_a_parser_panic(value in value()) {
        try_value(&value);
    }

    #[test]
    fn no_json_in_the_words_of_the_contracts_makes_a_parser_panic(value in familiar()) {
        try_value(&value);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in vec(any::<u8>(), 0..256)) {
        try_all(&bytes);
    }

    #[test]
    fn no_cut_or_flipped_byte_makes_a_parser_panic(
        event in event(), cut in any::<prop::sample::Index>(), flip in 1_u8..,
    ) {
        let mut bytes = serde_json::to_vec(&event).unwrap();
        let place = cut.index(bytes.len());
        try_all(&bytes[..place]);
        bytes[place] ^= flip;
        try_all(&bytes);
    }

    #[test]
    fn validation_is_total(chat in chat(), control in control(), invocation in invocation()) {
        let now = DateTime::from_timestamp(1_737_367_200, 0).unwrap();
        let _ = chat.into_request(now);
        let _ = control.validate();
        if let Ok(valid) = invocation.clone().validate() {
            prop_assert_eq!(valid.into_inner(), invocation);
        }
    }
}
