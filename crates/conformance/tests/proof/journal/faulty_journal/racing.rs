//! Faults that show only with concurrent writers.

use std::sync::atomic::Ordering;

use antiphon_core::port::{Append, Appended, Expected, JournalError, JournalLog};
use antiphon_core::{Position, Seq};
use tokio::task::yield_now;

use super::FaultyJournal;

type Answer = Result<Appended, JournalError>;

impl FaultyJournal {
    /// Checks, then waits, then writes without checking again.
    pub(super) async fn looking_up_keys_too_early(&self, mut append: Append) -> Answer {
        append.check_shape()?;
        let Some(key) = append.key.take() else {
            return self.inner.append(append).await;
        };
        let known = self.answers.lock().unwrap().get(&key).cloned();
        if let Some(Ok(first)) = known {
            return Ok(Appended { deduplicated: true, ..first });
        }
        yield_now().await;
        let answer = self.inner.append(append).await?;
        self.answers.lock().unwrap().insert(key, Ok(answer.clone()));
        Ok(answer)
    }

    pub(super) async fn checking_writers_too_early(&self, mut append: Append) -> Answer {
        let actual = self.seq(&append.task_id).await;
        if actual == Seq(0) || append.expected != Expected::At(actual) {
            return self.inner.append(append).await;
        }
        yield_now().await;
        append.expected = Expected::At(self.seq(&append.task_id).await);
        self.inner.append(append).await
    }

    pub(super) async fn answering_with_the_head(&self, append: Append) -> Answer {
        let answer = self.inner.append(append).await?;
        if answer.deduplicated {
            return Ok(answer);
        }
        yield_now().await;
        Ok(Appended { position: self.head().await, ..answer })
    }

    pub(super) async fn writing_slowly(&self, append: Append) -> Answer {
        self.writing.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.append(append).await;
        yield_now().await;
        self.writing.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    pub(super) fn has_writer(&self) -> bool {
        self.writing.load(Ordering::Relaxed) > 0
    }

    pub(super) async fn head(&self) -> Position {
        self.events(None).await.last().map_or(Position(0), |event| event.position)
    }
}
