//! Replacing and deleting.

use antiphon_core::MessageId;
use antiphon_core::port::{Hit, Metadata};
use tokio::task::JoinSet;

use super::gallery::{Gallery, id, ids, near, notes};
use crate::suite::{During, Finding, Outcome, equal};

const WRITERS: u64 = 16;

pub(super) async fn an_upsert_replaces_the_vector_and_its_notes(gallery: Gallery) -> Outcome {
    gallery.put(1, &[1.0, 0.0], notes(&[("kind", "old"), ("other", "old")])).await?;
    gallery.put(1, &[0.0, 1.0], notes(&[("kind", "new")])).await?;
    let hits = gallery.search(&[0.0, 1.0], 10, Metadata::new()).await?;
    equal("how many there are", &hits.len(), &1)?;
    near("its score", hits[0].score, 1.0)?;
    let expected = Hit { id: id(1), score: hits[0].score, metadata: notes(&[("kind", "new")]) };
    equal("what was found", &hits[0], &expected)?;
    let old = gallery.search(&[0.0, 1.0], 10, notes(&[("kind", "old")])).await?;
    equal("found by its old note", &old, &vec![])
}

pub(super) async fn a_deleted_vector_is_gone(gallery: Gallery) -> Outcome {
    for n in 1..=3 {
        gallery.put_plain(n, &[1.0, 0.0]).await?;
    }
    gallery.store.delete(id(2)).await.during("delete")?;
    equal("what is left", &sorted_ids(&gallery).await?, &ids(&[1, 3]))?;
    gallery.put_plain(2, &[1.0, 0.0]).await?;
    equal("put in again", &sorted_ids(&gallery).await?, &ids(&[1, 2, 3]))
}

pub(super) async fn deleting_says_whether_there_was_one(gallery: Gallery) -> Outcome {
    let absent = gallery.store.delete(id(1)).await.during("delete")?;
    equal("whether there was one in an empty store", &absent, &false)?;
    gallery.put_plain(1, &[1.0, 0.0]).await?;
    for (n, expected) in [(2, false), (1, true), (1, false)] {
        let was = gallery.store.delete(id(n)).await.during("delete")?;
        equal(&format!("whether there was a {n}"), &was, &expected)?;
    }
    Ok(())
}

pub(super) async fn vectors_put_in_at_once_are_all_there(gallery: Gallery) -> Outcome {
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let gallery = gallery.clone();
        writers.spawn(async move { gallery.put_plain(n, &[1.0, 0.0]).await });
    }
    while let Some(put) = writers.join_next().await {
        put.during("a writer")??;
    }
    let expected: Vec<_> = (0..WRITERS).map(id).collect();
    equal("what is there", &sorted_ids(&gallery).await?, &expected)
}

/// The order is another check.
async fn sorted_ids(gallery: &Gallery) -> Result<Vec<MessageId>, Finding> {
    let mut found = gallery.ids(&[1.0, 0.0], 100).await?;
    found.sort_unstable();
    Ok(found)
}
