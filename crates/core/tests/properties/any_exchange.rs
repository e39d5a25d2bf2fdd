//! Any interaction, invocation and chat.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use antiphon_core::*;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::any_conversation::{input_block, user_message};
use crate::any_json::{object, text, time, value};

pub(crate) fn uuid<T: From<Uuid> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    any::<u128>().prop_map(|bits| T::from(Uuid::from_u128(bits)))
}

pub(crate) fn task_id() -> impl Strategy<Value = TaskId> {
    "[^\\s\\p{Cc}]{1,20}".prop_filter_map("no id", |text| TaskId::parse(&text).ok())
}

pub(crate) fn state() -> impl Strategy<Value = AgentState> {
    select(&AgentState::ALL[..])
}

pub(crate) fn sender() -> impl Strategy<Value = Sender> {
    prop_oneof![
        Just(Sender::User),
        peer().prop_map(Sender::Peer),
        "[a-z]{1,9}".prop_map(|t| Sender::External(SourceName::parse(&t).unwrap())),
    ]
}

pub(crate) fn peer() -> impl Strategy<Value = AgentName> {
    "[a-z_][a-zé0-9 ._-]{0,10}[0-9]".prop_map(|text| AgentName::parse(&text).unwrap())
}

pub(crate) fn response_status() -> impl Strategy<Value = ResponseStatus> {
    use ResponseStatus::{Accepted, Completed, Failed};
    select([Accepted, Completed, Failed].to_vec())
}

/// An intent, often one that means something.
pub(crate) fn intent() -> impl Strategy<Value = String> {
    prop_oneof![
        select(&LifecycleIntent::ALL[..]).prop_map(|intent| intent.as_str().to_owned()),
        select(&["review", "ping", ""][..]).prop_map(str::to_owned),
        text(),
    ]
}

fn content() -> impl Strategy<Value = InteractionContent> {
    let peer = text().prop_map(|name| serde_json::json!({ "peer": name }));
    prop_oneof![
        (text(), option::of(vec(input_block(), 1..3)))
            .prop_map(|(body, blocks)| InteractionContent::Message { body, blocks }),
        (intent(), prop_oneof![value(), peer])
            .prop_map(|(intent, params)| InteractionContent::Request { intent, params }),
        (uuid(), response_status(), value()).prop_map(|(in_reply_to, status, result)| {
            InteractionContent::Response { in_reply_to, status, result }
        }),
        uuid().prop_map(|in_reply_to| InteractionContent::Ack { in_reply_to }),
    ]
}

pub(crate) fn mode() -> impl Strategy<Value = HandlingMode> {
    select([HandlingMode::Queue, HandlingMode::Steer].to_vec())
}

pub(crate) fn render_metadata() -> impl Strategy<Value = RenderMetadata> {
    use RenderClass::{FlowStep, OpsProgress};
    use Salience::{Background, Important, Normal, Urgent};
    let saliences = select([Background, Normal, Important, Urgent].to_vec());
    (select([FlowStep, OpsProgress].to_vec()), saliences)
        .prop_map(|(class, salience)| RenderMetadata { class, salience })
}

pub(crate) fn interaction() -> impl Strategy<Value = Interaction> {
    (uuid(), sender(), content(), mode(), option::of(render_metadata())).prop_map(
        |(id, from, content, handling_mode, render_metadata)| Interaction {
            id,
            from,
            content,
            handling_mode,
            render_metadata,
        },
    )
}

pub(crate) fn runner() -> impl Strategy<Value = RunnerConfig> {
    (text(), value()).prop_map(|(kind, config)| RunnerConfig { kind, config })
}

pub(crate) fn join() -> impl Strategy<Value = Join> {
    prop_oneof![
        4 => select([Join::Single, Join::All, Join::Detached, Join::Any].to_vec()),
        1 => any::<NonZeroU32>().prop_map(|n| Join::Quorum { n }),
    ]
}

fn executor() -> impl Strategy<Value = ExecutorHint> {
    let remote = runner().prop_map(|runner| ExecutorHint::Force(Executor::Remote { runner }));
    prop_oneof![Just(ExecutorHint::Auto), Just(ExecutorHint::Force(Executor::Local)), remote]
}

fn target() -> impl Strategy<Value = Target> {
    let agent = prop_oneof![
        text().prop_map(|agent_id| AgentRef::Named { agent_id }),
        (text(), option::of(vec(text(), 0..3)))
            .prop_map(|(system_prompt, tools)| AgentRef::AdHoc { system_prompt, tools }),
    ];
    let timeout = option::of(any::<NonZeroU32>());
    let own = (option::of(executor()), option::of(object()), timeout, option::of(policy()));
    (agent, user_message(), own).prop_map(
        |(agent, message, (executor, output_schema, timeout_s, tools))| Target {
            agent,
            message,
            executor,
            output_schema,
            timeout_s,
            tools,
        },
    )
}

fn policy() -> impl Strategy<Value = ToolPolicy> {
    prop_oneof![
        Just(ToolPolicy::Inherit),
        vec(text(), 0..3).prop_map(|tools| ToolPolicy::Exact { tools }),
        Just(ToolPolicy::None),
    ]
}

pub(crate) fn invocation() -> impl Strategy<Value = Invocation> {
    let scopes = [ContextScope::Independent, ContextScope::Inherited, ContextScope::Shared];
    (vec(target(), 0..3), select(scopes.to_vec()), join(), executor(), policy()).prop_map(
        |(targets, context, join, executor, tools)| Invocation {
            targets,
            context,
            join,
            executor,
            tools,
        },
    )
}

fn canonical() -> impl Strategy<Value = CanonicalMessage> {
    let roles = [Role::User, Role::Assistant, Role::System];
    let notes = btree_map(text(), text(), 0..3);
    (uuid(), select(roles.to_vec()), text(), time(), notes).prop_map(
        |(id, role, content, timestamp, metadata): (_, _, _, _, BTreeMap<String, String>)| {
            CanonicalMessage { id, role, content, timestamp, metadata }
        },
    )
}

pub(crate) fn chat() -> impl Strategy<Value = ChatCompletionRequest> {
    let temperature = option::of(prop_oneof![
        0.0..=2.0,
        proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::SUBNORMAL,
    ]);
    let limit = option::of(any::<u32>());
    (vec(canonical(), 0..4), option::of(text()), temperature, limit, any::<bool>()).prop_map(
        |(messages, model, temperature, max_tokens, stream)| ChatCompletionRequest {
            messages,
            model,
            temperature,
            max_tokens,
            stream,
        },
    )
}

pub(crate) fn control() -> impl Strategy<Value = OrchestratorRequest> {
    const ACTIONS: [&str; 3] = ["spawn_agent", " stop_agent ", "update_agent_context"];
    let action = prop_oneof![select(&ACTIONS[..]).prop_map(str::to_owned), text()];
    let field = || option::of(text());
    (action, field(), field(), field()).prop_map(|(action, name, profile, context)| {
        OrchestratorRequest { action, name, profile, context }
    })
}
