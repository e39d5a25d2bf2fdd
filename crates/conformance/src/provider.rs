//! The contract of providers: what a reader of an answer gets, on every wire.
//!
//! A provider is put on a [`Wire`], which turns a [`Scenario`] into the bytes of its protocol and
//! serves them. Each check plays a scenario and reads it through
//! [`MessageStream`](antiphon_core::MessageStream).
//!
//! ```
//! # use antiphon_conformance::{reference::ScenarioWire, provider};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let passed = provider::check(&ScenarioWire).await.unwrap();
//! assert!(passed.skipped_checks().is_empty());
//! # }
//! ```
//!
//! A wire that cannot express a scenario returns [`Unsupported`], and the check is skipped;
//! checks that every wire can express are never skipped.

mod answer;
mod calls;
mod cancel;
mod ending;
mod reader;
mod refusal;
mod scenario;
mod sending;
mod states;
mod text;
mod transcript;
mod wire;

use std::time::Duration;

pub use answer::Answer;
pub use scenario::{Ending, Refusal, Scenario, Step, StopWord};
pub use wire::{Stage, Traffic, Unsupported, Wire};

use crate::suite::{self, Check, checks};
use crate::{Passed, Violations};

/// How long a check may take. The longest sends a hundred thousand deltas over the wire.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs every check over `wire`.
pub async fn check(wire: &dyn Wire) -> Result<Passed, Violations> {
    suite::run(list(), LIMIT, async || wire).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list<'a>() -> Vec<Check<'a, &'a dyn Wire>> {
    required().into_iter().chain(optional()).collect()
}

fn required<'a>() -> Vec<Check<'a, &'a dyn Wire>> {
    Vec::from(checks![Required:
        states::{
            there_is_no_message_before_the_first_next,
            the_message_of_a_running_answer_is_partial,
            the_message_of_a_complete_answer_is_whole,
            the_end_is_repeated,
            an_error_is_repeated,
            an_interrupted_answer_keeps_its_text,
            an_answer_that_is_closed_early_is_partial_and_aborted,
            an_answer_that_is_closed_at_its_end_stays_whole,
        },
        cancel::{
            canceling_unblocks_a_stalled_next,
            a_canceled_answer_is_partial_and_aborted,
            an_answer_that_is_canceled_before_it_begins_is_empty,
            a_dropped_next_has_consumed_nothing,
        },
        text::{
            odd_text_survives,
            a_delta_of_a_megabyte_survives,
            twenty_thousand_deltas_survive,
        },
        calls::{
            a_call_begins_grows_and_ends,
            parallel_calls_keep_their_order,
            no_arguments_are_an_empty_object,
            the_bytes_of_arguments_survive,
            a_partial_message_never_holds_an_unfinished_call,
        },
        ending::{
            stop_reasons_are_distinguished,
            usage_is_counted,
            an_answer_says_who_wrote_it,
        },
        refusal::{
            a_refused_request_is_invalid,
            a_refused_key_is_an_authentication_error,
            a_rate_limit_says_how_long_to_wait,
            a_fault_at_the_provider_is_a_server_error,
        },
        sending::{
            two_answers_at_once_do_not_mix,
        },
    ])
}

fn optional<'a>() -> Vec<Check<'a, &'a dyn Wire>> {
    Vec::from(checks![Optional:
        text::{
            thinking_is_kept_apart_from_text,
            a_signature_is_kept,
            keep_alives_are_not_seen,
        },
        calls::{
            interleaved_calls_are_separated,
            truncated_arguments_are_malformed,
            the_id_of_a_call_survives,
            a_repeated_id_is_made_unique,
        },
        ending::{
            an_unknown_stop_word_is_kept,
            tokens_read_from_a_cache_are_counted,
            tokens_written_to_a_cache_are_counted,
            the_usage_of_an_interrupted_answer_is_kept,
        },
        refusal::{
            a_key_without_permission_is_a_permission_error,
            a_model_that_does_not_exist_is_not_found,
            a_conversation_too_long_is_an_overflow,
            an_overloaded_provider_says_so,
            a_refusal_in_mid_answer_keeps_the_text,
            garbage_is_a_protocol_error,
        },
        sending::{
            nothing_is_sent_before_the_first_next,
            an_answer_is_one_request,
            dropping_an_answer_ends_its_request,
            closing_an_answer_ends_its_request,
        },
    ])
}
