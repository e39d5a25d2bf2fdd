//! A provider that plays scenarios, without a wire.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use antiphon_core::port::{Piece, PieceSource, Provider, ProviderError, StopSignal};
use antiphon_core::{ModelRef, Request, StopReason};
use async_trait::async_trait;
use futures_core::Stream;
use tokio::sync::watch;

use crate::provider::{
    Ending, Refusal, Scenario, Stage, Step, StopWord, Traffic, Unsupported, Wire,
};

/// Makes a [`ScenarioProvider`]. It can express every scenario.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScenarioWire;

#[async_trait]
impl Wire for ScenarioWire {
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        let provider = ScenarioProvider::new(scenarios);
        let traffic = provider.traffic();
        Ok(Stage::new(provider).watched(traffic))
    }
}

/// Answers its first request with the first scenario, and so on.
#[derive(Debug)]
pub struct ScenarioProvider {
    script: Arc<Script>,
}

#[derive(Debug)]
struct Script {
    scenarios: Mutex<VecDeque<Scenario>>,
    traffic: watch::Sender<Traffic>,
}

impl ScenarioProvider {
    /// Answers as many requests as there are scenarios, and refuses the next.
    pub fn new(scenarios: &[Scenario]) -> Self {
        Self {
            script: Arc::new(Script {
                scenarios: Mutex::new(scenarios.iter().cloned().collect()),
                traffic: watch::Sender::default(),
            }),
        }
    }

    /// Counters of requests.
    pub fn traffic(&self) -> watch::Receiver<Traffic> {
        self.script.traffic.subscribe()
    }
}

impl Provider for ScenarioProvider {
    fn open(&self, _request: Request) -> PieceSource {
        Box::pin(Performance {
            script: Arc::clone(&self.script),
            progress: Progress::Ready,
            polls: 0,
            breathed: false,
        })
    }
}

/// Number of pieces that arrive singly. Then they arrive in batches of this size, as for a slow reader.
const BATCH: usize = 100;

/// One answer. Before each piece, later before each batch, one poll is pending, as on a wire.
struct Performance {
    script: Arc<Script>,
    progress: Progress,
    polls: usize,
    breathed: bool,
}

enum Progress {
    Ready,
    On { pieces: VecDeque<Piece>, ending: Ending },
    Over,
}

impl Stream for Performance {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let pauses = this.polls < BATCH || this.polls.is_multiple_of(BATCH);
        if pauses && !this.breathed {
            this.breathed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        this.breathed = false;
        this.polls += 1;
        if matches!(this.progress, Progress::Ready) {
            this.progress = this.script.begin();
        }
        let Progress::On { pieces, ending } = &mut this.progress else {
            return Poll::Ready(None);
        };
        if let Some(piece) = pieces.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        let last = match ending {
            Ending::Stall => return Poll::Pending,
            Ending::Cut => None,
            Ending::Whole => Some(Ok(Piece::Done)),
            Ending::Refused(refusal) => Some(Err(error(*refusal))),
            Ending::Garbage => Some(Err(ProviderError::Protocol { message: "garbage".to_owned() })),
        };
        this.progress = Progress::Over;
        this.script.end();
        Poll::Ready(last)
    }
}

/// Dropping it ends the request.
impl Drop for Performance {
    fn drop(&mut self) {
        if matches!(self.progress, Progress::On { .. }) {
            self.script.end();
        }
    }
}

impl Script {
    fn begin(&self) -> Progress {
        let mut scenarios = self.scenarios.lock().unwrap_or_else(PoisonError::into_inner);
        self.traffic.send_modify(|traffic| {
            traffic.begun += 1;
            traffic.open += 1;
        });
        let refused = Scenario::ending(Ending::Refused(Refusal::InvalidRequest), []);
        let Scenario { steps, ending } = scenarios.pop_front().unwrap_or(refused);
        let model = ModelRef::parse("model/scenario").ok().map(Piece::Model);
        Progress::On {
            pieces: model.into_iter().chain(steps.into_iter().map(piece)).collect(),
            ending,
        }
    }

    fn end(&self) {
        self.traffic.send_modify(|traffic| traffic.open -= 1);
    }
}

fn piece(step: Step) -> Piece {
    match step {
        Step::Text { block, delta } => Piece::Text { block, delta },
        Step::Thinking { block, delta } => Piece::Thinking { block, delta },
        Step::Signature { block, signature } => Piece::Signature { block, delta: signature },
        Step::CallBegin { block, id, name } => {
            Piece::ToolCall { block, id: Some(id), name: Some(name), arguments: String::new() }
        }
        Step::CallDelta { block, delta } => {
            Piece::ToolCall { block, id: None, name: None, arguments: delta }
        }
        Step::BlockEnd { block } => Piece::BlockEnd { block },
        Step::Alive => Piece::Alive,
        Step::Usage(usage) => Piece::Usage(usage),
        Step::Stop(word) => Piece::Stop(stop(word)),
    }
}

fn stop(word: StopWord) -> StopSignal {
    let (reason, raw) = match word {
        StopWord::EndTurn => (StopReason::EndTurn, "end_turn"),
        StopWord::Length => (StopReason::Length, "length"),
        StopWord::ToolUse => (StopReason::ToolUse, "tool_use"),
        StopWord::Unheard => (StopReason::Unknown, "unheard"),
    };
    StopSignal { reason, raw: raw.to_owned() }
}

fn error(refusal: Refusal) -> ProviderError {
    let message = format!("{refusal:?}");
    match refusal {
        Refusal::InvalidRequest => ProviderError::InvalidRequest { message },
        Refusal::ContextOverflow => ProviderError::ContextOverflow { message },
        Refusal::Authentication => ProviderError::Authentication { message },
        Refusal::Permission => ProviderError::Permission { message },
        Refusal::NotFound => ProviderError::NotFound { message },
        Refusal::RateLimited { retry_after } => {
            ProviderError::RateLimited { message, retry_after: Some(retry_after) }
        }
        Refusal::Overloaded => ProviderError::Overloaded { message, retry_after: None },
        Refusal::Server => ProviderError::Server { status: 500, message, retry_after: None },
    }
}
