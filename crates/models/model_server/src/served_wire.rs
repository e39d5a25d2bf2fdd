//! The providers' suite over a real connection: a scenario becomes the bytes of its wire, and a
//! server writes them.

use std::marker::PhantomData;

use antiphon_conformance::provider::{
    Ending as ScenarioEnding, Refusal, Scenario, Stage, Step, Unsupported, Wire,
};
use antiphon_core::{Provider, Usage};
use async_trait::async_trait;

use crate::{Ending, ModelServer, Part, Reply};

/// An event that no wire has.
const GARBAGE: &str = "data: }{\n\n";

/// Texts that are written one by one. Those behind them come in batches of as many, as when a
/// reader is slow.
const BATCH: usize = 100;

/// One answer in the words of a wire of server-sent events. The texts are what is written next;
/// one may be empty where the wire says nothing.
pub trait Telling: Sized {
    /// Says no in place of an answer.
    fn refused(refusal: Refusal) -> Reply;

    /// Begins an answer that costs `cost` in the end. Some wires say part of that at once.
    fn begin(cost: Usage) -> (Self, String);

    /// Says one thing.
    fn step(&mut self, step: &Step) -> Result<String, Unsupported>;

    /// Ends an answer that is whole.
    fn end(self) -> String;

    /// Says no in mid-answer.
    fn failed(self, refusal: Refusal) -> String;

    /// What is written of a step that has begun when nothing more comes. Only wires that say
    /// things whole have any of that.
    fn unfinished(self) -> String {
        String::new()
    }
}

/// A [`Wire`] whose other end is a [`ModelServer`] that tells scenarios as `T` words them.
pub struct ServedWire<T, P> {
    provider: fn(&ModelServer) -> P,
    telling: PhantomData<fn() -> T>,
}

impl<T, P> ServedWire<T, P> {
    /// Puts what `provider` makes before each server.
    pub fn new(provider: fn(&ModelServer) -> P) -> Self {
        Self { provider, telling: PhantomData }
    }
}

#[async_trait]
impl<T: Telling, P: Provider + 'static> Wire for ServedWire<T, P> {
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

fn reply<T: Telling>(scenario: &Scenario) -> Result<Reply, Unsupported> {
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

/// What a scenario comes to cost.
fn cost(scenario: &Scenario) -> Usage {
    let said = |step: &Step| match step {
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
    scenario.steps.iter().filter_map(said).next_back().unwrap_or_default()
}
