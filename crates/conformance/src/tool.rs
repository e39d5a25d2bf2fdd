//! The contract of tools. Each check makes its own executor, with an [`Example`] for
//! each of its tools.
//!
//! ```
//! # use antiphon_conformance::{reference::ModelTools, tool::{self, Example}};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let fixture = async || {
//!     tool::ToolFixture::new(ModelTools)
//!         .example(Example::of("echo").good(r#"{"text":"hello"}"#).bad("{}"))
//!         .example(Example::of("fail").failing(r#"{"reason":"why"}"#).bad("{}"))
//!         .example(Example::of("sleep").slow("{}"))
//! };
//! tool::check(fixture).await.unwrap();
//! # }
//! ```

mod calling;
mod canceling;
mod listing;
mod tool_fixture;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
pub use tool_fixture::{Example, ToolFixture};

/// Runs every check, each against its own executor from `fixture`. Without an example that is slow, or
/// one that fails, the checks that need one are skipped.
pub async fn check(fixture: impl AsyncFn() -> ToolFixture) -> Result<Passed, Violations> {
    suite::run(list(), CHECK_LIMIT, fixture).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, ToolFixture>> {
    let required = checks![Required:
        listing::{
            the_list_is_the_same_each_time,
            names_are_unique_and_valid_for_every_provider,
            parameters_are_the_schema_of_an_object,
            the_effect_of_each_tool_is_known,
            a_tool_that_is_not_listed_has_no_effect,
        },
        calling::{
            a_tool_that_is_not_listed_is_unknown,
            arguments_that_are_no_object_are_invalid,
            bad_arguments_are_invalid,
            good_arguments_run,
        },
        canceling::{
            a_call_that_is_canceled_before_it_begins_does_not_run,
        },
    ];
    let optional = checks![Optional:
        calling::{
            a_tool_that_ran_and_failed_is_a_result,
        },
        canceling::{
            a_slow_call_does_not_delay_others,
            a_canceled_call_ends,
            canceling_one_call_leaves_the_others,
        },
    ];
    required.into_iter().chain(optional).collect()
}
