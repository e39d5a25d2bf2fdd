//! Proof of the vector store suite.

mod faulty_store;

use antiphon_conformance::reference::FlatVectorStore;
use antiphon_conformance::vector_store;

use crate::verdict::{each_check_has_a_fault, each_fault_is_caught_by_its_own_check};
use faulty_store::{Fault, FaultyStore};

const FAULTS: &[(Fault, &str)] = &[
    (Fault::ClampsScores, "the_nearest_come_first"),
    (Fault::TakesTheDotProduct, "length_does_not_count"),
    (Fault::LeavesTiesAsTheyCame, "equally_near_vectors_come_in_the_order_of_their_ids"),
    (Fault::RoundsLimitsUp, "no_more_than_the_limit_are_found"),
    (Fault::TakesZeroForUnlimited, "a_limit_of_zero_finds_nothing"),
    (Fault::FailsWhenEmpty, "an_empty_store_finds_nothing"),
    (Fault::DividesByZero, "a_vector_of_zeros_is_near_nothing"),
    (Fault::OverlooksSomeOfMany, "a_thousand_vectors_are_found_as_by_brute_force"),
    (Fault::KeepsOldNotes, "an_upsert_replaces_the_vector_and_its_metadata"),
    (Fault::KeepsWhatIsDeleted, "a_deleted_vector_is_gone"),
    (Fault::AlwaysDeletes, "deleting_returns_whether_the_vector_existed"),
    (Fault::ForgetsRivals, "vectors_stored_at_once_are_all_found"),
    (Fault::MatchesAnyNote, "every_field_of_the_filter_has_to_match"),
    (Fault::FiltersAfterTheLimit, "the_filter_comes_before_the_limit"),
    (Fault::TakesDotsForPaths, "metadata_holds_any_text"),
    (Fault::FitsVectors, "a_vector_of_another_dimension_is_refused_and_nothing_is_written"),
    (Fault::FitsQueries, "a_query_of_another_dimension_is_refused"),
];

#[tokio::test]
async fn the_flat_vector_store_keeps_the_contract() {
    let passed = vector_store::check(async || FlatVectorStore::new()).await.unwrap();
    assert_eq!(passed.checks, vector_store::checks());
}

#[tokio::test]
async fn each_fault_of_a_vector_store_is_caught_by_its_own_check() {
    each_check_has_a_fault(&vector_store::checks(), FAULTS);
    each_fault_is_caught_by_its_own_check(FAULTS, async |fault| {
        vector_store::check(async || FaultyStore::new(fault)).await
    })
    .await;
}
