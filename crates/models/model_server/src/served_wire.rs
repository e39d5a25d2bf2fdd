//! The conformance suite of providers over a real connection: a scenario becomes the bytes of its
//! wire, and a server writes them.

use std::marker::PhantomData;

use antiphon_conformance::provider::{
    Ending as ScenarioEnding, Refusal, Scenario, Stage, Step, Unsupported, Wire,
};
use antiphon_core::{Provider, Usage};
use async_trait::async_trait;

use crate::{Ending, ModelServer, Part, Reply};

/// An event that is invalid on every wire.
const GARBAGE: &str = "data: }{\n\n";

/// Number of texts that are written one by one. Further ones are written in batches of as many, as
/// for a slow reader.
const BATCH: usize = 100;

/// Writes a scenario in the format of a server-sent events wire. Each method returns the text to
/// write next, which may be empty.
pub trait WireWriter: Sized {
    /// An error response instead of an answer.
    fn refused(refusal: Refusal) -> Reply;

    /// Starts an answer with this final usage. Some wires report part of it at once.
    fn begin(cost: Usage) -> (Self, String);

    /// Writes one step.
    fn step(&mut self, step: &Step) -> Result<String, Unsupported>;

    /// Ends a complete answer.
    fn end(self) -> String;

    /// An error in the middle of an answer.
    fn failed(self, refusal: Refusal) -> String;

    /// The text of a started step when nothing more follows. Only wires that send steps as a whole
    /// have any.
    fn unfinished(self) -> String {
        String::new()
    }
}

/// A [`Wire`] on a [`ModelServer`] that writes scenarios with `T`.
pub struct ServedWire<T, P> {
    provider: fn(&ModelServer) -> P,
    telling: PhantomData<fn() -> T>,
}

impl<T, P> ServedWire<T, P> {
    /// `provider` creates a provider for each server.
    pub fn new(provider: fn(&ModelServer) -> P) -> Self {
        Self { provider, telling: PhantomData }
    }
}

#[async_trait]
impl<T: WireWriter, P: Provider + 'static> Wire for ServedWire<T, P> {
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        let replies = scenarios.iter().map(reply::<T>).collect::<Result<Vec<_>, _>>()?;
        let one_too_many = Reply::json(500, "there is no scenario for this request");
        let answer = move |_: &_, number| replies.get(number).unwrap_or(&one_too_many).clone();
        let server = ModelServer::start(answer).await;
        let server = server.map_err(|error| Unsupported::because(format!("no server: {error}")))?;
        let provider = (self.provider)(&server);
        Ok(Stage::new(provider).watched(server.traffic()).keeping(server))
    }
}

fn reply<T: WireWriter>(scenario: &Scenario) -> Result<Reply, Unsupported> {
    if let (ScenarioEnding::Refused(refusal), []) = (scenario.ending, &scenario.steps[..]) {
        return Ok(T::refused(refusal));
    }
    let (mut telling, beginning) = T::begin(cost(scenario));
    let mut texts = vec![beginning];
    for step in &scenario.steps {
        texts.push(telling.step(step)?);
    }
    let (last, ending) = match scenario.ending {
        ScenarioEnding::Whole => (telling.end(), Ending::Complete),
        ScenarioEnding::Refused(refusal) => (telling.failed(refusal), Ending::Complete),
        ScenarioEnding::Garbage => (GARBAGE.to_owned(), Ending::Complete),
        ScenarioEnding::Cut => (telling.unfinished(), Ending::Cut),
        ScenarioEnding::Stall => (telling.unfinished(), Ending::Stall),
    };
    texts.push(last);
    let (singly, rest) = texts.split_at(BATCH.min(texts.len()));
    let parts = singly.chunks(1).chain(rest.chunks(BATCH));
    let parts = parts.map(|texts| Part::Bytes(texts.concat().into_bytes())).collect();
    Ok(Reply { parts, ending, ..Reply::events("") })
}

/// The final usage of a scenario.
fn cost(scenario: &Scenario) -> Usage {
    let text_of = |step: &Step| match step {
        Step::Usage(usage) => Some(*usage),
        Step::Text { .. }
        | Step::Thinking { .. }
        | Step::Signature { .. }
        | Step::CallBegin { .. }
        | Step::CallDelta { .. }
        | Step::BlockEnd { .. }
        | Step::Alive
        | Step::Stop(_) => None,
    };
    scenario.steps.iter().filter_map(text_of).next_back().unwrap_or_default()
}
