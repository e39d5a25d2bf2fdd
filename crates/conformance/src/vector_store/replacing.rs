//! Replacing and deleting.

use antiphon_core::MessageId;
use antiphon_core::port::{Metadata, VectorHit};
use tokio::task::JoinSet;

use super::test_store::{TestStore, id, ids, near, notes};
use crate::suite::{During, Finding, Outcome, equal};

const WRITERS: u64 = 16;

pub(super) async fn an_upsert_replaces_the_vector_and_its_metadata(store: TestStore) -> Outcome {
    store.put(1, &[1.0, 0.0], notes(&[("kind", "old"), ("other", "old")])).await?;
    store.put(1, &[0.0, 1.0], notes(&[("kind", "new")])).await?;
    let hits = store.search(&[0.0, 1.0], 10, Metadata::new()).await?;
    equal("how many there are", &hits.len(), &1)?;
    near("its score", hits[0].score, 1.0)?;
    let expected =
        VectorHit { id: id(1), score: hits[0].score, metadata: notes(&[("kind", "new")]) };
    equal("what was found", &hits[0], &expected)?;
    let old = store.search(&[0.0, 1.0], 10, notes(&[("kind", "old")])).await?;
    equal("found by its old note", &old, &vec![])
}

pub(super) async fn a_deleted_vector_is_gone(store: TestStore) -> Outcome {
    for n in 1..=3 {
        store.put_plain(n, &[1.0, 0.0]).await?;
    }
    store.store.delete(id(2)).await.during("delete")?;
    equal("what is left", &sorted_ids(&store).await?, &ids(&[1, 3]))?;
    store.put_plain(2, &[1.0, 0.0]).await?;
    equal("put in again", &sorted_ids(&store).await?, &ids(&[1, 2, 3]))
}

pub(super) async fn deleting_returns_whether_the_vector_existed(store: TestStore) -> Outcome {
    let absent = store.store.delete(id(1)).await.during("delete")?;
    equal("whether there was one in an empty store", &absent, &false)?;
    store.put_plain(1, &[1.0, 0.0]).await?;
    for (n, expected) in [(2, false), (1, true), (1, false)] {
        let was = store.store.delete(id(n)).await.during("delete")?;
        equal(&format!("whether there was a {n}"), &was, &expected)?;
    }
    Ok(())
}

pub(super) async fn vectors_stored_at_once_are_all_found(store: TestStore) -> Outcome {
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move { store.put_plain(n, &[1.0, 0.0]).await });
    }
    while let Some(put) = writers.join_next().await {
        put.during("a writer")??;
    }
    let expected: Vec<_> = (0..WRITERS).map(id).collect();
    equal("what is there", &sorted_ids(&store).await?, &expected)
}

/// The order is another check.
async fn sorted_ids(store: &TestStore) -> Result<Vec<MessageId>, Finding> {
    let mut found = store.ids(&[1.0, 0.0], 100).await?;
    found.sort_unstable();
    Ok(found)
}
