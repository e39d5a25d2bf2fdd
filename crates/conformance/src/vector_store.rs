//! The vector store's contract. Each check opens a store of its own, which must be empty and take
//! vectors of any dimension.
//!
//! ```
//! # use antiphon_conformance::{model::FlatVectorStore, vector_store};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! vector_store::check(async || FlatVectorStore::new()).await.unwrap();
//! # }
//! ```
//!
//! Scores are compared with a tolerance, since stores compute in single precision; equal vectors
//! are equally near all the same, and then ids decide.

mod dimension;
mod gallery;
mod nearness;
mod notes;
mod upkeep;

use std::time::Duration;

use antiphon_core::port::VectorStore;

use crate::suite::{self, Check, checks};
use crate::{Passed, Violations};
use gallery::Gallery;

/// How long a check may take. The longest puts in a thousand vectors, one after the other.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs every check against what `open` opens.
pub async fn check<V: VectorStore + 'static>(
    open: impl AsyncFn() -> V,
) -> Result<Passed, Violations> {
    suite::run(list(), LIMIT, async || Gallery::new(open().await)).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, Gallery>> {
    Vec::from(checks![Required:
        nearness::{
            the_nearest_come_first,
            length_does_not_count,
            equally_near_ones_come_in_the_order_of_their_ids,
            no_more_than_the_limit_are_found,
            a_limit_of_zero_finds_nothing,
            an_empty_store_finds_nothing,
            zeros_are_near_nothing,
            a_thousand_vectors_are_found_as_by_brute_force,
        },
        upkeep::{
            an_upsert_replaces_the_vector_and_its_notes,
            a_deleted_vector_is_gone,
            deleting_says_whether_there_was_one,
            vectors_put_in_at_once_are_all_there,
        },
        notes::{
            every_note_of_the_filter_has_to_match,
            the_filter_comes_before_the_limit,
            notes_hold_any_text,
        },
        dimension::{
            a_vector_of_another_dimension_is_refused_and_nothing_is_written,
            a_query_of_another_dimension_is_refused,
        },
    ])
}
