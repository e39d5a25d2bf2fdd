//! The domain's error, the error body of the API and the health body.

use std::collections::BTreeMap;

use antiphon_core::{AgentState, DomainError, ErrorCode, ErrorResponse, HealthState, HealthStatus};
use serde_json::json;

use crate::{both_ways, ten};

fn every_domain_error() -> [(DomainError, &'static str, ErrorCode); 3] {
    [
        (
            DomainError::InvalidStateTransition {
                from: AgentState::Idle,
                to: AgentState::Reflecting,
            },
            "invalid state transition from idle to reflecting",
            ErrorCode::InvalidStateTransition,
        ),
        (
            DomainError::InvalidMessage { reason: "too odd".to_owned() },
            "invalid message: too odd",
            ErrorCode::InvalidMessage,
        ),
        (
            DomainError::DomainViolation { rule: "one at a time".to_owned() },
            "domain rule violated: one at a time",
            ErrorCode::DomainViolation,
        ),
    ]
}

#[test]
fn a_domain_error_says_what_was_broken_and_has_a_code() {
    for (error, message, code) in every_domain_error() {
        assert_eq!(error.to_string(), message);
        assert_eq!(error.code(), code);
        assert_eq!(
            ErrorResponse::from(&error),
            ErrorResponse { code, message: message.to_owned(), details: None }
        );
        let source: &dyn std::error::Error = &error.clone();
        assert!(source.source().is_none());
    }
}

#[test]
fn an_error_body_has_the_documented_json() {
    both_ways(
        &ErrorResponse {
            code: ErrorCode::InvalidRequest,
            message: "Invalid request format".to_owned(),
            details: Some(BTreeMap::from([
                ("field".to_owned(), "messages".to_owned()),
                ("reason".to_owned(), "Cannot be empty".to_owned()),
            ])),
        },
        &json!({
            "code": "INVALID_REQUEST",
            "message": "Invalid request format",
            "details": {"field": "messages", "reason": "Cannot be empty"}
        }),
    );
}

#[test]
fn empty_details_are_not_written() {
    let details = Some(BTreeMap::new());
    let error = ErrorResponse { code: ErrorCode::NotFound, message: "gone".to_owned(), details };
    assert_eq!(json!(error), json!({"code": "NOT_FOUND", "message": "gone"}));
}

#[test]
fn an_error_body_without_details_has_no_such_field() {
    both_ways(
        &ErrorResponse {
            code: ErrorCode::NotFound,
            message: "no such task".to_owned(),
            details: None,
        },
        &json!({"code": "NOT_FOUND", "message": "no such task"}),
    );
}

#[test]
fn a_health_body_has_the_documented_json() {
    for (status, word) in [
        (HealthState::Healthy, "healthy"),
        (HealthState::Ready, "ready"),
        (HealthState::Alive, "alive"),
        (HealthState::Unhealthy, "unhealthy"),
    ] {
        both_ways(
            &HealthStatus { status, timestamp: ten(), problems: Vec::new() },
            &json!({"status": word, "timestamp": "2025-01-20T10:00:00Z"}),
        );
    }
}
