//! A vector store that compares the query with every vector. Exact, and fast enough for
//! ten thousand vectors.
//!
//! | question the port leaves open            | answer                                       |
//! |------------------------------------------|----------------------------------------------|
//! | how near is a vector of zeros            | 0 to everything, never NaN                   |
//! | which dimension after the last delete    | the first one, still                         |
//! | a search in an empty store               | finds nothing, for any dimension             |
//! | a limit of 0                             | finds nothing                                |

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{PoisonError, RwLock};

use antiphon_core::MessageId;
use antiphon_core::port::{
    Embedding, Metadata, VectorHit, VectorSearch, VectorStore, VectorStoreError,
};
use async_trait::async_trait;

/// Most vectors in one store. One more is [`VectorStoreError::Unavailable`].
pub const VECTORS_MAX: usize = 1_000_000;

/// A vector store in memory.
#[derive(Debug, Default)]
pub struct FlatVectorStore {
    stock: RwLock<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    dimension: Option<usize>,
    vectors: BTreeMap<MessageId, StoredVector>,
}

#[derive(Debug)]
struct StoredVector {
    embedding: Embedding,
    norm: f64,
    metadata: Metadata,
}

impl FlatVectorStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl VectorStore for FlatVectorStore {
    async fn upsert(
        &self,
        id: MessageId,
        embedding: Embedding,
        metadata: Metadata,
    ) -> Result<(), VectorStoreError> {
        let mut stock = self.stock.write().unwrap_or_else(PoisonError::into_inner);
        stock.check_dimension(&embedding)?;
        if stock.vectors.len() >= VECTORS_MAX && !stock.vectors.contains_key(&id) {
            return Err(VectorStoreError::Unavailable {
                reason: format!("it is kept in memory, {VECTORS_MAX} vectors at most"),
            });
        }
        stock.dimension = Some(embedding.dimension());
        let stored = StoredVector { norm: norm(&embedding), embedding, metadata };
        stock.vectors.insert(id, stored);
        Ok(())
    }

    async fn search(&self, search: VectorSearch) -> Result<Vec<VectorHit>, VectorStoreError> {
        let stock = self.stock.read().unwrap_or_else(PoisonError::into_inner);
        stock.check_dimension(&search.query)?;
        let query_norm = norm(&search.query);
        // The worst of the best is on top, to be replaced by a better one.
        let mut best = BinaryHeap::new();
        for (id, stored) in &stock.vectors {
            if !stored.matches(&search.filter) {
                continue;
            }
            let score = cosine(&search.query, query_norm, &stored.embedding, stored.norm);
            best.push(Candidate { score, id: *id });
            if best.len() > search.limit {
                best.pop();
            }
        }
        let hit = |candidate: Candidate| {
            let stored = stock.vectors.get(&candidate.id)?;
            Some(VectorHit {
                id: candidate.id,
                score: candidate.score,
                metadata: stored.metadata.clone(),
            })
        };
        Ok(best.into_sorted_vec().into_iter().filter_map(hit).collect())
    }

    async fn delete(&self, id: MessageId) -> Result<bool, VectorStoreError> {
        let mut stock = self.stock.write().unwrap_or_else(PoisonError::into_inner);
        Ok(stock.vectors.remove(&id).is_some())
    }
}

impl Stock {
    fn check_dimension(&self, embedding: &Embedding) -> Result<(), VectorStoreError> {
        match self.dimension {
            Some(expected) if expected != embedding.dimension() => {
                Err(VectorStoreError::Dimension { expected, found: embedding.dimension() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl StoredVector {
    fn matches(&self, filter: &Metadata) -> bool {
        filter.iter().all(|(note, text)| self.metadata.get(note) == Some(text))
    }
}

/// Less is better: a higher score, then a lower id.
#[derive(Debug)]
struct Candidate {
    score: f32,
    id: MessageId,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

fn norm(embedding: &Embedding) -> f64 {
    dot(embedding, embedding).sqrt()
}

/// In double precision: the squares of the largest `f32` still fit.
fn dot(a: &Embedding, b: &Embedding) -> f64 {
    let pairs = a.as_slice().iter().zip(b.as_slice());
    pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[expect(clippy::cast_possible_truncation, reason = "a number from -1 to 1 loses digits only")]
fn cosine(a: &Embedding, a_norm: f64, b: &Embedding, b_norm: f64) -> f32 {
    let norms = a_norm * b_norm;
    if norms == 0.0 {
        return 0.0;
    }
    // Rounding may leave the range slightly. Adding 0 turns -0 into 0, which sorts differently.
    ((dot(a, b) / norms).clamp(-1.0, 1.0) + 0.0) as f32
}
