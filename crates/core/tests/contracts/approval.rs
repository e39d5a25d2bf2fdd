//! Approvals: questions to a person, and what each answer means.

use antiphon_core::{Approval, ApprovalStatus, Decision, TaskId};
use serde_json::json;

use crate::specimen::{approval_decided, approval_requested};
use crate::{at, both_ways};

fn asked() -> Approval {
    let task_id = TaskId::parse("t1").unwrap();
    let asked = Approval::requested(task_id, &approval_requested(), at("2026-02-18T12:00:00Z"));
    assert_eq!(asked.boot_until, approval_requested().boot_until);
    // No caller on another machine can use it.
    Approval { boot_until: None, ..asked }
}

#[test]
fn a_decision_allows_grants_and_ends_in_a_status() {
    use ApprovalStatus::{Allowed, Denied, Expired};
    for (decision, allows, grants_rule, status) in [
        (Decision::AllowOnce, true, false, Allowed),
        (Decision::AllowTask, true, true, Allowed),
        (Decision::AllowAlways, true, true, Allowed),
        (Decision::Deny, false, false, Denied),
        (Decision::Expire, false, false, Expired),
    ] {
        assert_eq!(
            (decision.allows(), decision.grants_rule(), ApprovalStatus::from(decision)),
            (allows, grants_rule, status),
            "{decision:?}"
        );
    }
}

#[test]
fn an_unanswered_approval_is_pending() {
    both_ways(
        &asked(),
        &json!({
            "approval_id": "a1", "task_id": "t1", "tool_call_id": "tc_1", "tool_name": "bash",
            "arguments": {"command": "git push"}, "reason": "it writes to a remote",
            "rule": "bash(git push *)", "asked_at": "2026-02-18T12:00:00Z",
            "expires_at": "2026-02-18T13:00:00Z", "status": "pending"
        }),
    );
}

#[test]
fn an_answer_is_kept_with_who_gave_it_and_when() {
    let mut approval = asked();
    approval.decide(&approval_decided(), at("2026-02-18T12:30:00Z"));
    let expected = Approval {
        status: ApprovalStatus::Denied,
        decision: Some(Decision::Deny),
        by: Some("user".to_owned()),
        decided_at: Some(at("2026-02-18T12:30:00Z")),
        ..asked()
    };
    assert_eq!(approval, expected);
    both_ways(
        &approval,
        &json!({
            "approval_id": "a1", "task_id": "t1", "tool_call_id": "tc_1", "tool_name": "bash",
            "arguments": {"command": "git push"}, "reason": "it writes to a remote",
            "rule": "bash(git push *)", "asked_at": "2026-02-18T12:00:00Z",
            "expires_at": "2026-02-18T13:00:00Z", "status": "denied", "decision": "deny",
            "by": "user", "decided_at": "2026-02-18T12:30:00Z"
        }),
    );
}
