//! Vector stores that are wrong in one respect each: a list that is searched from end to end.

use std::sync::Mutex;

use antiphon_core::MessageId;
use antiphon_core::port::{
    Embedding, Metadata, VectorHit, VectorSearch, VectorStore, VectorStoreError,
};
use async_trait::async_trait;
use tokio::task::yield_now;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    ClampsScores,
    TakesTheDotProduct,
    LeavesTiesAsTheyCame,
    RoundsLimitsUp,
    TakesZeroForUnlimited,
    FailsWhenEmpty,
    DividesByZero,
    OverlooksSomeOfMany,
    KeepsOldNotes,
    KeepsWhatIsDeleted,
    AlwaysDeletes,
    ForgetsRivals,
    MatchesAnyNote,
    FiltersAfterTheLimit,
    TakesDotsForPaths,
    FitsVectors,
    FitsQueries,
}

pub(super) struct FaultyStore {
    fault: Fault,
    rows: Mutex<Vec<Row>>,
}

#[derive(Clone)]
struct Row {
    id: MessageId,
    vector: Vec<f32>,
    metadata: Metadata,
    deleted: bool,
}

impl FaultyStore {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, rows: Mutex::default() }
    }

    fn put(&self, rows: &mut Vec<Row>, mut row: Row) {
        if let Some(place) = rows.iter().position(|other| other.id == row.id) {
            let mut old = rows.remove(place);
            if self.fault == Fault::KeepsOldNotes {
                old.metadata.extend(row.metadata);
                row.metadata = old.metadata;
            }
        }
        rows.push(row);
    }

    /// The components, if their number is the store's dimension.
    fn fitting(&self, embedding: &Embedding, fit: Fault) -> Result<Vec<f32>, VectorStoreError> {
        let mut vector = embedding.as_slice().to_vec();
        let rows = self.rows.lock().unwrap();
        let expected = rows.first().map_or(vector.len(), |row| row.vector.len());
        if vector.len() != expected && self.fault != fit {
            return Err(VectorStoreError::Dimension { expected, found: vector.len() });
        }
        vector.resize(expected, 0.0);
        Ok(vector)
    }

    fn score(&self, a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        if self.fault == Fault::TakesTheDotProduct {
            return dot(a, b);
        }
        let lengths = (dot(a, a) * dot(b, b)).sqrt();
        if lengths == 0.0 && self.fault != Fault::DividesByZero {
            return 0.0;
        }
        dot(a, b) / lengths
    }

    fn matches(&self, metadata: &Metadata, filter: &Metadata) -> bool {
        let matches = |(note, text): (&String, &String)| {
            let name = match note.split_once('.') {
                Some((first, _)) if self.fault == Fault::TakesDotsForPaths => first,
                Some(_) | None => note,
            };
            metadata.get(name) == Some(text)
        };
        if self.fault == Fault::MatchesAnyNote && !filter.is_empty() {
            filter.iter().any(matches)
        } else {
            filter.iter().all(matches)
        }
    }

    fn limit(&self, limit: usize) -> usize {
        if self.fault == Fault::RoundsLimitsUp && limit > 0 {
            limit.max(3)
        } else if self.fault == Fault::TakesZeroForUnlimited && limit == 0 {
            usize::MAX
        } else {
            limit
        }
    }
}

#[async_trait]
impl VectorStore for FaultyStore {
    async fn upsert(
        &self,
        id: MessageId,
        embedding: Embedding,
        metadata: Metadata,
    ) -> Result<(), VectorStoreError> {
        let vector = self.fitting(&embedding, Fault::FitsVectors)?;
        let row = Row { id, vector, metadata, deleted: false };
        if self.fault == Fault::ForgetsRivals {
            let mut rows = self.rows.lock().unwrap().clone();
            yield_now().await;
            self.put(&mut rows, row);
            *self.rows.lock().unwrap() = rows;
        } else {
            self.put(&mut self.rows.lock().unwrap(), row);
        }
        Ok(())
    }

    async fn search(&self, search: VectorSearch) -> Result<Vec<VectorHit>, VectorStoreError> {
        let query = self.fitting(&search.query, Fault::FitsQueries)?;
        let rows = self.rows.lock().unwrap();
        if rows.is_empty() && self.fault == Fault::FailsWhenEmpty {
            return Err(VectorStoreError::Unavailable { reason: "no such index".to_owned() });
        }
        let overlooks = self.fault == Fault::OverlooksSomeOfMany && rows.len() > 100;
        let mut hits: Vec<VectorHit> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| !row.deleted || self.fault == Fault::KeepsWhatIsDeleted)
            .filter(|(n, _)| !overlooks || n % 10 != 0)
            .map(|(_, row)| VectorHit {
                id: row.id,
                score: self.score(&query, &row.vector),
                metadata: row.metadata.clone(),
            })
            .collect();
        if self.fault != Fault::LeavesTiesAsTheyCame {
            hits.sort_by_key(|hit| hit.id);
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        if self.fault == Fault::FiltersAfterTheLimit {
            hits.truncate(search.limit);
        }
        hits.retain(|hit| self.matches(&hit.metadata, &search.filter));
        hits.truncate(self.limit(search.limit));
        if self.fault == Fault::ClampsScores {
            for hit in &mut hits {
                hit.score = hit.score.max(0.0);
            }
        }
        Ok(hits)
    }

    async fn delete(&self, id: MessageId) -> Result<bool, VectorStoreError> {
        let mut rows = self.rows.lock().unwrap();
        let Some(place) = rows.iter().position(|row| row.id == id && !row.deleted) else {
            return Ok(self.fault == Fault::AlwaysDeletes);
        };
        rows[place].deleted = true;
        Ok(true)
    }
}
