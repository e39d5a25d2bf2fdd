//! Opens answers and reads them.

use std::sync::Arc;

use antiphon_core::port::{Cancel, ProviderError};
use antiphon_core::{
    AssistantMessage, Message, RawJson, Request, StreamError, StreamEvent, Tool, UserMessage,
};
use chrono::{DateTime, Utc};
use tokio::sync::oneshot;

use super::transcript::Transcript;
use super::{Answer, Ending, Scenario, Stage, Step, Wire};
use crate::suite::{During, Finding, ensure, quote};

/// Serves scenarios on a wire.
pub(super) async fn play(wire: &dyn Wire, scenarios: &[Scenario]) -> Result<Stage, Finding> {
    let stage = wire.play(scenarios).await;
    stage.map_err(|unsupported| Finding::Skipped(unsupported.reason))
}

/// Opens an answer that is not canceled.
pub(super) fn open(wire: &dyn Wire, stage: &Stage) -> Box<dyn Answer> {
    open_with(wire, stage, Cancel::never())
}

pub(super) fn open_with(wire: &dyn Wire, stage: &Stage, cancel: Cancel) -> Box<dyn Answer> {
    let at = DateTime::from_timestamp(1_771_416_000, 0).unwrap_or_default();
    wire.open(&*stage.provider, request(at), cancel, at)
}

/// Plays a scenario and reads it to its end, complete or failed.
pub(super) async fn read(
    wire: &dyn Wire,
    scenario: Scenario,
) -> Result<(Transcript, AssistantMessage), Finding> {
    let stage = play(wire, &[scenario]).await?;
    let mut answer = open(wire, &stage);
    let transcript = Transcript::read(&mut *answer).await;
    let message = answer.message().during("message")?;
    Ok((transcript, message))
}

/// Plays a scenario that ends well, and requires a complete answer.
pub(super) async fn read_whole(
    wire: &dyn Wire,
    steps: impl IntoIterator<Item = Step>,
) -> Result<(Transcript, AssistantMessage), Finding> {
    let (transcript, message) = read(wire, Scenario::whole(steps)).await?;
    if let Some(error) = &transcript.error {
        return Err(Finding::Broken(format!("a whole answer failed: {error}")));
    }
    Ok((transcript, message))
}

/// Plays a scenario that ends with an error, and requires the error.
pub(super) async fn read_failing(
    wire: &dyn Wire,
    ending: Ending,
    steps: impl IntoIterator<Item = Step>,
) -> Result<(ProviderError, AssistantMessage), Finding> {
    let (transcript, message) = read(wire, Scenario::ending(ending, steps)).await?;
    match transcript.error {
        Some(StreamError::Provider(error)) => Ok((error, message)),
        found @ (None | Some(StreamError::Canceled | StreamError::Closed)) => Err(Finding::Broken(
            format!("an answer that ends with {ending:?} is read with {found:?}"),
        )),
    }
}

/// Reads until `text` has arrived, however it is split into deltas.
pub(super) async fn read_text(answer: &mut dyn Answer, text: &str) -> Result<(), Finding> {
    let mut found = String::new();
    while found.len() < text.len() {
        match answer.next().await.during("next")? {
            Some(StreamEvent::TextDelta { delta }) => found.push_str(&delta),
            other => {
                return Err(Finding::Broken(format!(
                    "there should be text, but there is {}",
                    quote(&other)
                )));
            }
        }
    }
    ensure!(found == text, "found the text {}, expected {}", quote(&found), quote(text));
    Ok(())
}

/// Fires a [`Cancel`]. Dropping it fires it too.
pub(super) fn switch() -> (oneshot::Sender<()>, Cancel) {
    let (sender, receiver) = oneshot::channel();
    let signal = async { drop(receiver.await) };
    (sender, Cancel::when(signal))
}

/// A request that every provider accepts.
fn request(at: DateTime<Utc>) -> Request {
    Request {
        model: "conformance".to_owned(),
        system_prompt: "Answer.".to_owned(),
        messages: vec![Message::User(UserMessage::text("Hello.", at)).into()].into(),
        tools: vec![Arc::new(Tool {
            name: "look".to_owned(),
            description: "Looks something up.".to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#)
                .unwrap_or_else(|_| RawJson::empty_object()),
        })],
        ..Request::default()
    }
}
