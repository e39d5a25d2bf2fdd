//! Proof of the tool suite.

mod faulty_tools;

use antiphon_conformance::reference::ModelTools;
use antiphon_conformance::tool::{self, Example, ToolFixture};
use antiphon_core::port::ToolExecutor;

use crate::verdict::{each_check_has_a_fault, each_fault_is_caught_by_its_own_check};
use faulty_tools::{Fault, FaultyTools};

const FAULTS: &[(Fault, &str)] = &[
    (Fault::ListsInAnyOrder, "the_list_is_the_same_each_time"),
    (Fault::ListsTwice, "names_are_unique_and_valid_for_every_provider"),
    (Fault::DescribesNoObject, "parameters_are_the_schema_of_an_object"),
    (Fault::ForgetsAnEffect, "the_effect_of_each_tool_is_known"),
    (Fault::KnowsEveryEffect, "a_tool_that_is_not_listed_has_no_effect"),
    (Fault::RunsTheUnknown, "a_tool_that_is_not_listed_is_unknown"),
    (Fault::TakesNullForEmpty, "arguments_that_are_no_object_are_invalid"),
    (Fault::ForgivesBadArguments, "bad_arguments_are_invalid"),
    (Fault::FailsAlways, "good_arguments_run"),
    (Fault::MakesFailuresErrors, "a_tool_that_ran_and_failed_is_a_result"),
    (Fault::RunsWhatIsCanceled, "a_call_that_is_canceled_before_it_begins_does_not_run"),
    (Fault::RunsOneAtATime, "a_slow_call_does_not_delay_others"),
    (Fault::IgnoresCancel, "a_canceled_call_ends"),
    (Fault::CancelsAll, "canceling_one_call_leaves_the_others"),
];

fn bench(executor: impl ToolExecutor + 'static) -> ToolFixture {
    ToolFixture::new(executor)
        .example(Example::of("echo").good(r#"{"text":"hello"}"#).bad(r#"{"text":1}"#))
        .example(Example::of("fail").failing(r#"{"reason":"why"}"#).bad("{}"))
        .example(Example::of("sleep").slow("{}"))
}

#[tokio::test(start_paused = true)]
async fn the_model_tools_keep_the_contract() {
    let passed = tool::check(async || bench(ModelTools)).await.unwrap();
    assert_eq!(passed.checks, tool::checks());
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_tool_is_caught_by_its_own_check() {
    each_check_has_a_fault(&tool::checks(), FAULTS);
    each_fault_is_caught_by_its_own_check(FAULTS, async |fault| {
        tool::check(async || bench(FaultyTools::new(fault))).await
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_an_example_is_a_violation() {
    let violations = tool::check(async || ToolFixture::new(ModelTools)).await.unwrap_err();
    assert_eq!(
        violations.checks(),
        [
            "bad_arguments_are_invalid",
            "good_arguments_run",
            "a_call_that_is_canceled_before_it_begins_does_not_run",
        ]
    );
}
