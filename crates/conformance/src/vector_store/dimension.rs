//! One store has one dimension.

use antiphon_core::port::{Metadata, VectorSearch, VectorStoreError};

use super::test_store::{TestStore, embedding, id, notes};
use crate::suite::{Outcome, equal};

pub(super) async fn a_vector_of_another_dimension_is_refused_and_nothing_is_written(
    store: TestStore,
) -> Outcome {
    store.put(1, &[1.0, 0.0], notes(&[("kind", "first")])).await?;
    let before = store.search(&[1.0, 0.0], 10, Metadata::new()).await?;
    for (n, vector) in [(1, &[1.0, 0.0, 0.0][..]), (2, &[1.0][..])] {
        let answer =
            store.store.upsert(id(n), embedding(vector)?, notes(&[("kind", "second")])).await;
        let expected = Err(VectorStoreError::Dimension { expected: 2, found: vector.len() });
        equal("the refusal", &answer, &expected)?;
    }
    let after = store.search(&[1.0, 0.0], 10, Metadata::new()).await?;
    equal("the store after a refused upsert", &after, &before)
}

pub(super) async fn a_query_of_another_dimension_is_refused(store: TestStore) -> Outcome {
    store.put_plain(1, &[1.0, 0.0]).await?;
    let search =
        VectorSearch { query: embedding(&[1.0, 0.0, 0.0])?, limit: 10, filter: Metadata::new() };
    let expected = Err(VectorStoreError::Dimension { expected: 2, found: 3 });
    equal("the refusal", &store.store.search(search).await, &expected)
}
