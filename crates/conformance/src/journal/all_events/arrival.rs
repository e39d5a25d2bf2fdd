//! Sample interactions that arrive or leave.

use antiphon_core::{
    AgentName, EventBody, HandlingMode, InteractionContent, InteractionId, MessageAppended,
    MessageQueued, PeerInputClass, Provenance, RawJson, RenderClass, RenderMetadata, Replied,
    RequestSent, ResponseStatus, Salience, Sender, SourceName, TaskId,
};
use chrono::DateTime;
use serde_json::Value;
use uuid::Uuid;

use super::{ODD_TEXT, call_id, odd_boot_time, odd_value, user};
use crate::journal::test_journal::{noon, task};
use crate::suite::{During, Finding};

pub(super) fn of_the_inbox() -> Result<Vec<EventBody>, Finding> {
    let mut bodies = vec![
        MessageQueued::of_user(interaction(8), HandlingMode::Steer, user()?).into(),
        MessageQueued::of_user(interaction(u128::MAX), HandlingMode::Queue, user()?).into(),
        EventBody::from(MessageAppended {
            message: user()?.into(),
            queued: Some(interaction(8)),
            superseded: true,
        }),
    ];
    bodies.extend(of_others()?);
    bodies.extend(between_agents()?);
    Ok(bodies)
}

/// One of each content, with every field.
fn of_others() -> Result<Vec<EventBody>, Finding> {
    let request = InteractionContent::Request { intent: ODD_TEXT.to_owned(), params: odd_value() };
    let response = InteractionContent::Response {
        in_reply_to: interaction(u128::MAX),
        status: ResponseStatus::Failed,
        result: odd_value(),
    };
    let contents = [
        (InteractionContent::from(user()?), PeerInputClass::PlainEvent),
        (request, PeerInputClass::SilentRequest),
        (response, PeerInputClass::Response),
        (InteractionContent::Ack { in_reply_to: interaction(0) }, PeerInputClass::Ack),
    ];
    let senders = [
        Sender::External(SourceName::parse("webhook").during("a source")?),
        Sender::Peer(AgentName::parse("dev backend").during("a name")?),
    ];
    let mut bodies = Vec::new();
    for (n, (content, class)) in (100..).zip(contents) {
        bodies.push(EventBody::from(MessageQueued {
            id: interaction(n),
            mode: HandlingMode::Queue,
            from: senders[usize::from(n != 100)].clone(),
            content,
            class,
            render_metadata: Some(RenderMetadata {
                class: RenderClass::ToolScopeNotice,
                salience: Salience::Urgent,
            }),
            quiet: true,
            reply_to: Some(odd_task()?),
            until: DateTime::from_timestamp(1_771_416_000, 123_456_789),
            boot_until: Some(odd_boot_time()),
            replaces: Some(interaction(n - 1)),
            hops: 7,
            payload: Some(RawJson::of(&odd_value()).during("a payload")?),
            provenance: Provenance::File(ODD_TEXT.to_owned()),
        }));
    }
    Ok(bodies)
}

fn between_agents() -> Result<Vec<EventBody>, Finding> {
    let to = AgentName::parse("dev backend").during("a name")?;
    let nanosecond = DateTime::from_timestamp(1_771_416_000, 123_456_789).unwrap_or_else(noon);
    let sent = |id, params, waits| -> Result<EventBody, Finding> {
        let (tool_call_id, to, intent) = (call_id()?, to.clone(), ODD_TEXT.to_owned());
        let until = nanosecond;
        Ok(RequestSent {
            tool_call_id,
            id,
            to,
            intent,
            params,
            until,
            waits,
            boot_until: Some(odd_boot_time()),
        }
        .into())
    };
    let replied = |to: &Sender, reply_to: Option<TaskId>, status, result| {
        let (in_reply_to, to) = (interaction(101), to.clone());
        EventBody::from(Replied { in_reply_to, to, reply_to, status, result })
    };
    let peer = Sender::Peer(to.clone());
    Ok(vec![
        sent(interaction(200), odd_value(), true)?,
        sent(interaction(201), Value::Null, false)?,
        replied(&peer, Some(odd_task()?), ResponseStatus::Accepted, Value::Null),
        replied(&peer, Some(task(1)), ResponseStatus::Completed, odd_value()),
        replied(&Sender::User, None, ResponseStatus::Failed, Value::from(ODD_TEXT)),
    ])
}

fn odd_task() -> Result<TaskId, Finding> {
    TaskId::parse("task-é.1").during("a task id")
}

fn interaction(n: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(n))
}
