//! The rules a canonical message and a chat request must keep, each at its edge.

use std::collections::BTreeMap;

use antiphon_core::{
    CanonicalMessage, ChatCompletionRequest, DomainError, MessageId, Request, Role, Temperature,
    TemperatureError,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::{at, refusal, ten};

fn dated(timestamp: DateTime<Utc>) -> CanonicalMessage {
    CanonicalMessage {
        id: MessageId::new(),
        role: Role::User,
        content: "hi".to_owned(),
        timestamp,
        metadata: BTreeMap::new(),
    }
}

fn asking(message: CanonicalMessage) -> ChatCompletionRequest {
    ChatCompletionRequest {
        messages: vec![message],
        model: None,
        temperature: None,
        max_tokens: None,
        stream: false,
    }
}

fn invalid<T>(reason: &str) -> Result<T, DomainError> {
    Err(DomainError::InvalidMessage { reason: reason.to_owned() })
}

#[test]
fn a_timestamp_may_be_an_hour_ahead_and_not_a_millisecond_more() {
    let now = ten();
    let edge = now + TimeDelta::hours(1);
    assert_eq!(dated(edge).validate_at(now), Ok(()));
    assert_eq!(
        dated(edge + TimeDelta::milliseconds(1)).validate_at(now),
        invalid("`timestamp` is more than 1 hour in the future")
    );
    assert_eq!(
        dated(edge + TimeDelta::nanoseconds(1)).validate_at(now),
        invalid("`timestamp` is more than 1 hour in the future")
    );
}

#[test]
fn a_timestamp_may_be_a_hundred_years_back_and_not_a_millisecond_more() {
    for (now, edge) in [
        ("2025-01-20T10:00:00Z", "1925-01-20T10:00:00Z"),
        ("2024-02-29T10:00:00Z", "1924-02-29T10:00:00Z"),
        ("2000-02-29T10:00:00Z", "1900-02-28T10:00:00Z"),
    ] {
        let (now, edge) = (at(now), at(edge));
        assert_eq!(dated(edge).validate_at(now), Ok(()));
        assert_eq!(
            dated(edge - TimeDelta::milliseconds(1)).validate_at(now),
            invalid("`timestamp` is more than 100 years in the past")
        );
    }
}

#[test]
fn the_farthest_timestamps_are_refused_without_a_panic() {
    assert_eq!(
        dated(DateTime::<Utc>::MAX_UTC).validate_at(ten()),
        invalid("`timestamp` is more than 1 hour in the future")
    );
    assert_eq!(
        dated(DateTime::<Utc>::MIN_UTC).validate_at(ten()),
        invalid("`timestamp` is more than 100 years in the past")
    );
}

#[test]
fn blank_content_is_refused() {
    for content in ["", " ", "\n\t", "\u{2003}"] {
        let message = CanonicalMessage { content: content.to_owned(), ..dated(ten()) };
        assert_eq!(message.validate_at(ten()), invalid("`content` must not be blank"));
        assert_eq!(CanonicalMessage::validate(&message), invalid("`content` must not be blank"));
    }
}

#[test]
fn the_clock_on_the_wall_is_asked_when_no_other_is_given() {
    let fresh = dated(Utc::now());
    assert_eq!(CanonicalMessage::validate(&fresh), Ok(()));
    assert_eq!(fresh.validate_self(), Ok(()));
    let ahead = dated(Utc::now() + TimeDelta::hours(2));
    assert_eq!(ahead.validate_self(), invalid("`timestamp` is more than 1 hour in the future"));
    let ancient = dated(at("1800-01-01T00:00:00Z"));
    assert_eq!(
        CanonicalMessage::validate(&ancient),
        invalid("`timestamp` is more than 100 years in the past")
    );
}

#[test]
fn a_temperature_is_a_number_from_zero_to_two() {
    for value in [0.0, -0.0, f64::MIN_POSITIVE, 0.7, 1.0, 2.0] {
        assert_eq!(Temperature::new(value).map(Temperature::get), Ok(value));
    }
    for value in
        [2.0001, 2.0_f64.next_up(), 0.0_f64.next_down(), -1.0, f64::INFINITY, f64::NEG_INFINITY]
    {
        assert_eq!(Temperature::new(value), Err(TemperatureError { found: value }));
    }
    let error = Temperature::new(f64::NAN).unwrap_err();
    assert!(error.found.is_nan());
    assert_eq!(error.to_string(), "`temperature` must be from 0 to 2, not NaN");
}

#[test]
fn a_chat_request_is_checked_for_its_temperature() {
    for (value, reason) in [
        (0.0, None),
        (-0.0, None),
        (2.0, None),
        (2.0001, Some("`temperature` must be from 0 to 2, not 2.0001")),
        (-0.1, Some("`temperature` must be from 0 to 2, not -0.1")),
        (f64::NAN, Some("`temperature` must be from 0 to 2, not NaN")),
        (f64::INFINITY, Some("`temperature` must be from 0 to 2, not inf")),
    ] {
        let request = ChatCompletionRequest { temperature: Some(value), ..asking(dated(ten())) };
        let found =
            request.into_request(ten()).map(|request| request.temperature.map(Temperature::get));
        match reason {
            None => assert_eq!(found, Ok(Some(value))),
            Some(reason) => assert_eq!(found, invalid(reason)),
        }
    }
}

#[test]
fn a_chat_request_is_checked_for_its_token_limit() {
    for (value, expected) in [
        (0, invalid("`max_tokens` must be more than 0")),
        (1, Ok(Some(1))),
        (u32::MAX, Ok(Some(u32::MAX))),
    ] {
        let request = ChatCompletionRequest { max_tokens: Some(value), ..asking(dated(ten())) };
        let found = request
            .into_request(ten())
            .map(|request: Request| request.max_tokens.map(std::num::NonZero::get));
        assert_eq!(found, expected);
    }
    for number in [json!(-1), json!(4_294_967_296_u64), json!(1.5)] {
        let error = refusal::<ChatCompletionRequest>(json!({"messages": [], "max_tokens": number}));
        assert!(error.ends_with("expected u32"), "{error}");
    }
}

#[test]
fn a_chat_request_without_messages_is_refused() {
    let request = ChatCompletionRequest { messages: vec![], ..asking(dated(ten())) };
    assert_eq!(request.into_request(ten()), invalid("`messages` must not be empty"));
}

#[test]
fn a_chat_request_says_which_of_its_messages_is_invalid() {
    let blank = CanonicalMessage { content: " ".to_owned(), ..dated(ten()) };
    let request =
        ChatCompletionRequest { messages: vec![dated(ten()), blank], ..asking(dated(ten())) };
    let reason = match request.into_request(ten()) {
        Err(DomainError::InvalidMessage { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason.starts_with("messages[1]: "), "{reason}");
    assert!(reason.ends_with("`content` must not be blank"), "{reason}");
}

#[test]
fn the_reason_of_an_invalid_chat_message_says_once_that_it_is_invalid() {
    let blank = CanonicalMessage { content: " ".to_owned(), ..dated(ten()) };
    assert_eq!(
        asking(blank).into_request(ten()),
        invalid("messages[0]: `content` must not be blank")
    );
}

#[test]
fn a_chat_request_of_system_messages_only_is_refused() {
    let scene = CanonicalMessage { role: Role::System, ..dated(ten()) };
    assert!(asking(scene).into_request(ten()).is_err());
}

#[test]
fn a_clock_at_the_end_of_time_does_not_panic() {
    let now = DateTime::<Utc>::MAX_UTC;
    assert_eq!(dated(now).validate_at(now), Ok(()));
}
