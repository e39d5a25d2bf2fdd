//! Any event.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_core::port::{BootTime, Rule};
use antiphon_core::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::any_arrival::arrival;
use crate::any_conversation::{message, usage, user_message};
use crate::any_dispatch::{between_tasks, may_call, who_answers};
use crate::any_exchange::{mode, runner, state, task_id, uuid};
use crate::any_json::{object, text, time, value};

/// Any event.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    (1_u64.., task_id(), 1_u64.., time(), body()).prop_map(|(position, task_id, seq, at, body)| {
        Event { position: Position(position), task_id, seq: Seq(seq), at, body }
    })
}

/// Boxed: all of them side by side are more than the stack of a test holds.
fn body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        created().boxed(),
        status().boxed(),
        moved().boxed(),
        said().boxed(),
        arrival().boxed(),
        approval().boxed(),
        tool().boxed(),
        between_tasks().boxed(),
        paid().boxed(),
        raised().boxed(),
        text().prop_map(|reason| OutputRejected { reason }.into()).boxed(),
        todo().boxed(),
        (text(), any::<u64>())
            .prop_map(|(summary, kept_from)| Compacted { summary, kept_from }.into())
            .boxed(),
    ]
}

pub(crate) fn call_id() -> impl Strategy<Value = ToolCallId> {
    task_id().prop_map(|id| ToolCallId::parse(id.as_str()).unwrap())
}

fn approval_id() -> impl Strategy<Value = ApprovalId> {
    task_id().prop_map(|id| ApprovalId::parse(id.as_str()).unwrap())
}

fn limits() -> impl Strategy<Value = TaskLimits> {
    let count = || option::of(any::<NonZeroU32>());
    let many = || option::of(any::<NonZeroU64>());
    let tree = (count(), count(), count());
    (count(), count(), count(), many(), many(), count(), tree).prop_map(
        |(turns, answer_tokens, tool_calls, tokens, cost_nano_usd, wall_clock_s, tree)| {
            TaskLimits {
                turns_max: turns,
                answer_tokens_max: answer_tokens,
                tool_calls_max: tool_calls,
                tokens_max: tokens,
                cost_nano_usd_max: cost_nano_usd,
                wall_clock_s_max: wall_clock_s,
                depth_max: tree.0,
                fan_out_max: tree.1,
                tasks_max: tree.2,
            }
        },
    )
}

fn created() -> impl Strategy<Value = EventBody> {
    let work = (text(), text(), limits(), option::of(object()), option::of(object()));
    let boot_time = option::of(any::<(u128, u64)>()).prop_map(|it| {
        it.map(|(id, elapsed_ms)| BootTime { boot_id: ::uuid::Uuid::from_u128(id), elapsed_ms })
    });
    let how = (option::of(runner()), model_options(), option::of(text()), provenance(), boot_time);
    (place(), work, who_answers(), what_it_may(), how).prop_map(
        |(place, work, (model, fallbacks), (tools, external_tools, agents), how)| {
            let (runner, model_options, payer, provenance, boot_time) = how;
            let (agent, system_prompt, limits, output_schema, route) = work;
            TaskCreated {
                agent,
                model,
                fallbacks,
                system_prompt,
                tools,
                external_tools,
                agents,
                runner,
                limits,
                output_schema,
                model_options,
                payer,
                route,
                provenance,
                boot_time,
                ..place
            }
            .into()
        },
    )
}

/// Each kind, with any name.
pub(crate) fn provenance() -> impl Strategy<Value = Provenance> {
    prop_oneof![
        Just(Provenance::Unknown),
        Just(Provenance::Owner),
        text().prop_map(Provenance::AdminKey),
        text().prop_map(Provenance::WriteKey),
        text().prop_map(Provenance::Agent),
        text().prop_map(Provenance::Event),
        text().prop_map(Provenance::Webhook),
        text().prop_map(Provenance::Schedule),
        text().prop_map(Provenance::File),
    ]
}

fn model_options() -> impl Strategy<Value = ModelOptions> {
    let temperature = option::of(
        (0..=8_u32).prop_map(|eighths| Temperature::new(f64::from(eighths) / 4.0).unwrap()),
    );
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        text().prop_map(ToolChoice::Named),
    ];
    let thinking = option::of(any::<NonZeroU32>());
    (temperature, choice, thinking, sampling()).prop_map(
        |(temperature, tool_choice, thinking_tokens, sampling)| ModelOptions {
            temperature,
            tool_choice,
            thinking_tokens,
            sampling,
        },
    )
}

fn sampling() -> impl Strategy<Value = Sampling> {
    let numbers = (option::of(0..=4_u32), option::of(-2..=2_i32), option::of(any::<i64>()));
    let effort = option::of(prop_oneof![
        Just(ReasoningEffort::None),
        Just(ReasoningEffort::Minimal),
        Just(ReasoningEffort::XHigh)
    ]);
    (numbers, vec(text(), 0..3), effort, option::of(any::<bool>())).prop_map(
        |((quarters, penalty, seed), stop, reasoning_effort, parallel_tool_calls)| {
            let penalty = penalty.map(|number| f64::from(number).try_into().unwrap());
            Sampling {
                top_p: quarters.map(|number| (f64::from(number) / 4.0).try_into().unwrap()),
                seed,
                presence_penalty: penalty,
                frequency_penalty: penalty,
                reasoning_effort,
                parallel_tool_calls,
                metadata: stop.iter().map(|text| (text.clone(), text.clone())).collect(),
                stop,
            }
        },
    )
}

/// A task somewhere in a tree, with defaults for everything else.
fn place() -> impl Strategy<Value = TaskCreated> {
    let history =
        (task_id(), any::<u64>()).prop_map(|(task_id, seq)| HistoryRef { task_id, seq: Seq(seq) });
    let above = (option::of(task_id()), option::of(task_id()), any::<u32>(), any::<bool>());
    (task_id(), above, option::of(history)).prop_map(
        |(session, (parent, root, depth, resident), history)| {
            let session_id = SessionId::parse(session.as_str()).unwrap();
            let created = TaskCreated::new("", session_id);
            TaskCreated { parent, root, depth, history, resident, ..created }
        },
    )
}

fn what_it_may() -> impl Strategy<Value = (Option<Vec<String>>, Vec<Arc<Tool>>, CallableAgents)> {
    let tool = (text(), text(), object()).prop_map(|(name, description, parameters)| {
        Arc::new(Tool { name, description, parameters })
    });
    (option::of(vec(text(), 0..3)), vec(tool, 0..3), may_call())
}

fn merged(mut value: serde_json::Value, flag: &str) -> serde_json::Value {
    value[flag] = json!(true);
    value
}

/// What goes with a status is what the page says goes with it.
fn status() -> impl Strategy<Value = EventBody> {
    let why = (text(), select(&["cut", "refused", "timeout", "runner_refused"][..]))
        .prop_map(|(error, code)| json!({"code": code, "error": error}));
    let waits =
        [WaitingFor::Approval, WaitingFor::Resume, WaitingFor::ToolResult, WaitingFor::Budget];
    let model_wait = (text(), 1_u32.., any::<bool>()).prop_map(|(error, attempt, superseded)| {
        let next_at = "2026-02-18T12:00:30Z";
        let wait = json!({"code": "cut", "error": error, "attempt": attempt, "next_at": next_at});
        if superseded { merged(wait, "superseded") } else { wait }
    });
    let details = (option::of(value()), why, model_wait);
    (select(&TaskStatus::ALL[..]), details, select(waits.to_vec())).prop_map(
        |(status, (detail, why, model_wait), waits)| {
            let (detail, waiting_for) = match status {
                TaskStatus::Failed => (Some(why), None),
                TaskStatus::InputRequired => (detail, Some(waits)),
                TaskStatus::Running if detail.is_none() => {
                    (Some(model_wait), Some(WaitingFor::Model))
                }
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::Completed
                | TaskStatus::Canceled => (detail, None),
            };
            StatusChanged { status, detail, waiting_for }.into()
        },
    )
}

fn moved() -> impl Strategy<Value = EventBody> {
    (uuid(), state(), vec(state(), 0..3), state()).prop_map(|(agent_id, from, through, to)| {
        StateChanged { agent_id, from, through, to }.into()
    })
}

fn said() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        2 => (message(), option::of(uuid()), any::<bool>()).prop_map(
            |(message, queued, superseded)| {
                MessageAppended { message: message.into(), queued, superseded }.into()
            },
        ),
        1 => (uuid(), mode(), user_message())
            .prop_map(|(id, mode, message)| MessageQueued::of_user(id, mode, message).into()),
    ]
}

fn approval() -> impl Strategy<Value = EventBody> {
    let times = (option::of(time()), option::of(question()));
    let asked = (approval_id(), call_id(), text(), object(), text(), text(), times).prop_map(
        |(
            approval_id,
            tool_call_id,
            tool_name,
            arguments,
            reason,
            rule,
            (expires_at, question),
        )| {
            let rule = Rule(rule);
            ApprovalRequested {
                approval_id,
                tool_call_id,
                tool_name,
                arguments,
                reason,
                rule,
                expires_at,
                boot_until: None,
                question,
            }
            .into()
        },
    );
    let decisions = {
        use Decision::{AllowAlways, AllowOnce, AllowTask, Deny, Expire};
        select([AllowOnce, AllowTask, AllowAlways, Deny, Expire].to_vec())
    };
    let decided = (approval_id(), decisions, text(), option::of(text()), option::of(answer()))
        .prop_map(|(approval_id, decision, by, comment, answer)| {
            ApprovalDecided { approval_id, decision, by, comment, answer }.into()
        });
    prop_oneof![asked, decided]
}

fn answer() -> impl Strategy<Value = Answer> {
    (vec(text(), 0..3), option::of(text())).prop_map(|(choices, text)| Answer { choices, text })
}

fn question() -> impl Strategy<Value = Question> {
    let choice =
        (text(), option::of(text())).prop_map(|(label, description)| Choice { label, description });
    let choices = (text(), vec(choice, 0..3), any::<bool>(), any::<bool>(), option::of(answer()))
        .prop_map(|(text, choices, multiple, free_text, default)| {
            Question::Choice(ChoiceQuestion { text, choices, multiple, free_text, default })
        });
    prop_oneof![choices, text().prop_map(|plan| Question::Plan(PlanQuestion { plan }))]
}

fn todo() -> impl Strategy<Value = EventBody> {
    let statuses = [TodoStatus::Pending, TodoStatus::InProgress, TodoStatus::Done];
    let item = ("[^\\pC]{1,12}", select(statuses.to_vec()))
        .prop_map(|(text, status)| TodoItem { text, status });
    vec(item, 0..4).prop_map(|items| TodoChanged { items }.into())
}

fn tool() -> impl Strategy<Value = EventBody> {
    let effects = [Effect::ReadOnly, Effect::Idempotent, Effect::SideEffect];
    prop_oneof![
        (call_id(), text(), select(effects.to_vec()), option::of(text())).prop_map(
            |(tool_call_id, tool_name, effect, note)| {
                let note = note.map(|text| serde_json::json!({ "after": text }));
                ToolStarted { tool_call_id, tool_name, effect, note }.into()
            }
        ),
        (call_id(), text(), text()).prop_map(|(tool_call_id, tool_name, reason)| {
            ToolRefused { tool_call_id, tool_name, reason }.into()
        }),
    ]
}

fn paid() -> impl Strategy<Value = EventBody> {
    (text(), usage(), option::of(select(vec![Purpose::Compaction, Purpose::Superseded])))
        .prop_map(|(model, usage, purpose)| UsageRecorded { model, usage, purpose }.into())
}

fn raised() -> impl Strategy<Value = EventBody> {
    (any::<u64>(), option::of(text()), text(), option::of(text())).prop_map(
        |(nano_usd, payer, by, comment)| BudgetRaised { nano_usd, payer, by, comment }.into(),
    )
}
