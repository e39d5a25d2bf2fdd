//! The contract of vector stores. Each check opens its own, empty store, which must accept
//! vectors of any dimension.
//!
//! ```
//! # use antiphon_conformance::{reference::FlatVectorStore, vector_store};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! vector_store::check(async || FlatVectorStore::new()).await.unwrap();
//! # }
//! ```
//!
//! Scores are compared with a tolerance, since stores compute in single precision. Equal vectors
//! must have equal scores, and are ordered by id.

mod dimension;
mod metadata;
mod replacing;
mod similarity;
mod test_store;

use std::time::Duration;

use antiphon_core::port::VectorStore;

use crate::suite::{self, Check, checks};
use crate::{Passed, Violations};
use test_store::TestStore;

/// Time limit of a check. The longest stores a thousand vectors, one by one.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs every check, each against its own store from `open`.
pub async fn check<V: VectorStore + 'static>(
    open: impl AsyncFn() -> V,
) -> Result<Passed, Violations> {
    suite::run(list(), LIMIT, async || TestStore::new(open().await)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, TestStore>> {
    Vec::from(checks![Required:
        similarity::{
            the_nearest_come_first,
            length_does_not_count,
            equally_near_vectors_come_in_the_order_of_their_ids,
            no_more_than_the_limit_are_found,
            a_limit_of_zero_finds_nothing,
            an_empty_store_finds_nothing,
            a_vector_of_zeros_is_near_nothing,
            a_thousand_vectors_are_found_as_by_brute_force,
        },
        replacing::{
            an_upsert_replaces_the_vector_and_its_metadata,
            a_deleted_vector_is_gone,
            deleting_returns_whether_the_vector_existed,
            vectors_stored_at_once_are_all_found,
        },
        metadata::{
            every_field_of_the_filter_has_to_match,
            the_filter_comes_before_the_limit,
            metadata_holds_any_text,
        },
        dimension::{
            a_vector_of_another_dimension_is_refused_and_nothing_is_written,
            a_query_of_another_dimension_is_refused,
        },
    ])
}
