//! Similarity, and the order of results.

use antiphon_core::port::Metadata;

use super::test_store::{TOLERANCE, TestStore, id, ids, near};
use crate::suite::{Outcome, ensure, equal};

const DIMENSION: usize = 16;
const VECTORS: u64 = 1000;

pub(super) async fn the_nearest_come_first(store: TestStore) -> Outcome {
    store.put_plain(1, &[-1.0, 0.0]).await?;
    store.put_plain(2, &[0.0, 1.0]).await?;
    store.put_plain(3, &[0.6, 0.8]).await?;
    store.put_plain(4, &[1.0, 0.0]).await?;
    let hits = store.search(&[1.0, 0.0], 10, Metadata::new()).await?;
    let found: Vec<_> = hits.iter().map(|hit| hit.id).collect();
    equal("the ids", &found, &ids(&[4, 3, 2, 1]))?;
    let scores = [1.0, 0.6, 0.0, -1.0];
    for (hit, score) in hits.iter().zip(scores) {
        near("a score", hit.score, score)?;
    }
    Ok(())
}

pub(super) async fn length_does_not_count(store: TestStore) -> Outcome {
    store.put_plain(1, &[1000.0, 1000.0]).await?;
    store.put_plain(2, &[0.001, 0.0]).await?;
    equal("the nearest first", &store.ids(&[50.0, 0.0], 10).await?, &ids(&[2, 1]))
}

pub(super) async fn equally_near_vectors_come_in_the_order_of_their_ids(
    store: TestStore,
) -> Outcome {
    for n in [3, 1, 5, 2, 4] {
        store.put_plain(n, &[0.3, 0.4]).await?;
    }
    equal("the ids", &store.ids(&[1.0, 0.0], 10).await?, &ids(&[1, 2, 3, 4, 5]))?;
    equal("the first", &store.ids(&[1.0, 0.0], 3).await?, &ids(&[1, 2, 3]))
}

pub(super) async fn no_more_than_the_limit_are_found(store: TestStore) -> Outcome {
    for (n, y) in (1..).zip([0.0, 1.0, 2.0, 3.0, 4.0]) {
        store.put_plain(n, &[1.0, y]).await?;
    }
    for limit in [1, 3, 5] {
        let found = store.ids(&[1.0, 0.0], limit).await?.len();
        equal(&format!("found with a limit of {limit}"), &found, &limit)?;
    }
    let found = store.ids(&[1.0, 0.0], 100).await?.len();
    equal("found with a limit of 100", &found, &5)
}

pub(super) async fn a_limit_of_zero_finds_nothing(store: TestStore) -> Outcome {
    store.put_plain(1, &[1.0, 0.0]).await?;
    equal("found", &store.ids(&[1.0, 0.0], 0).await?, &vec![])
}

pub(super) async fn an_empty_store_finds_nothing(store: TestStore) -> Outcome {
    equal("found", &store.ids(&[1.0, 0.0], 10).await?, &vec![])
}

/// A vector of zeros has no cosine. It counts as 0, never as NaN.
pub(super) async fn a_vector_of_zeros_is_near_nothing(store: TestStore) -> Outcome {
    store.put_plain(1, &[0.0, 0.0]).await?;
    store.put_plain(2, &[1.0, 0.1]).await?;
    store.put_plain(3, &[-1.0, 0.0]).await?;
    let hits = store.search(&[1.0, 0.0], 10, Metadata::new()).await?;
    let found: Vec<_> = hits.iter().map(|hit| hit.id).collect();
    equal("the ids", &found, &ids(&[2, 1, 3]))?;
    near("the score of zeros", hits[1].score, 0.0)?;
    let hits = store.search(&[0.0, 0.0], 10, Metadata::new()).await?;
    equal("found near zeros", &hits.len(), &3)?;
    for hit in hits {
        near("a score near zeros", hit.score, 0.0)?;
    }
    Ok(())
}

pub(super) async fn a_thousand_vectors_are_found_as_by_brute_force(store: TestStore) -> Outcome {
    let mut numbers = Numbers(1);
    let vectors: Vec<[f32; DIMENSION]> = (0..VECTORS).map(|_| numbers.vector()).collect();
    for (n, vector) in (0..).zip(&vectors) {
        store.put_plain(n, vector).await?;
    }
    for _ in 0..5 {
        let query = numbers.vector();
        let mut expected: Vec<_> =
            (0..).zip(&vectors).map(|(n, vector)| (cosine(&query, vector), id(n))).collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0));
        let hits = store.search(&query, 20, Metadata::new()).await?;
        equal("how many are found", &hits.len(), &20)?;
        for (hit, (score, _)) in hits.iter().zip(&expected) {
            near("a score", hit.score, *score)?;
            let own = expected.iter().find(|(_, id)| *id == hit.id);
            ensure!(
                own.is_some_and(|(own, _)| (own - score).abs() <= 2.0 * TOLERANCE),
                "{} stands where a score of {score} belongs, its own is {own:?}",
                hit.id
            );
        }
    }
    Ok(())
}

/// The cosine of vectors of length 1.
fn cosine(a: &[f32; DIMENSION], b: &[f32; DIMENSION]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Reproducible pseudorandom numbers (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    /// A vector of length 1.
    fn vector(&mut self) -> [f32; DIMENSION] {
        let vector: [f32; DIMENSION] = std::array::from_fn(|_| self.next());
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.map(|x| x / length)
    }

    /// A number from -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let [.., high, low] = z.to_be_bytes();
        f32::from(i16::from_be_bytes([high, low])) / f32::from(i16::MAX)
    }
}
