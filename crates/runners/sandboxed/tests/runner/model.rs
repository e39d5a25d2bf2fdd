//! A model that says what the test wants, when it wants.

use std::sync::{Arc, Mutex};

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, PieceSource, Provider, Request, StopReason};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;

/// A model whose one answer comes piece by piece. Further answers are `done`.
pub(crate) struct PiecewiseModel {
    pieces: Mutex<Option<mpsc::Receiver<String>>>,
    /// Says how often it was asked.
    pub(crate) requested: Arc<Mutex<usize>>,
    /// Says how many answers are being read.
    pub(crate) reading: Arc<()>,
}

impl PiecewiseModel {
    pub(crate) fn new() -> (Self, mpsc::Sender<String>) {
        let (sender, pieces) = mpsc::channel(1);
        let pieces = Mutex::new(Some(pieces));
        (Self { pieces, requested: Arc::default(), reading: Arc::default() }, sender)
    }
}

impl Provider for PiecewiseModel {
    fn open(&self, _: Request) -> PieceSource {
        *self.requested.lock().unwrap() += 1;
        let reading = Arc::clone(&self.reading);
        let reported = self.pieces.lock().unwrap().take();
        let text = |delta: String| Piece::Text { block: 0, delta };
        let texts = match reported {
            Some(reported) => {
                let next = |mut reported: mpsc::Receiver<String>| async move {
                    reported.recv().await.map(|text| (text, reported))
                };
                stream::unfold(reported, next).map(text).boxed()
            }
            None => stream::iter(["done".to_owned()]).map(text).boxed(),
        };
        let stop = StopSignal { reason: StopReason::EndTurn, raw: "end".to_owned() };
        let end = stream::iter([Piece::Stop(stop), Piece::Done]);
        let model = Piece::Model(ModelRef::parse("scripted/test").unwrap());
        let pieces = stream::iter([model]).chain(texts).chain(end);
        Box::pin(pieces.map(move |piece| {
            drop(Arc::clone(&reading));
            Ok(piece)
        }))
    }
}
