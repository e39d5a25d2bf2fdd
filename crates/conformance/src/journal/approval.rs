//! Approvals.

use antiphon_core::port::{Append, ApprovalSelector, BootTime, Expected};
use antiphon_core::{
    Approval, ApprovalId, ApprovalRequested, ApprovalStatus, Decision, SessionId, TaskCreated,
    TaskStatus,
};
use chrono::TimeDelta;

use super::sample_events::{approval_id, decided, requested};
use super::test_journal::{TestJournal, at, draft, noon, status, task};
use crate::suite::{During as _, Finding, Outcome, equal};

pub(super) async fn an_approval_is_listed_as_it_was_requested(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let (asked_at, expires_at) =
        (noon() + TimeDelta::microseconds(7), noon() + TimeDelta::nanoseconds(3_600_000_000_007));
    let boot_until = Some(BootTime { boot_id: uuid::Uuid::from_u128(3), elapsed_ms: 5 });
    let expires = Some(expires_at);
    let request = ApprovalRequested { expires_at: expires, boot_until, ..requested(1)? };
    let ask = draft(&task(1), at(1), vec![request.clone().into()]);
    journal.write(Append { at: asked_at, ..ask }).await?;
    let expected = Approval {
        approval_id: approval_id(1)?,
        task_id: task(1),
        tool_call_id: request.tool_call_id,
        tool_name: request.tool_name,
        arguments: request.arguments,
        reason: request.reason,
        rule: request.rule,
        asked_at,
        expires_at: expires,
        boot_until,
        status: ApprovalStatus::Pending,
        decision: None,
        by: None,
        decided_at: None,
        question: None,
        answer: None,
    };
    for which in [
        ApprovalSelector::All,
        ApprovalSelector::Pending,
        ApprovalSelector::PendingIn(task(1)),
        ApprovalSelector::One(approval_id(1)?),
    ] {
        let found = journal.approvals_which(which, 10).await?;
        equal("the approval", &found, &vec![expected.clone()])?;
    }
    let found = journal.approvals_which(ApprovalSelector::One(approval_id(2)?), 10).await?;
    equal("an approval that was not requested", &found, &vec![])
}

pub(super) async fn approvals_are_listed_the_oldest_first(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
    }
    for (number, seq, approval) in [(2, 1, 3), (1, 1, 1), (2, 2, 2), (1, 2, 4)] {
        let ask = vec![requested(approval)?.into()];
        journal.write(draft(&task(number), at(seq), ask)).await?;
    }
    let expected = ids(&[3, 1, 2, 4])?;
    for which in [ApprovalSelector::All, ApprovalSelector::Pending] {
        equal("the approvals", &listed(&journal, which).await?, &expected)?;
    }
    Ok(())
}

/// Task 3 is below task 1, task 4 below task 3; task 2 is of another tree.
pub(super) async fn pending_approvals_are_found_by_the_root_of_their_tree(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    journal.create(&task(2)).await?;
    for (number, parent) in [(3, 1), (4, 3)] {
        let session = SessionId::parse("s").during("a session id")?;
        let child = TaskCreated {
            parent: Some(task(parent)),
            root: Some(task(1)),
            ..TaskCreated::new("scribe", session)
        };
        journal.write(draft(&task(number), Expected::NoTask, vec![child.into()])).await?;
    }
    for number in 1..=4 {
        let ask = vec![requested(number)?.into()];
        journal.write(draft(&task(number), at(1), ask)).await?;
    }
    let of = |number| ApprovalSelector::PendingIn(task(number));
    equal("those of the tree", &listed(&journal, of(1)).await?, &ids(&[1, 3, 4])?)?;
    equal("those of the other tree", &listed(&journal, of(2)).await?, &ids(&[2])?)?;
    equal("those of a task that is no root", &listed(&journal, of(3)).await?, &vec![])?;
    let answer = vec![decided(4, Decision::Deny, "ada")?.into()];
    journal.write(draft(&task(4), at(2), answer)).await?;
    equal("those that still wait", &listed(&journal, of(1)).await?, &ids(&[1, 3])?)
}

/// Tasks 1 and 3 are of one payer, task 2 of another, task 4 of the owner.
pub(super) async fn approvals_are_found_by_the_payer_of_their_task(
    journal: TestJournal,
) -> Outcome {
    for (number, payer) in [(1, Some("ada")), (2, Some("eve")), (3, Some("ada")), (4, None)] {
        let session = SessionId::parse("s").during("a session id")?;
        let payer = payer.map(str::to_owned);
        let created = TaskCreated { payer, ..TaskCreated::new("scribe", session) };
        journal.write(draft(&task(number), Expected::NoTask, vec![created.into()])).await?;
        let ask = vec![requested(number)?.into()];
        journal.write(draft(&task(number), at(1), ask)).await?;
    }
    let all = |payer: &str| ApprovalSelector::AllOf(payer.to_owned());
    let pending = |payer: &str| ApprovalSelector::PendingOf(payer.to_owned());
    for (payer, expected) in [("ada", vec![1, 3]), ("eve", vec![2]), ("bob", vec![])] {
        equal("those of the payer", &listed(&journal, all(payer)).await?, &ids(&expected)?)?;
        equal("those that wait", &listed(&journal, pending(payer)).await?, &ids(&expected)?)?;
    }
    let answer = vec![decided(1, Decision::Deny, "ada")?.into()];
    journal.write(draft(&task(1), at(2), answer)).await?;
    equal("decided ones stay", &listed(&journal, all("ada")).await?, &ids(&[1, 3])?)?;
    equal("but do not wait", &listed(&journal, pending("ada")).await?, &ids(&[3])?)
}

pub(super) async fn a_decision_ends_an_approval(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let answers = [
        (Decision::AllowOnce, ApprovalStatus::Allowed),
        (Decision::AllowTask, ApprovalStatus::Allowed),
        (Decision::AllowAlways, ApprovalStatus::Allowed),
        (Decision::Deny, ApprovalStatus::Denied),
        (Decision::Expire, ApprovalStatus::Expired),
    ];
    for (n, (decision, expected)) in (1..).zip(answers) {
        let seq = 2 * n - 1;
        journal.write(draft(&task(1), at(seq), vec![requested(n)?.into()])).await?;
        equal("who waits", &listed(&journal, ApprovalSelector::Pending).await?, &ids(&[n])?)?;
        let answer = draft(&task(1), at(seq + 1), vec![decided(n, decision, "ada")?.into()]);
        let when = noon() + TimeDelta::microseconds(9);
        journal.write(Append { at: when, ..answer }).await?;
        equal("who waits", &listed(&journal, ApprovalSelector::Pending).await?, &vec![])?;
        let found = one(&journal, n).await?;
        equal("its status", &found.status, &expected)?;
        equal("the answer", &found.decision, &Some(decision))?;
        let found = (found.by.as_deref(), found.decided_at);
        equal("who, and when", &found, &(Some("ada"), Some(when)))?;
    }
    Ok(())
}

/// A second decision is too late, and a decision in another task does not count.
pub(super) async fn an_approval_is_decided_once_and_in_its_own_task(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    journal.create(&task(2)).await?;
    journal.write(draft(&task(1), at(1), vec![requested(1)?.into()])).await?;
    let stray = vec![decided(1, Decision::AllowAlways, "eve")?.into()];
    journal.write(draft(&task(2), at(1), stray)).await?;
    equal("its status", &one(&journal, 1).await?.status, &ApprovalStatus::Pending)?;
    for (seq, decision, by) in [(2, Decision::Deny, "ada"), (3, Decision::AllowOnce, "eve")] {
        let answer = vec![decided(1, decision, by)?.into()];
        journal.write(draft(&task(1), at(seq), answer)).await?;
        let found = one(&journal, 1).await?;
        let found = (found.status, found.decision, found.by.as_deref());
        let expected = (ApprovalStatus::Denied, Some(Decision::Deny), Some("ada"));
        equal("the answer that counts", &found, &expected)?;
    }
    Ok(())
}

pub(super) async fn an_approval_that_is_requested_again_stays_the_first_one(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    journal.create(&task(2)).await?;
    journal.write(draft(&task(1), at(1), vec![requested(1)?.into()])).await?;
    let first = one(&journal, 1).await?;
    for number in 1..=2 {
        let again = ApprovalRequested { reason: "again".to_owned(), ..requested(1)? };
        let seq = if number == 1 { 2 } else { 1 };
        journal.write(draft(&task(number), at(seq), vec![again.into()])).await?;
    }
    let found = journal.approvals_which(ApprovalSelector::All, 10).await?;
    equal("the approvals", &found, &vec![first])
}

pub(super) async fn an_approval_is_void_when_its_task_ends_first(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
    }
    journal.write(draft(&task(1), at(1), vec![requested(1)?.into()])).await?;
    let answer = vec![requested(2)?.into(), decided(2, Decision::Deny, "ada")?.into()];
    journal.write(draft(&task(1), at(2), answer)).await?;
    journal.write(draft(&task(2), at(1), vec![requested(3)?.into()])).await?;
    journal.write(draft(&task(1), at(4), vec![status(TaskStatus::Canceled)])).await?;
    let found: Vec<_> =
        journal.approvals(10).await?.into_iter().map(|approval| approval.status).collect();
    let expected = vec![ApprovalStatus::Void, ApprovalStatus::Denied, ApprovalStatus::Pending];
    equal("what became of them", &found, &expected)?;
    equal("who waits", &listed(&journal, ApprovalSelector::Pending).await?, &ids(&[3])?)
}

async fn one(journal: &TestJournal, n: u64) -> Result<Approval, Finding> {
    let mut found = journal.approvals_which(ApprovalSelector::One(approval_id(n)?), 10).await?;
    found.pop().ok_or_else(|| Finding::Broken(format!("approval {n} is not there")))
}

async fn listed(
    journal: &TestJournal,
    which: ApprovalSelector,
) -> Result<Vec<ApprovalId>, Finding> {
    let found = journal.approvals_which(which, 10).await?;
    Ok(found.into_iter().map(|approval| approval.approval_id).collect())
}

fn ids(numbers: &[u64]) -> Result<Vec<ApprovalId>, Finding> {
    numbers.iter().map(|n| approval_id(*n)).collect()
}
