//! Wires with a faulty server.

use antiphon_conformance::provider::{Answer, Scenario, Stage, Step, Unsupported, Wire};
use antiphon_conformance::reference::ScenarioProvider;
use antiphon_core::port::{Cancel, Provider};
use antiphon_core::{MessageStream, Request};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::faulty_answer::{AnswerFault, FaultyAnswer};
use super::faulty_provider::{FaultyProvider, PieceFault};

/// Where the fault is.
pub(super) enum FaultyWire {
    Answer(AnswerFault),
    Pieces(PieceFault),
}

#[async_trait]
impl Wire for FaultyWire {
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        let provider = ScenarioProvider::new(scenarios);
        let traffic = provider.traffic();
        let stage = match self {
            Self::Answer(_) => Stage::new(provider),
            Self::Pieces(fault) => Stage::new(FaultyProvider::new(*fault, provider)),
        };
        Ok(stage.watched(traffic))
    }

    fn open(
        &self,
        provider: &dyn Provider,
        request: Request,
        cancel: Cancel,
        at: DateTime<Utc>,
    ) -> Box<dyn Answer> {
        match self {
            Self::Answer(fault) => {
                Box::new(FaultyAnswer::new(*fault, provider.open(request), cancel, at))
            }
            Self::Pieces(_) => Box::new(MessageStream::open(provider, request, cancel, at)),
        }
    }
}

/// Cannot express signatures.
pub(super) struct UnsignedWire;

#[async_trait]
impl Wire for UnsignedWire {
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        let mut steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
        if steps.any(|step| matches!(step, Step::Signature { .. })) {
            return Err(Unsupported::because("no signatures"));
        }
        Ok(Stage::new(ScenarioProvider::new(scenarios)))
    }
}

/// Cannot express anything.
pub(super) struct MuteWire;

#[async_trait]
impl Wire for MuteWire {
    async fn play(&self, _scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        Err(Unsupported::because("no words"))
    }
}
