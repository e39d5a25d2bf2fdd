//! Faults of the pieces of an answer.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use antiphon_core::StopReason;
use antiphon_core::port::{Piece, PieceSource, ProviderError};
use futures_core::Stream;

use super::mistaking::mistaken;
use super::{PieceFault, Shared};

/// Length at which a line is cut.
const LINE_BYTES: usize = 64 * 1024;

/// Number of deltas that is too many.
const DELTAS_MANY: usize = 10_000;

type Item = Result<Piece, ProviderError>;

pub(super) struct FaultySource {
    fault: PieceFault,
    inner: PieceSource,
    shared: Arc<Mutex<Shared>>,
    /// To be yielded first.
    queued: VecDeque<Item>,
    in_transit: Option<(Item, Waker)>,
    begun: bool,
    deltas: usize,
    /// Calls that have begun and not ended, with whether they have arguments.
    calls: BTreeMap<u32, bool>,
    latest_call: u32,
}

impl FaultySource {
    pub(super) fn new(fault: PieceFault, inner: PieceSource, shared: Arc<Mutex<Shared>>) -> Self {
        Self {
            fault,
            inner,
            shared,
            queued: VecDeque::new(),
            in_transit: None,
            begun: false,
            deltas: 0,
            calls: BTreeMap::new(),
            latest_call: 0,
        }
    }

    fn is(&self, fault: PieceFault) -> bool {
        self.fault == fault
    }

    /// The end, as the fault changes it.
    fn ended(&mut self) -> Option<Item> {
        if self.is(PieceFault::FinishesWhatWasCut) {
            let (block, _) = self.calls.pop_first()?;
            return Some(Ok(Piece::BlockEnd { block }));
        }
        None
    }

    fn failed(&self, error: ProviderError) -> Option<Item> {
        if self.deltas > 0 && self.is(PieceFault::TakesRefusalsForCuts) && error.is_transient() {
            return None;
        }
        Some(mistaken(self.fault, error))
    }

    /// A piece, as the fault changes it; none when it is lost.
    fn passed(&mut self, piece: Piece) -> Option<Piece> {
        match piece {
            Piece::Text { block, delta } => self.text(block, delta),
            Piece::ToolCall { block, id, name, arguments } => {
                Some(self.call(block, id, name, arguments))
            }
            Piece::BlockEnd { block } => {
                let silent = self.calls.remove(&block) == Some(false);
                if silent && self.is(PieceFault::SaysNullForNothing) {
                    self.queued.push_back(Ok(Piece::BlockEnd { block }));
                    let arguments = "null".to_owned();
                    return Some(Piece::ToolCall { block, id: None, name: None, arguments });
                }
                Some(Piece::BlockEnd { block })
            }
            Piece::Signature { .. } if self.is(PieceFault::DropsSignatures) => None,
            Piece::Model(_) if self.is(PieceFault::StaysAnonymous) => None,
            Piece::Alive if self.is(PieceFault::TakesLifeForText) => {
                Some(Piece::Text { block: 0, delta: ".".to_owned() })
            }
            Piece::Usage(mut usage) => {
                if self.is(PieceFault::ForgetsOutput) {
                    usage.output_tokens = 0;
                }
                usage.cache_read_tokens.take_if(|_| self.is(PieceFault::ForgetsCacheReads));
                usage.cache_write_tokens.take_if(|_| self.is(PieceFault::ForgetsCacheWrites));
                Some(Piece::Usage(usage))
            }
            Piece::Stop(mut stop) => {
                if self.is(PieceFault::TakesEveryStopForTheEnd) && stop.reason == StopReason::Length
                {
                    stop.reason = StopReason::EndTurn;
                }
                if self.is(PieceFault::LosesUnheardWords) && stop.reason == StopReason::Unknown {
                    stop.raw.clear();
                }
                Some(Piece::Stop(stop))
            }
            piece @ (Piece::Model(_)
            | Piece::Thinking { .. }
            | Piece::Signature { .. }
            | Piece::Opaque { .. }
            | Piece::Alive
            | Piece::Done) => Some(piece),
        }
    }

    fn text(&mut self, block: u32, mut delta: String) -> Option<Piece> {
        self.deltas += 1;
        if self.deltas > DELTAS_MANY && self.is(PieceFault::GivesUpAfterManyDeltas) {
            return None;
        }
        if self.is(PieceFault::StripsControlCharacters) {
            delta.retain(|c| !c.is_control());
        }
        if self.is(PieceFault::CutsLongDeltas) {
            delta.truncate(LINE_BYTES.min(delta.len()));
        }
        let mut shared = self.shared.lock().unwrap();
        if self.is(PieceFault::MixesAnswers) && shared.running > 1 {
            std::mem::swap(&mut shared.delta, &mut delta);
        }
        Some(Piece::Text { block, delta })
    }

    fn call(
        &mut self,
        mut block: u32,
        mut id: Option<String>,
        name: Option<String>,
        arguments: String,
    ) -> Piece {
        if name.is_some() {
            self.latest_call = block;
        } else if self.is(PieceFault::AddsToTheLatestCall) {
            block = self.latest_call;
        }
        if id.is_some() && self.is(PieceFault::MakesUpIds) {
            id = Some(format!("made_up_{block}"));
        }
        *self.calls.entry(block).or_default() |= !arguments.is_empty();
        Piece::ToolCall { block, id, name, arguments }
    }
}

impl Stream for FaultySource {
    type Item = Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let this = self.get_mut();
        if !this.begun {
            this.begun = true;
            this.shared.lock().unwrap().running += 1;
        }
        loop {
            if let Some(item) = this.queued.pop_front() {
                return Poll::Ready(Some(item));
            }
            if let Some((item, asked)) = this.in_transit.take()
                && asked.will_wake(cx.waker())
            {
                return Poll::Ready(Some(item));
            }
            let item = match ready!(this.inner.as_mut().poll_next(cx)) {
                None => return Poll::Ready(this.ended()),
                Some(Err(error)) => return Poll::Ready(this.failed(error)),
                Some(Ok(piece)) => this.passed(piece),
            };
            match item {
                Some(piece) if this.is(PieceFault::LosesWhatAnotherAskedFor) => {
                    this.in_transit = Some((Ok(piece), cx.waker().clone()));
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(piece) => return Poll::Ready(Some(Ok(piece))),
                None => {}
            }
        }
    }
}

impl Drop for FaultySource {
    fn drop(&mut self) {
        if self.begun {
            self.shared.lock().unwrap().running -= 1;
        }
    }
}
