//! A provider made by hand: it says what it is told, whatever it is asked.

use std::sync::Arc;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_util::{StreamExt, stream};

/// Says these in order.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    items: Arc<[Result<Piece, ProviderError>]>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Ends,
    /// Nothing more comes, and no end.
    Hangs,
}

impl Said {
    pub(crate) fn new(items: Vec<Result<Piece, ProviderError>>, end: End) -> Self {
        Self { items: items.into(), end }
    }

    pub(crate) fn pieces(pieces: Vec<Piece>) -> Self {
        Self::new(pieces.into_iter().map(Ok).collect(), End::Ends)
    }

    pub(crate) fn failing(error: ProviderError) -> Self {
        Self::new(vec![Err(error)], End::Ends)
    }
}

impl Provider for Said {
    fn open(&self, _: Request) -> PieceSource {
        let items = stream::iter(self.items.to_vec()).then(|item| async {
            // Lets others in between.
            tokio::task::yield_now().await;
            item
        });
        match self.end {
            End::Ends => Box::pin(items),
            End::Hangs => Box::pin(items.chain(stream::pending())),
        }
    }
}

pub(crate) fn text(block: u32, delta: &str) -> Piece {
    Piece::Text { block, delta: delta.to_owned() }
}

pub(crate) fn arguments(block: u32, delta: &str) -> Piece {
    Piece::ToolCall { block, id: None, name: None, arguments: delta.to_owned() }
}
