//! Proof of the provider suite.

mod faulty_answer;
mod faulty_provider;
mod faulty_wire;

use antiphon_conformance::provider;
use antiphon_conformance::reference::ScenarioWire;

use crate::verdict::{each_check_has_a_fault, each_fault_is_caught_by_its_own_check};
use faulty_answer::AnswerFault::{self, *};
use faulty_provider::PieceFault::{self, *};
use faulty_wire::{FaultyWire, MuteWire, UnsignedWire};

const ANSWER_FAULTS: &[(AnswerFault, &str)] = &[
    (HasAMessageTooEarly, "there_is_no_message_before_the_first_next"),
    (HidesThePartial, "the_message_of_a_running_answer_is_partial"),
    (SplitsTheWhole, "the_message_of_a_complete_answer_is_whole"),
    (EndsTwiceOnly, "the_end_is_repeated"),
    (ForgetsErrors, "an_error_is_repeated"),
    (ForgetsTextWhenCut, "an_interrupted_answer_keeps_its_text"),
    (ForgetsThatItIsClosed, "an_answer_that_is_closed_early_is_partial_and_aborted"),
    (AbortsWhatIsWhole, "an_answer_that_is_closed_at_its_end_stays_whole"),
    (LooksForCancelBetweenReads, "canceling_unblocks_a_stalled_next"),
    (CallsCanceledAnError, "a_canceled_answer_is_partial_and_aborted"),
    (SendsBeforeItLooksForCancel, "an_answer_that_is_canceled_before_it_begins_is_empty"),
    (TellsThinkingAsText, "thinking_is_kept_apart_from_text"),
    (ForgetsTheEndOfACall, "a_call_begins_grows_and_ends"),
    (SortsCalls, "parallel_calls_keep_their_order"),
    (ParsesArguments, "the_bytes_of_arguments_survive"),
    (MendsArguments, "truncated_arguments_are_malformed"),
    (RepeatsIds, "a_repeated_id_is_made_unique"),
    (ForgetsWhatACutCost, "the_usage_of_an_interrupted_answer_is_kept"),
    (LeaksWhenDropped, "dropping_an_answer_ends_its_request"),
    (LeaksWhenClosed, "closing_an_answer_ends_its_request"),
];

const PIECE_FAULTS: &[(PieceFault, &str)] = &[
    (LosesWhatAnotherAskedFor, "a_dropped_next_has_consumed_nothing"),
    (StripsControlCharacters, "odd_text_survives"),
    (CutsLongDeltas, "a_delta_of_a_megabyte_survives"),
    (GivesUpAfterManyDeltas, "twenty_thousand_deltas_survive"),
    (DropsSignatures, "a_signature_is_kept"),
    (TakesLifeForText, "keep_alives_are_not_seen"),
    (SaysNullForNothing, "no_arguments_are_an_empty_object"),
    (FinishesWhatWasCut, "a_partial_message_never_holds_an_unfinished_call"),
    (AddsToTheLatestCall, "interleaved_calls_are_separated"),
    (MakesUpIds, "the_id_of_a_call_survives"),
    (TakesEveryStopForTheEnd, "stop_reasons_are_distinguished"),
    (LosesUnheardWords, "an_unknown_stop_word_is_kept"),
    (ForgetsOutput, "usage_is_counted"),
    (ForgetsCacheReads, "tokens_read_from_a_cache_are_counted"),
    (ForgetsCacheWrites, "tokens_written_to_a_cache_are_counted"),
    (StaysAnonymous, "an_answer_says_who_wrote_it"),
    (MistakesInvalidRequests, "a_refused_request_is_invalid"),
    (MistakesAuthentication, "a_refused_key_is_an_authentication_error"),
    (ForgetsHowLongToWait, "a_rate_limit_says_how_long_to_wait"),
    (MistakesServerFaults, "a_fault_at_the_provider_is_a_server_error"),
    (MistakesPermission, "a_key_without_permission_is_a_permission_error"),
    (MistakesNotFound, "a_model_that_does_not_exist_is_not_found"),
    (MistakesOverflow, "a_conversation_too_long_is_an_overflow"),
    (MistakesOverload, "an_overloaded_provider_says_so"),
    (TakesRefusalsForCuts, "a_refusal_in_mid_answer_keeps_the_text"),
    (SkipsGarbage, "garbage_is_a_protocol_error"),
    (MixesAnswers, "two_answers_at_once_do_not_mix"),
    (SendsAtOnce, "nothing_is_sent_before_the_first_next"),
    (TriesAgain, "an_answer_is_one_request"),
];

#[tokio::test(start_paused = true)]
async fn the_scenario_provider_keeps_the_contract() {
    let passed = provider::check(&ScenarioWire).await.unwrap();
    assert_eq!(passed.checks, provider::checks());
}

#[test]
fn each_check_of_a_provider_has_a_fault() {
    let answers = ANSWER_FAULTS.iter().map(|(_, check)| ((), *check));
    let pieces = PIECE_FAULTS.iter().map(|(_, check)| ((), *check));
    each_check_has_a_fault(&provider::checks(), &answers.chain(pieces).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_an_answer_is_caught_by_its_own_check() {
    each_fault_is_caught_by_its_own_check(ANSWER_FAULTS, async |fault| {
        provider::check(&FaultyWire::Answer(fault)).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_provider_is_caught_by_its_own_check() {
    each_fault_is_caught_by_its_own_check(PIECE_FAULTS, async |fault| {
        provider::check(&FaultyWire::Pieces(fault)).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn checks_that_a_wire_has_no_words_for_are_skipped() {
    let passed = provider::check(&UnsignedWire).await.unwrap();
    assert_eq!(
        passed.skipped_checks(),
        [
            "a_signature_is_kept",
            "nothing_is_sent_before_the_first_next",
            "an_answer_is_one_request",
            "dropping_an_answer_ends_its_request",
            "closing_an_answer_ends_its_request",
        ]
    );
    assert_eq!(passed.skipped[0].reason, "no signatures");
}

#[tokio::test(start_paused = true)]
async fn checks_that_every_wire_has_words_for_are_not_skipped() {
    let violations = provider::check(&MuteWire).await.unwrap_err();
    assert_eq!(violations.checks().first(), Some(&"there_is_no_message_before_the_first_next"));
    assert!(!violations.checks().contains(&"a_signature_is_kept"));
    assert!(violations.to_string().contains("cannot be skipped: no words"));
}
