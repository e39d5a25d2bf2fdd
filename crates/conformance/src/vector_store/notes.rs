//! Notes, and filtering by them.

use antiphon_core::MessageId;

use super::gallery::{Gallery, id, ids, notes};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn every_note_of_the_filter_has_to_match(gallery: Gallery) -> Outcome {
    let all = [
        notes(&[("agent", "a"), ("kind", "fact")]),
        notes(&[("agent", "a"), ("kind", "plan")]),
        notes(&[("agent", "b"), ("kind", "fact")]),
        notes(&[("agent", "a")]),
        notes(&[]),
    ];
    for (n, metadata) in (1..).zip(all) {
        gallery.put(n, &[1.0, 0.0], metadata).await?;
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
        let found = found(&gallery, 10, &filter).await?;
        equal(&format!("found with {filter:?}"), &found, &ids(&expected))?;
    }
    Ok(())
}

pub(super) async fn the_filter_comes_before_the_limit(gallery: Gallery) -> Outcome {
    for n in 1..=30 {
        gallery.put(n, &[1.0, 0.0], notes(&[("kind", "near")])).await?;
    }
    gallery.put(31, &[-1.0, 0.1], notes(&[("kind", "far")])).await?;
    let found = found(&gallery, 1, &[("kind", "far")]).await?;
    equal("the only one that matches", &found, &ids(&[31]))
}

/// Nothing in a note is a path, a pattern or a piece of a query.
pub(super) async fn notes_hold_any_text(gallery: Gallery) -> Outcome {
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
    gallery.put(1, &[1.0, 0.0], notes(&odd)).await?;
    gallery.put(2, &[1.0, 0.0], notes(&[("a", "b")])).await?;
    for pair in odd {
        let hits = gallery.search(&[1.0, 0.0], 10, notes(&[pair])).await?;
        let found: Vec<_> = hits.iter().map(|hit| (hit.id, &hit.metadata)).collect();
        equal(&format!("found with {pair:?}"), &found, &vec![(id(1), &notes(&odd))])?;
    }
    Ok(())
}

async fn found(
    gallery: &Gallery,
    limit: usize,
    filter: &[(&str, &str)],
) -> Result<Vec<MessageId>, Finding> {
    let hits = gallery.search(&[1.0, 0.0], limit, notes(filter)).await?;
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}
