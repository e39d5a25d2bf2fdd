//! Invocations: the four axes and their JSON.

use std::num::NonZeroU32;

use antiphon_core::{
    AgentRef, ContextScope, Executor, ExecutorHint, InputBlock, Invocation, Join, RawJson,
    RunnerConfig, Target, ToolPolicy, UserMessage,
};
use serde_json::{Value, json};

use crate::{both_ways, read, refusal, ten, written};

fn hi() -> UserMessage {
    UserMessage::text("hi", ten())
}

fn hi_json() -> Value {
    json!({
        "type": "user",
        "content": [{"type": "text", "text": "hi"}],
        "timestamp": "2025-01-20T10:00:00Z"
    })
}

fn named(agent: &str) -> Target {
    Target::named(agent, hi())
}

fn of(targets: Vec<Target>, join: Join) -> Invocation {
    Invocation {
        targets,
        context: ContextScope::Independent,
        join,
        executor: ExecutorHint::Auto,
        tools: ToolPolicy::Inherit,
    }
}

#[test]
fn a_single_invocation_writes_every_axis() {
    both_ways(
        &Invocation::single(named("worker")),
        &json!({
            "targets": [{
                "agent": {"type": "named", "agent_id": "worker"},
                "message": hi_json()
            }],
            "context": "independent",
            "join": "single",
            "executor": {"kind": "auto"},
            "tools": {"kind": "inherit"}
        }),
    );
}

#[test]
fn every_axis_has_a_default() {
    let json = json!({"targets": [
        {"agent": {"type": "named", "agent_id": "worker"}, "message": hi_json()}
    ]});
    assert_eq!(read::<Invocation>(&json.to_string()), of(vec![named("worker")], Join::Single));
    assert_eq!(ExecutorHint::default(), ExecutorHint::Auto);
    assert_eq!(ToolPolicy::default(), ToolPolicy::Inherit);
}

#[test]
fn the_words_of_the_axes_are_in_snake_case() {
    let invocation = Invocation::detached(vec![Target::ad_hoc("be a worker", hi())]);
    both_ways(
        &invocation.with_context(ContextScope::Shared).with_tools(ToolPolicy::None),
        &json!({
            "targets": [{
                "agent": {"type": "ad_hoc", "system_prompt": "be a worker"},
                "message": hi_json()
            }],
            "context": "shared",
            "join": "detached",
            "executor": {"kind": "auto"},
            "tools": {"kind": "none"}
        }),
    );
}

#[test]
fn a_forced_remote_executor_carries_its_runner() {
    let runner = RunnerConfig::new("sandbox").with_config(json!({"image": "distri-cli:latest"}));
    both_ways(
        &Invocation::single(named("w"))
            .with_executor(ExecutorHint::Force(Executor::Remote { runner })),
        &json!({
            "targets": [{
                "agent": {"type": "named", "agent_id": "w"},
                "message": hi_json()
            }],
            "context": "independent",
            "join": "single",
            "executor": {
                "kind": "force",
                "type": "remote",
                "runner": {"kind": "sandbox", "config": {"image": "distri-cli:latest"}}
            },
            "tools": {"kind": "inherit"}
        }),
    );
}

#[test]
fn each_value_of_an_axis_has_its_json() {
    both_ways(&ExecutorHint::Auto, &json!({"kind": "auto"}));
    both_ways(&ExecutorHint::Force(Executor::Local), &json!({"kind": "force", "type": "local"}));
    both_ways(&Executor::Local, &json!({"type": "local"}));
    both_ways(&ToolPolicy::Inherit, &json!({"kind": "inherit"}));
    both_ways(
        &ToolPolicy::Exact { tools: vec!["Bash".to_owned()] },
        &json!({"kind": "exact", "tools": ["Bash"]}),
    );
    both_ways(&ToolPolicy::None, &json!({"kind": "none"}));
    both_ways(
        &AgentRef::AdHoc { system_prompt: "be a worker".to_owned(), tools: Some(vec![]) },
        &json!({"type": "ad_hoc", "system_prompt": "be a worker", "tools": []}),
    );
}

#[test]
fn a_runner_of_any_kind_is_kept_with_its_config_unread() {
    for config in
        [json!({}), json!({"namespace": "n", "image": "i"}), json!([1, null]), json!(null)]
    {
        both_ways(
            &RunnerConfig::new("k8s").with_config(config.clone()),
            &json!({"kind": "k8s", "config": config}),
        );
    }
    assert_eq!(
        read::<RunnerConfig>(r#"{"kind":"loopback"}"#),
        RunnerConfig { kind: "loopback".to_owned(), config: json!({}) }
    );
    assert_eq!(refusal::<RunnerConfig>(json!({"config": {}})), "missing field `kind`");
}

#[test]
fn a_target_may_have_an_executor_of_its_own() {
    both_ways(
        &Target { executor: Some(ExecutorHint::Force(Executor::Local)), ..named("w") },
        &json!({
            "agent": {"type": "named", "agent_id": "w"},
            "message": hi_json(),
            "executor": {"kind": "force", "type": "local"}
        }),
    );
}

#[test]
fn a_target_may_have_a_schema_and_a_time_limit_of_its_own() {
    let target = Target {
        output_schema: Some(RawJson::parse(r#"{"type":"object"}"#).unwrap()),
        timeout_s: NonZeroU32::new(30),
        ..named("w")
    };
    let json = json!({
        "agent": {"type": "named", "agent_id": "w"},
        "message": hi_json(),
        "output_schema": {"type": "object"},
        "timeout_s": 30
    });
    both_ways(&target, &json);
    let mut never = json;
    never["timeout_s"] = json!(0);
    assert_eq!(refusal::<Target>(never), "invalid value: integer `0`, expected a nonzero u32");
}

#[test]
fn a_quorum_is_written_with_how_many_it_takes() {
    let join = Join::Quorum { n: NonZeroU32::new(2).unwrap() };
    let invocation = of(vec![named("a"), named("b")], join);
    assert_eq!(written(&invocation)["join"], json!({"quorum": {"n": 2}}));
    assert_eq!(read::<Invocation>(&written(&invocation).to_string()), invocation);
}

#[test]
fn a_message_given_as_text_is_a_user_message_of_that_text() {
    let target: Target = read(r#"{"agent":{"type":"named","agent_id":"w"},"message":"hello"}"#);
    assert_eq!(
        target,
        Target::named(
            "w",
            UserMessage {
                content: vec![InputBlock::text("hello")],
                timestamp: target.message.timestamp,
            }
        )
    );
}

#[test]
fn the_type_of_a_target_message_may_be_left_out() {
    let mut message = hi_json();
    message.as_object_mut().unwrap().remove("type");
    let json = json!({"agent": {"type": "named", "agent_id": "w"}, "message": message});
    assert_eq!(read::<Target>(&json.to_string()), named("w"));
    assert_eq!(written(&named("w"))["message"], hi_json());
}

#[test]
fn a_target_message_that_is_refused_is_refused_with_its_reason() {
    let target =
        |message: Value| json!({"agent": {"type": "named", "agent_id": "w"}, "message": message});
    let block = json!({"content": [{"type": "video"}], "timestamp": "2025-01-20T10:00:00Z"});
    assert_eq!(
        refusal::<Target>(target(block)),
        "content[0]: unknown block type `video`, expected one of `text`, `thinking`, `image`, \
         `tool_call`"
    );
    assert_eq!(refusal::<Target>(target(json!({}))), "missing field `content`");
    let assistant = json!({"role": "assistant", "parts": [{"text": "no"}]});
    assert_eq!(refusal::<Target>(target(assistant)), "unknown role \"assistant\", expected `user`");
    let video = json!({"role": "user", "parts": ["see", {"part_type": "video", "data": "x"}]});
    assert_eq!(
        refusal::<Target>(target(video)),
        "parts[1]: unknown part `video`, expected one of `text`, `image`"
    );
}

#[test]
fn a_target_message_needs_no_timestamp_and_may_have_parts() {
    let image = json!({"type": "bytes", "bytes": "aGk=", "mime_type": "image/png"});
    let parts = json!([
        "hi", {"text": "hi"}, {"type": "text", "text": "hi"}, {"part_type": "text", "data": "hi"},
        {"part_type": "image", "data": image}, {"type": "image", "data": "aGk=", "media_type": "image/png"}
    ]);
    let written = json!({"role": "user", "parts": parts, "created_at": 1_737_367_200_000_i64});
    let target = |message: Value| {
        read::<Target>(
            &json!({"agent": {"type": "named", "agent_id": "w"}, "message": message}).to_string(),
        )
    };
    let message = target(written).message;
    let image =
        InputBlock::Image(antiphon_core::ImageBlock::new("image/png", b"hi".to_vec()).unwrap());
    let hi = InputBlock::text("hi");
    let all = [hi.clone(), hi.clone(), hi.clone(), hi.clone(), image.clone(), image];
    assert_eq!(message.content, all);
    assert_eq!(message.timestamp.to_rfc3339(), "2025-01-20T10:00:00+00:00");
    let now = target(json!({"content": [{"type": "text", "text": "hi"}]})).message;
    assert_eq!(now.content, [hi]);
}

#[test]
fn a_target_may_have_a_tool_policy_of_its_own() {
    let target = Target { tools: Some(ToolPolicy::None), ..named("w") };
    let json = json!({
        "agent": {"type": "named", "agent_id": "w"}, "message": hi_json(), "tools": {"kind": "none"}
    });
    both_ways(&target, &json);
}

#[test]
fn executors_can_be_compared_for_equality() {
    fn total<T: Eq>(one: &T, other: &T) -> bool {
        one == other
    }
    let runner = || RunnerConfig::new("k8s").with_config(json!({"namespace": "a"}));
    let remote = || Executor::Remote { runner: runner() };
    assert!(total(&ExecutorHint::Force(remote()), &ExecutorHint::Force(remote())));
    assert!(total(&runner(), &runner()) && !total(&remote(), &Executor::Local));
}

#[test]
fn the_builders_chain_into_a_valid_invocation() {
    let invocation = Invocation::all(vec![named("a"), named("b")])
        .with_context(ContextScope::Inherited)
        .with_executor(ExecutorHint::Force(Executor::Local))
        .with_tools(ToolPolicy::Exact { tools: vec!["Bash".to_owned()] });
    let expected = Invocation {
        targets: vec![named("a"), named("b")],
        context: ContextScope::Inherited,
        join: Join::All,
        executor: ExecutorHint::Force(Executor::Local),
        tools: ToolPolicy::Exact { tools: vec!["Bash".to_owned()] },
    };
    let valid = invocation.validate().unwrap();
    assert_eq!(valid.get(), &expected);
    assert_eq!(written(&valid), written(&expected));
    assert_eq!(valid.into_inner(), expected);
}

#[test]
fn unknown_fields_of_an_invocation_are_ignored() {
    let json = json!({
        "targets": [{
            "agent": {"type": "named", "agent_id": "w", "mood": 1},
            "message": hi_json(),
            "priority": 3
        }],
        "executor": {"kind": "auto", "since": 2},
        "tools": {"kind": "inherit", "tools": ["x"]},
        "budget": {"usd": 1}
    });
    assert_eq!(read::<Invocation>(&json.to_string()), Invocation::single(named("w")));
}
