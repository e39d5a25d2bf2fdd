//! Metadata, and filters on it.

use antiphon_core::MessageId;

use super::test_store::{TestStore, id, ids, notes};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn every_field_of_the_filter_has_to_match(store: TestStore) -> Outcome {
    let all = [
        notes(&[("agent", "a"), ("kind", "fact")]),
        notes(&[("agent", "a"), ("kind", "plan")]),
        notes(&[("agent", "b"), ("kind", "fact")]),
        notes(&[("agent", "a")]),
        notes(&[]),
    ];
    for (n, metadata) in (1..).zip(all) {
        store.put(n, &[1.0, 0.0], metadata).await?;
    }
    let cases = [
        (vec![], vec![1, 2, 3, 4, 5]),
        (vec![("agent", "a")], vec![1, 2, 4]),
        (vec![("agent", "a"), ("kind", "fact")], vec![1]),
        (vec![("agent", "A")], vec![]),
        (vec![("agent", "")], vec![]),
        (vec![("nobody", "a")], vec![]),
    ];
    for (filter, expected) in cases {
        let found = found(&store, 10, &filter).await?;
        equal(&format!("found with {filter:?}"), &found, &ids(&expected))?;
    }
    Ok(())
}

pub(super) async fn the_filter_comes_before_the_limit(store: TestStore) -> Outcome {
    for n in 1..=30 {
        store.put(n, &[1.0, 0.0], notes(&[("kind", "near")])).await?;
    }
    store.put(31, &[-1.0, 0.1], notes(&[("kind", "far")])).await?;
    let found = found(&store, 1, &[("kind", "far")]).await?;
    equal("the only one that matches", &found, &ids(&[31]))
}

/// No text in metadata is a path, a pattern or part of a query.
pub(super) async fn metadata_holds_any_text(store: TestStore) -> Outcome {
    let odd = [
        ("a.b", "1"),
        ("a b", "é\u{1F600}"),
        ("", "empty name"),
        ("empty text", ""),
        ("quote\"'`", "'; drop table vectors; --"),
        ("$ne", "%"),
        ("[0]", "line\nline"),
        ("id", "3"),
    ];
    store.put(1, &[1.0, 0.0], notes(&odd)).await?;
    store.put(2, &[1.0, 0.0], notes(&[("a", "b")])).await?;
    for pair in odd {
        let hits = store.search(&[1.0, 0.0], 10, notes(&[pair])).await?;
        let found: Vec<_> = hits.iter().map(|hit| (hit.id, &hit.metadata)).collect();
        equal(&format!("found with {pair:?}"), &found, &vec![(id(1), &notes(&odd))])?;
    }
    Ok(())
}

async fn found(
    store: &TestStore,
    limit: usize,
    filter: &[(&str, &str)],
) -> Result<Vec<MessageId>, Finding> {
    let hits = store.search(&[1.0, 0.0], limit, notes(filter)).await?;
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}
