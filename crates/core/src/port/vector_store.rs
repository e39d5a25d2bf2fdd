//! The ports to long-term memory: an embedder, and a store of vectors.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::MessageId;

/// Metadata of a vector, to filter by.
pub type Metadata = BTreeMap<String, String>;

/// A vector of finite numbers, not empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(Vec<f32>);

/// Why numbers are not an embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// There are no numbers.
    #[error("an embedding must not be empty")]
    Empty,
    /// A number is NaN or infinite.
    #[error("an embedding must be finite, component {index} is not")]
    NotFinite {
        /// Index of the number, from 0.
        index: usize,
    },
}

impl Embedding {
    /// Checks that there are numbers and all are finite.
    pub fn new(values: Vec<f32>) -> Result<Self, EmbeddingError> {
        if values.is_empty() {
            return Err(EmbeddingError::Empty);
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(EmbeddingError::NotFinite { index }),
            None => Ok(Self(values)),
        }
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// Number of components.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Number of components of its vectors.
    fn dimension(&self) -> usize;

    /// One vector per text, in order.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError>;
}

/// Why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderError {
    /// The text is too long: split it.
    #[error("text {index} is too long to embed")]
    TooLong {
        /// Index of the text, from 0.
        index: usize,
    },
    /// Try later, or check the configuration.
    #[error("the embedder is not available: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
}

/// Stores vectors and finds the nearest. All vectors of a store have one dimension, set by the
/// first. Nearness is cosine similarity; a vector of zeros has similarity 0 to everything.
#[async_trait]
pub trait VectorStore: Send + Sync {
    /// Stores a vector and replaces one with the same id.
    async fn upsert(
        &self,
        id: MessageId,
        embedding: Embedding,
        metadata: Metadata,
    ) -> Result<(), VectorStoreError>;

    /// The nearest vectors, best first; equally near ones in the order of their ids.
    async fn search(&self, search: VectorSearch) -> Result<Vec<VectorHit>, VectorStoreError>;

    /// Removes a vector. Returns whether it existed.
    async fn delete(&self, id: MessageId) -> Result<bool, VectorStoreError>;
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSearch {
    /// Vector to search near.
    pub query: Embedding,
    /// Most hits to return.
    pub limit: usize,
    /// Only vectors with all of this metadata.
    pub filter: Metadata,
}

/// One hit of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorHit {
    /// Id of the vector.
    pub id: MessageId,
    /// Cosine similarity, from -1 to 1.
    pub score: f32,
    /// Metadata of the vector.
    pub metadata: Metadata,
}

/// Why a vector store refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorStoreError {
    /// Use the embedder that the store was filled with.
    #[error("this store holds vectors of dimension {expected}, not {found}")]
    Dimension {
        /// Dimension of the store.
        expected: usize,
        /// Dimension of the vector.
        found: usize,
    },
    /// Try later, or check the configuration.
    #[error("the vector store is not available: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
}
