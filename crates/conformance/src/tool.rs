//! The tools' contract. Each check makes an executor of its own and, with it, an [`Example`] for
//! each of its tools.
//!
//! ```
//! # use antiphon_conformance::{model::ModelTools, tool::{self, Example}};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let bench = async || {
//!     tool::Bench::new(ModelTools)
//!         .example(Example::of("echo").good(r#"{"text":"hello"}"#).bad("{}"))
//!         .example(Example::of("fail").failing(r#"{"reason":"why"}"#).bad("{}"))
//!         .example(Example::of("sleep").slow("{}"))
//! };
//! tool::check(bench).await.unwrap();
//! # }
//! ```

mod bench;
mod calling;
mod canceling;
mod listing;

use crate::suite::{self, CHECK_LIMIT, Check, checks};
use crate::{Passed, Violations};
pub use bench::{Bench, Example};

/// Runs every check against what `bench` sets up. Without an example that is slow, or one that
/// fails, the checks that need one are skipped.
pub async fn check(bench: impl AsyncFn() -> Bench) -> Result<Passed, Violations> {
    suite::run(list(), CHECK_LIMIT, bench).await
}

/// The names of the checks.
pub fn checks() -> Vec<&'static str> {
    list().iter().map(|check| check.name).collect()
}

fn list() -> Vec<Check<'static, Bench>> {
    let required = checks![Required:
        listing::{
            the_list_is_the_same_each_time,
            names_are_unique_and_every_provider_takes_them,
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
            a_slow_call_holds_nobody_up,
            a_canceled_call_ends,
            canceling_one_call_leaves_the_others,
        },
    ];
    required.into_iter().chain(optional).collect()
}
