//! Identifiers.

use std::collections::{BTreeSet, HashSet};
use std::fmt::{Debug, Display};
use std::hash::Hash;

use antiphon_core::{AgentId, IdError, InteractionId, MessageId, SessionId, TaskId, ToolCallId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::{Uuid, Version};

use crate::{UUID, both_ways, read, refusal};

/// Everything a UUID newtype promises, in one place.
fn keeps_the_promises_of_a_uuid<T>(wrap: fn(Uuid) -> T, fresh: fn() -> T)
where
    T: From<Uuid> + Into<Uuid> + Default + Copy + Eq + Hash + Ord + Debug + Display,
    T: Serialize + DeserializeOwned,
{
    let uuid: Uuid = UUID.parse().unwrap();
    let id = wrap(uuid);
    both_ways(&id, &json!(UUID));
    assert_eq!(id.to_string(), UUID);
    assert_eq!(T::from(uuid), id);
    assert_eq!(Into::<Uuid>::into(id), uuid);
    let copy = id;
    assert_eq!(HashSet::from([id, copy]).len(), 1);

    for made in [fresh(), T::default()] {
        let uuid: Uuid = made.into();
        assert_eq!(uuid.get_version(), Some(Version::Random));
    }
    assert_ne!(fresh(), fresh());
    assert_ne!(T::default(), T::default());
}

#[test]
fn a_message_id_is_a_transparent_uuid() {
    keeps_the_promises_of_a_uuid(MessageId, MessageId::new);
}

#[test]
fn an_agent_id_is_a_transparent_uuid() {
    keeps_the_promises_of_a_uuid(AgentId, AgentId::new);
}

#[test]
fn an_interaction_id_is_a_transparent_uuid() {
    keeps_the_promises_of_a_uuid(InteractionId, InteractionId::new);
}

#[test]
fn a_uuid_of_any_version_and_case_is_read_and_written_in_one_form() {
    let id: MessageId = read(&json!(UUID.to_uppercase()).to_string());
    assert_eq!(id.to_string(), UUID);
}

#[test]
fn what_is_no_uuid_is_refused() {
    for text in ["", "123", "123e4567-e89b-12d3-a456-42661417400g"] {
        assert!(refusal::<MessageId>(json!(text)).starts_with("UUID parsing failed"));
    }
    assert_eq!(
        refusal::<AgentId>(json!(7)),
        "invalid type: integer `7`, expected a formatted UUID string"
    );
}

#[test]
fn a_text_identifier_is_kept_as_it_is() {
    let longest = "x".repeat(256);
    for text in ["t1", "tc_1", "session-id", "a/b:c", "日本", longest.as_str()] {
        let id = TaskId::parse(text).unwrap();
        assert_eq!(id.as_str(), text);
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id.clone()));
        both_ways(&id, &json!(text));
        both_ways(&SessionId::parse(text).unwrap(), &json!(text));
        both_ways(&ToolCallId::parse(text).unwrap(), &json!(text));
    }
}

#[test]
fn a_text_identifier_can_be_a_uuid() {
    let uuid: Uuid = UUID.parse().unwrap();
    assert_eq!(TaskId::from(uuid).as_str(), UUID);
    assert_eq!(SessionId::from(uuid).as_str(), UUID);
    assert_eq!(ToolCallId::from(uuid).as_str(), UUID);
}

#[test]
fn text_identifiers_sort_as_their_texts_do() {
    let ids: BTreeSet<TaskId> = ["b", "a", "b"].map(|id| TaskId::parse(id).unwrap()).into();
    let texts: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
    assert_eq!(texts, ["a", "b"]);
}

#[test]
fn a_text_identifier_that_breaks_a_rule_is_refused_with_the_rule() {
    let long = "x".repeat(257);
    let table = [
        ("", IdError::Empty, "an identifier must not be empty"),
        (
            long.as_str(),
            IdError::TooLong { bytes: 257 },
            "an identifier may have 256 bytes at most, this one has 257",
        ),
    ];
    for (text, error, message) in table {
        assert_eq!(TaskId::parse(text), Err(error.clone()));
        assert_eq!(error.to_string(), message);
        assert_eq!(refusal::<SessionId>(json!(text)), message);
    }
    for text in [" ", "a b", "a\n", "\t", "a\u{0}", "\u{7f}", "\u{85}", "\u{3000}"] {
        assert_eq!(ToolCallId::parse(text), Err(IdError::Unprintable));
        assert_eq!(
            refusal::<TaskId>(json!(text)),
            "an identifier must not contain white space or control characters"
        );
    }
}
