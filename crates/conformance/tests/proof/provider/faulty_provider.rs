//! Providers that are wrong in one respect each.

mod faulty_source;
mod mistaking;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use antiphon_conformance::reference::ScenarioProvider;
use antiphon_core::Request;
use antiphon_core::port::{PieceSource, Provider};
use futures_core::Stream;
use futures_util::{StreamExt, stream};

use faulty_source::FaultySource;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PieceFault {
    LosesWhatAnotherAskedFor,
    StripsControlCharacters,
    CutsLongDeltas,
    GivesUpAfterManyDeltas,
    DropsSignatures,
    TakesLifeForText,
    SaysNullForNothing,
    FinishesWhatWasCut,
    AddsToTheLatestCall,
    MakesUpIds,
    TakesEveryStopForTheEnd,
    LosesUnheardWords,
    ForgetsOutput,
    ForgetsCacheReads,
    ForgetsCacheWrites,
    StaysAnonymous,
    MistakesInvalidRequests,
    MistakesAuthentication,
    ForgetsHowLongToWait,
    MistakesServerFaults,
    MistakesPermission,
    MistakesNotFound,
    MistakesOverflow,
    MistakesOverload,
    TakesRefusalsForCuts,
    SkipsGarbage,
    MixesAnswers,
    SendsAtOnce,
    TriesAgain,
}

/// A correct provider behind a faulty one.
pub(super) struct FaultyProvider {
    fault: PieceFault,
    inner: Arc<ScenarioProvider>,
    shared: Arc<Mutex<Shared>>,
}

/// State that the answers of one provider wrongly share.
#[derive(Default)]
struct Shared {
    running: usize,
    delta: String,
}

impl FaultyProvider {
    pub(super) fn new(fault: PieceFault, inner: ScenarioProvider) -> Self {
        Self { fault, inner: Arc::new(inner), shared: Arc::default() }
    }
}

impl Provider for FaultyProvider {
    fn open(&self, request: Request) -> PieceSource {
        let mut source = self.inner.open(request.clone());
        if self.fault == PieceFault::SendsAtOnce {
            let early: Vec<_> = begin(source.as_mut()).into_iter().collect();
            source = Box::pin(stream::iter(early).chain(source));
        }
        if self.fault == PieceFault::TriesAgain {
            let inner = Arc::clone(&self.inner);
            let again = stream::once(async move { drop(begin(inner.open(request).as_mut())) });
            source = Box::pin(source.chain(again.filter_map(async |()| None)));
        }
        Box::pin(FaultySource::new(self.fault, source, Arc::clone(&self.shared)))
    }
}

/// Polls until the request is sent, and returns what arrived by then.
fn begin<S: Stream + ?Sized>(mut source: Pin<&mut S>) -> Option<S::Item> {
    let mut noop = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        if let Poll::Ready(item) = source.as_mut().poll_next(&mut noop) {
            return item;
        }
    }
    None
}
