//! The one check of an invocation: what passes, and which rule is named when it does not.

use std::num::NonZeroU32;

use antiphon_core::{
    ContextScope, Executor, ExecutorHint, Invocation, InvocationError, Join, RunnerConfig,
    TARGETS_MAX, Target, UserMessage,
};

use crate::ten;

fn hi() -> UserMessage {
    UserMessage::text("hi", ten())
}

fn named(agent: &str) -> Target {
    Target::named(agent, hi())
}

fn many(count: usize) -> Vec<Target> {
    vec![named("worker"); count]
}

fn of(targets: Vec<Target>, join: Join) -> Invocation {
    Invocation { join, ..Invocation::all(targets) }
}

fn quorum(n: u32) -> Join {
    Join::Quorum { n: NonZeroU32::new(n).unwrap() }
}

fn local() -> ExecutorHint {
    ExecutorHint::Force(Executor::Local)
}

fn remote() -> ExecutorHint {
    ExecutorHint::Force(Executor::Remote { runner: RunnerConfig::new("loopback") })
}

#[track_caller]
fn check(invocation: Invocation, expected: &Result<(), InvocationError>) {
    let answer = invocation.clone().validate();
    assert_eq!(answer.as_ref().map(|_| ()).map_err(Clone::clone), *expected, "{invocation:?}");
    if let Ok(valid) = answer {
        assert_eq!(valid.into_inner(), invocation);
    }
}

#[test]
fn an_invocation_has_as_many_targets_as_its_join_asks_for() {
    use InvocationError::{NoTargets, QuorumNeedsTargets, SingleNeedsOneTarget, TooManyTargets};
    let over = TARGETS_MAX + 1;
    for join in [Join::Single, Join::All, Join::Detached, Join::Any, quorum(1)] {
        check(of(many(0), join), &Err(NoTargets));
        check(of(many(1), join), &Ok(()));
    }
    for join in [Join::All, Join::Detached, Join::Any, quorum(1), quorum(2)] {
        check(of(many(2), join), &Ok(()));
        check(of(many(TARGETS_MAX), join), &Ok(()));
        check(of(many(over), join), &Err(TooManyTargets { got: over }));
    }
    for got in [2, over] {
        check(of(many(got), Join::Single), &Err(SingleNeedsOneTarget { got }));
    }
    check(of(many(3), quorum(3)), &Ok(()));
    for n in [4, u32::MAX] {
        check(of(many(3), quorum(n)), &Err(QuorumNeedsTargets { n, got: 3 }));
    }
    check(of(many(0), quorum(1)), &Err(NoTargets));
}

#[test]
fn every_target_names_an_agent() {
    use InvocationError::{AdHocEmptyPrompt, NamedEmptyAgentId};
    check(Invocation::single(Target::ad_hoc("be brief", hi())), &Ok(()));
    for blank in ["", " \n"] {
        check(Invocation::single(named(blank)), &Err(NamedEmptyAgentId));
        check(Invocation::single(Target::ad_hoc(blank, hi())), &Err(AdHocEmptyPrompt));
    }
    // The first that is wrong is named.
    let mixed = vec![named("a"), Target::ad_hoc(" ", hi()), named("")];
    check(Invocation::all(mixed), &Err(AdHocEmptyPrompt));
}

/// Every context, join and executor; with a join for many, also of many.
#[test]
fn the_axes_are_free_but_for_a_shared_context() {
    let joins = [Join::Single, Join::All, Join::Detached, Join::Any, quorum(1)];
    let executors = [ExecutorHint::Auto, local(), remote()];
    for context in [ContextScope::Independent, ContextScope::Inherited] {
        for join in joins {
            for executor in &executors {
                let counts = if join == Join::Single { 1..2 } else { 1..4 };
                for count in counts {
                    let free = of(many(count), join).with_context(context);
                    check(free.with_executor(executor.clone()), &Ok(()));
                }
            }
        }
    }
    for join in joins {
        for (executor, single) in
            executors.iter().zip([Ok(()), Ok(()), Err(InvocationError::SharedNeedsLocal)])
        {
            let expected = match join {
                Join::Single => single,
                Join::All => Err(InvocationError::SharedNeedsSingle { join: "all" }),
                Join::Detached => Err(InvocationError::SharedNeedsSingle { join: "detached" }),
                Join::Any => Err(InvocationError::SharedNeedsSingle { join: "any" }),
                Join::Quorum { .. } => Err(InvocationError::SharedNeedsSingle { join: "quorum" }),
            };
            let shared = of(many(1), join).with_context(ContextScope::Shared);
            check(shared.with_executor(executor.clone()), &expected);
        }
    }
}

#[test]
fn a_task_is_not_handed_over_to_somewhere_else() {
    let refused = Err(InvocationError::SharedNeedsLocal);
    let own = |executor: Option<ExecutorHint>| Target { executor, ..named("lawyer") };
    for (of_all, of_target, expected) in [
        (ExecutorHint::Auto, None, &Ok(())),
        (ExecutorHint::Auto, Some(ExecutorHint::Auto), &Ok(())),
        (ExecutorHint::Auto, Some(local()), &Ok(())),
        (ExecutorHint::Auto, Some(remote()), &refused),
        (local(), None, &Ok(())),
        (local(), Some(ExecutorHint::Auto), &Ok(())),
        (local(), Some(local()), &Ok(())),
        (local(), Some(remote()), &refused),
        // A field of a target wins over that of the invocation.
        (remote(), None, &refused),
        (remote(), Some(ExecutorHint::Auto), &Ok(())),
        (remote(), Some(local()), &Ok(())),
        (remote(), Some(remote()), &refused),
    ] {
        let invocation = Invocation::single(own(of_target)).with_executor(of_all);
        check(invocation.clone().with_context(ContextScope::Shared), expected);
        check(invocation.with_context(ContextScope::Inherited), &Ok(()));
    }
}

#[test]
fn of_several_rules_that_are_broken_the_first_is_named() {
    let shared = |targets, join| of(targets, join).with_context(ContextScope::Shared);
    let elsewhere = |targets, join| shared(targets, join).with_executor(remote());
    for (invocation, expected) in [
        (elsewhere(vec![], Join::Single), InvocationError::NoTargets),
        (elsewhere(many(2), Join::Single), InvocationError::SingleNeedsOneTarget { got: 2 }),
        (elsewhere(many(2), quorum(3)), InvocationError::QuorumNeedsTargets { n: 3, got: 2 }),
        (elsewhere(many(2), Join::Any), InvocationError::SharedNeedsSingle { join: "any" }),
        (elsewhere(vec![named("")], Join::Single), InvocationError::SharedNeedsLocal),
        (shared(vec![named("")], Join::Single), InvocationError::NamedEmptyAgentId),
    ] {
        check(invocation, &Err(expected));
    }
}

#[test]
fn a_refused_invocation_says_why() {
    for (error, message) in [
        (InvocationError::NoTargets, "invocation requires at least one target"),
        (
            InvocationError::SingleNeedsOneTarget { got: 2 },
            "join `single` requires exactly 1 target, got 2",
        ),
        (InvocationError::AdHocEmptyPrompt, "ad-hoc target with empty system_prompt"),
        (InvocationError::NamedEmptyAgentId, "named target with empty agent_id"),
        (
            InvocationError::TooManyTargets { got: 20_000 },
            "invocation may have 16384 targets at most, got 20000",
        ),
        (
            InvocationError::QuorumNeedsTargets { n: 3, got: 2 },
            "join `quorum` of 3 requires at least 3 targets, got 2",
        ),
        (
            InvocationError::SharedNeedsSingle { join: "all" },
            "context `shared` requires join `single`, got `all`",
        ),
        (
            InvocationError::SharedNeedsLocal,
            "context `shared` stays in its own task: it cannot be run by a remote executor",
        ),
    ] {
        assert_eq!(error.to_string(), message);
    }
}
