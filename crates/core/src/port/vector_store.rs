//! The ports to long-term memory: text into vectors, and vectors near a vector.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::MessageId;

/// Notes kept with a vector, to filter by.
pub type Metadata = BTreeMap<String, String>;

/// A vector of finite numbers, not empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding(Vec<f32>);

/// Why numbers are no embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// No numbers.
    #[error("an embedding must not be empty")]
    Empty,
    /// NaN or infinite.
    #[error("an embedding must be finite, component {index} is not")]
    NotFinite {
        /// Which.
        index: usize,
    },
}

impl Embedding {
    /// Takes finite numbers.
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

    /// How many there are.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The length of its vectors.
    fn dimension(&self) -> usize;

    /// One vector per text, in order.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError>;
}

/// Why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedderError {
    /// Split the text.
    #[error("text {index} is too long to embed")]
    TooLong {
        /// Which.
        index: usize,
    },
    /// Try later, or look at the configuration.
    #[error("the embedder is not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Keeps vectors and finds the nearest. All vectors of a store have one dimension, set by the
/// first. Nearness is cosine similarity; a vector of zeros is as near as 0 to everything.
#[async_trait]
pub trait VectorStore: Send + Sync {
    /// Puts a vector in, in place of one with the same id.
    async fn upsert(
        &self,
        id: MessageId,
        embedding: Embedding,
        metadata: Metadata,
    ) -> Result<(), VectorStoreError>;

    /// The nearest, best first; equally near ones in the order of their ids.
    async fn search(&self, search: Search) -> Result<Vec<Hit>, VectorStoreError>;

    /// Takes a vector out. Says whether there was one.
    async fn delete(&self, id: MessageId) -> Result<bool, VectorStoreError>;
}

/// What to look for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Near this.
    pub query: Embedding,
    /// At most this many.
    pub limit: usize,
    /// Only with all of these notes.
    pub filter: Metadata,
}

/// One vector that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Which.
    pub id: MessageId,
    /// Cosine similarity, from -1 to 1.
    pub score: f32,
    /// Its notes.
    pub metadata: Metadata,
}

/// Why a vector store did not do as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorStoreError {
    /// Use the embedder the store was filled with.
    #[error("this store holds vectors of dimension {expected}, not {found}")]
    Dimension {
        /// Of the store.
        expected: usize,
        /// Of the vector.
        found: usize,
    },
    /// Try later, or look at the configuration.
    #[error("the vector store is not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}
