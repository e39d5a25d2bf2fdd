//! The words of every closed set: each is read and written as its contract says, and any other
//! word is refused with a message that names it and the ones allowed.

use std::fmt::Debug;
use std::num::NonZeroU32;

use antiphon_core::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{both_ways, refusal};

/// Asserts that these are the words of `T`, in the order in which a refusal lists them.
#[track_caller]
fn words<T: Serialize + DeserializeOwned + PartialEq + Debug>(table: &[(T, &str)]) {
    for (value, word) in table {
        both_ways(value, &json!(word));
    }
    let all: Vec<&str> = table.iter().map(|(_, word)| *word).collect();
    for unknown in ["banana", "", "Idle", "USER", " user"] {
        assert_eq!(refusal::<T>(json!(unknown)), unknown_variant(unknown, &all));
    }
}

/// Asserts that the field `tag` of a `T` knows these words and no other.
#[track_caller]
fn tags<T: DeserializeOwned + Debug>(tag: &str, words: &[&str]) {
    for unknown in ["banana", ""] {
        assert_eq!(refusal::<T>(json!({tag: unknown})), unknown_variant(unknown, words));
    }
    assert_eq!(refusal::<T>(json!({})), format!("missing field `{tag}`"));
}

fn unknown_variant(found: &str, words: &[&str]) -> String {
    let expected = match words {
        [first, second] => format!("`{first}` or `{second}`"),
        _ => format!("one of `{}`", words.join("`, `")),
    };
    format!("unknown variant `{found}`, expected {expected}")
}

#[test]
fn a_role_is_one_of_three_words() {
    words(&[(Role::User, "user"), (Role::Assistant, "assistant"), (Role::System, "system")]);
}

#[test]
fn an_agent_state_is_one_of_four_words() {
    words(&[
        (AgentState::Idle, "idle"),
        (AgentState::Thinking, "thinking"),
        (AgentState::ToolCall, "toolcall"),
        (AgentState::Reflecting, "reflecting"),
    ]);
}

#[test]
fn a_health_state_is_one_of_four_words() {
    words(&[
        (HealthState::Healthy, "healthy"),
        (HealthState::Ready, "ready"),
        (HealthState::Alive, "alive"),
        (HealthState::Unhealthy, "unhealthy"),
    ]);
}

#[test]
fn an_error_code_is_in_upper_snake_case() {
    words(&[
        (ErrorCode::InvalidRequest, "INVALID_REQUEST"),
        (ErrorCode::Unauthorized, "UNAUTHORIZED"),
        (ErrorCode::Forbidden, "FORBIDDEN"),
        (ErrorCode::NotFound, "NOT_FOUND"),
        (ErrorCode::Conflict, "CONFLICT"),
        (ErrorCode::RateLimitExceeded, "RATE_LIMIT_EXCEEDED"),
        (ErrorCode::InternalError, "INTERNAL_ERROR"),
        (ErrorCode::ServiceUnavailable, "SERVICE_UNAVAILABLE"),
        (ErrorCode::InvalidStateTransition, "INVALID_STATE_TRANSITION"),
        (ErrorCode::InvalidMessage, "INVALID_MESSAGE"),
        (ErrorCode::DomainViolation, "DOMAIN_VIOLATION"),
    ]);
}

#[test]
fn a_context_scope_is_one_of_three_words_and_independent_unless_said() {
    words(&[
        (ContextScope::Independent, "independent"),
        (ContextScope::Inherited, "inherited"),
        (ContextScope::Shared, "shared"),
    ]);
    assert_eq!(ContextScope::default(), ContextScope::Independent);
}

#[test]
fn a_join_is_one_of_four_words_or_a_quorum_and_single_unless_said() {
    let quorum = |n| Join::Quorum { n: NonZeroU32::new(n).unwrap() };
    for (join, word) in [
        (Join::Single, "single"),
        (Join::All, "all"),
        (Join::Detached, "detached"),
        (Join::Any, "any"),
    ] {
        both_ways(&join, &json!(word));
        assert_eq!(join.as_str(), word);
    }
    both_ways(&quorum(2), &json!({"quorum": {"n": 2}}));
    both_ways(&quorum(u32::MAX), &json!({"quorum": {"n": u32::MAX}}));
    assert_eq!(quorum(2).as_str(), "quorum");
    assert_eq!(Join::default(), Join::Single);
    for unknown in ["banana", "", "Any", " all"] {
        assert_eq!(
            refusal::<Join>(json!(unknown)),
            unknown_variant(unknown, &["single", "all", "detached", "any", "quorum"])
        );
    }
}

#[test]
fn a_quorum_is_of_one_at_least_and_says_of_how_many() {
    for (join, reason) in [
        (json!("quorum"), "invalid type: unit variant, expected struct variant"),
        (json!({"quorum": {}}), "missing field `n`"),
        (json!({"quorum": {"n": 0}}), "invalid value: integer `0`, expected a nonzero u32"),
        (json!({"quorum": {"n": -1}}), "invalid value: integer `-1`, expected a nonzero u32"),
        (
            json!({"quorum": {"n": 4_294_967_296_u64}}),
            "invalid value: integer `4294967296`, expected a nonzero u32",
        ),
    ] {
        assert_eq!(refusal::<Join>(join), reason);
    }
}

#[test]
fn a_task_status_is_one_of_six_words() {
    words(&[
        (TaskStatus::Pending, "pending"),
        (TaskStatus::Running, "running"),
        (TaskStatus::InputRequired, "input_required"),
        (TaskStatus::Completed, "completed"),
        (TaskStatus::Failed, "failed"),
        (TaskStatus::Canceled, "canceled"),
    ]);
}

#[test]
fn a_response_status_is_one_of_three_words() {
    words(&[
        (ResponseStatus::Accepted, "accepted"),
        (ResponseStatus::Completed, "completed"),
        (ResponseStatus::Failed, "failed"),
    ]);
}

#[test]
fn a_handling_mode_is_queue_or_steer_and_queue_unless_said() {
    words(&[(HandlingMode::Queue, "queue"), (HandlingMode::Steer, "steer")]);
    assert_eq!(HandlingMode::default(), HandlingMode::Queue);
}

#[test]
fn a_render_class_is_one_of_ten_words() {
    words(&[
        (RenderClass::UserPrompt, "user_prompt"),
        (RenderClass::PeerMessage, "peer_message"),
        (RenderClass::PeerRequest, "peer_request"),
        (RenderClass::PeerResponse, "peer_response"),
        (RenderClass::ExternalEvent, "external_event"),
        (RenderClass::FlowStep, "flow_step"),
        (RenderClass::Continuation, "continuation"),
        (RenderClass::SystemNotice, "system_notice"),
        (RenderClass::ToolScopeNotice, "tool_scope_notice"),
        (RenderClass::OpsProgress, "ops_progress"),
    ]);
}

#[test]
fn a_salience_is_one_of_four_words_and_they_are_ordered() {
    words(&[
        (Salience::Background, "background"),
        (Salience::Normal, "normal"),
        (Salience::Important, "important"),
        (Salience::Urgent, "urgent"),
    ]);
    assert_eq!(Salience::default(), Salience::Normal);
    assert!(Salience::Background < Salience::Normal);
    assert!(Salience::Normal < Salience::Important);
    assert!(Salience::Important < Salience::Urgent);
}

#[test]
fn a_class_of_input_is_one_of_eleven_words() {
    words(&[
        (PeerInputClass::ActionableMessage, "actionable_message"),
        (PeerInputClass::ActionableRequest, "actionable_request"),
        (PeerInputClass::Response, "response"),
        (PeerInputClass::PeerLifecycleAdded, "peer_lifecycle_added"),
        (PeerInputClass::PeerLifecycleRetired, "peer_lifecycle_retired"),
        (PeerInputClass::PeerLifecycleUnwired, "peer_lifecycle_unwired"),
        (PeerInputClass::PeerLifecycleKickoffFailed, "peer_lifecycle_kickoff_failed"),
        (PeerInputClass::PeerLifecycleKickoffCancelled, "peer_lifecycle_kickoff_cancelled"),
        (PeerInputClass::SilentRequest, "silent_request"),
        (PeerInputClass::Ack, "ack"),
        (PeerInputClass::PlainEvent, "plain_event"),
    ]);
}

#[test]
fn a_stop_reason_is_one_of_six_words() {
    words(&[
        (StopReason::EndTurn, "end_turn"),
        (StopReason::Length, "length"),
        (StopReason::ToolUse, "tool_use"),
        (StopReason::Error, "error"),
        (StopReason::Aborted, "aborted"),
        (StopReason::Unknown, "unknown"),
    ]);
}

#[test]
fn an_effect_is_one_of_three_words_and_only_a_side_effect_is_not_run_again() {
    words(&[
        (Effect::ReadOnly, "read_only"),
        (Effect::Idempotent, "idempotent"),
        (Effect::SideEffect, "side_effect"),
    ]);
    assert!(Effect::ReadOnly.may_run_again());
    assert!(Effect::Idempotent.may_run_again());
    assert!(!Effect::SideEffect.may_run_again());
}

#[test]
fn a_decision_is_one_of_five_words() {
    words(&[
        (Decision::AllowOnce, "allow_once"),
        (Decision::AllowTask, "allow_task"),
        (Decision::AllowAlways, "allow_always"),
        (Decision::Deny, "deny"),
        (Decision::Expire, "expire"),
    ]);
}

#[test]
fn the_status_of_an_approval_is_one_of_five_words() {
    words(&[
        (ApprovalStatus::Pending, "pending"),
        (ApprovalStatus::Allowed, "allowed"),
        (ApprovalStatus::Denied, "denied"),
        (ApprovalStatus::Expired, "expired"),
        (ApprovalStatus::Void, "void"),
    ]);
}

#[test]
fn a_task_waits_for_an_approval_or_to_be_resumed_or_for_a_client_or_for_the_budget_its_model_its_peer_or_storage()
 {
    words(&[
        (WaitingFor::Approval, "approval"),
        (WaitingFor::Resume, "resume"),
        (WaitingFor::ToolResult, "tool_result"),
        (WaitingFor::Budget, "budget"),
        (WaitingFor::Model, "model"),
        (WaitingFor::Peer, "peer"),
        (WaitingFor::Storage, "storage"),
    ]);
}

#[test]
fn a_call_waits_for_any_task_or_for_all_and_for_all_unless_said() {
    words(&[(Awaiting::Any, "any"), (Awaiting::All, "all")]);
    assert_eq!(Awaiting::default(), Awaiting::All);
}

#[test]
fn an_agent_runs_in_our_own_loop() {
    both_ways(&Profile::Native, &json!("native"));
    assert_eq!(Profile::default(), Profile::Native);
    assert_eq!(refusal::<Profile>(json!("acp")), "unknown variant `acp`, expected `native`");
}

#[test]
fn a_model_is_paid_for_a_turn_for_a_compaction_or_for_an_answer_that_broke_off() {
    words(&[(Purpose::Compaction, "compaction"), (Purpose::Superseded, "superseded")]);
}

#[test]
fn a_tagged_set_knows_its_tags_and_no_other() {
    tags::<AgentRef>("type", &["named", "ad_hoc"]);
    tags::<ExecutorHint>("kind", &["auto", "force"]);
    tags::<Executor>("type", &["local", "remote"]);
    tags::<ToolPolicy>("kind", &["inherit", "exact", "none"]);
    tags::<InteractionContent>("type", &["message", "request", "response", "ack"]);
    tags::<InvocationResult>("kind", &["scalar", "vector", "task_ids"]);
}

#[test]
fn a_forced_executor_of_an_unknown_type_is_refused_with_the_types_there_are() {
    assert_eq!(
        refusal::<ExecutorHint>(json!({"kind": "force", "type": "cloud"})),
        "unknown variant `cloud`, expected `local` or `remote`"
    );
}

#[test]
fn a_tool_choice_is_a_word_or_names_a_tool() {
    both_ways(&ToolChoice::Auto, &json!("auto"));
    both_ways(&ToolChoice::None, &json!("none"));
    both_ways(&ToolChoice::Required, &json!("required"));
    both_ways(&ToolChoice::Named("read".to_owned()), &json!({"named": "read"}));
    assert_eq!(ToolChoice::default(), ToolChoice::Auto);
    assert_eq!(
        refusal::<ToolChoice>(json!("banana")),
        unknown_variant("banana", &["auto", "none", "required", "named"])
    );
}

#[test]
fn a_word_of_the_wrong_json_type_is_refused() {
    assert_eq!(refusal::<Role>(json!(1)), "invalid type: integer `1`, expected string or map");
    assert_eq!(refusal::<TaskStatus>(json!(null)), "invalid type: null, expected string or map");
}
