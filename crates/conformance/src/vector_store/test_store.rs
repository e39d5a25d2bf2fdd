//! A vector store under test, with operations for the checks.

use std::sync::Arc;

use antiphon_core::MessageId;
use antiphon_core::port::{Embedding, Metadata, VectorHit, VectorSearch, VectorStore};
use uuid::Uuid;

use crate::suite::{During, Finding, Outcome, ensure};

/// Tolerance for single precision and normalization.
pub(super) const TOLERANCE: f32 = 1e-4;

#[derive(Clone)]
pub(super) struct TestStore {
    pub(super) store: Arc<dyn VectorStore>,
}

impl TestStore {
    pub(super) fn new(store: impl VectorStore + 'static) -> Self {
        Self { store: Arc::new(store) }
    }

    pub(super) async fn put(&self, n: u64, vector: &[f32], metadata: Metadata) -> Outcome {
        self.store.upsert(id(n), embedding(vector)?, metadata).await.during("upsert")
    }

    pub(super) async fn put_plain(&self, n: u64, vector: &[f32]) -> Outcome {
        self.put(n, vector, Metadata::new()).await
    }

    pub(super) async fn search(
        &self,
        query: &[f32],
        limit: usize,
        filter: Metadata,
    ) -> Result<Vec<VectorHit>, Finding> {
        let search = VectorSearch { query: embedding(query)?, limit, filter };
        self.store.search(search).await.during("search")
    }

    /// Ids found near `query`, without a filter.
    pub(super) async fn ids(&self, query: &[f32], limit: usize) -> Result<Vec<MessageId>, Finding> {
        let hits = self.search(query, limit, Metadata::new()).await?;
        Ok(hits.into_iter().map(|hit| hit.id).collect())
    }
}

/// The `n`th id; ids are in the order of their numbers.
pub(super) fn id(n: u64) -> MessageId {
    MessageId(Uuid::from_u64_pair(0x0197_0000_0000_7000, n))
}

pub(super) fn ids(numbers: &[u64]) -> Vec<MessageId> {
    numbers.iter().copied().map(id).collect()
}

pub(super) fn embedding(vector: &[f32]) -> Result<Embedding, Finding> {
    Embedding::new(vector.to_vec()).during("an embedding")
}

pub(super) fn notes(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(note, text)| ((*note).to_owned(), (*text).to_owned())).collect()
}

pub(super) fn near(what: &str, found: f32, expected: f32) -> Outcome {
    let is_near = (found - expected).abs() <= TOLERANCE;
    ensure!(is_near, "{what}: found {found}, expected {expected}");
    Ok(())
}
