//! Arguments out of bounds.

use serde_json::json;

use super::Expected::Refuses;
use super::{Case, case, check, nothing, with};
use crate::world::Tool::{Glob, Grep};

const ARGUMENTS_THAT_ARE_OUT_OF_BOUNDS: &[Case] = &[
    case(
        "limit 0",
        nothing,
        Grep,
        || with("limit", json!(0)),
        Refuses(&["`limit` is 0", "1 to 1000"], &[]),
    ),
    case(
        "limit 1001",
        nothing,
        Grep,
        || with("limit", json!(1001)),
        Refuses(&["`limit` is 1001"], &[]),
    ),
    case("limit below 0", nothing, Grep, || with("limit", json!(-1)), Refuses(&["limit"], &[])),
    case(
        "limit 0 of files",
        nothing,
        Glob,
        || with("limit", json!(0)),
        Refuses(&["`limit` is 0", "1 to 2000"], &[]),
    ),
    case(
        "limit 2001 of files",
        nothing,
        Glob,
        || with("limit", json!(2001)),
        Refuses(&["`limit` is 2001"], &[]),
    ),
    case(
        "huge context",
        nothing,
        Grep,
        || with("context", json!(u64::MAX)),
        Refuses(&["`context`", "0 to 20"], &[]),
    ),
    case(
        "an unknown argument",
        nothing,
        Grep,
        || with("patern", json!("x")),
        Refuses(&["patern", "expected"], &[]),
    ),
    case(
        "an unknown mode",
        nothing,
        Grep,
        || with("mode", json!("words")),
        Refuses(&["mode", "words", "lines"], &[]),
    ),
    case(
        "an unknown case",
        nothing,
        Grep,
        || with("case", json!("upper")),
        Refuses(&["upper", "smart"], &[]),
    ),
    case(
        "an unknown type",
        nothing,
        Grep,
        || with("type", json!("pyton")),
        Refuses(&["`pyton` is not known", "python", "`glob`"], &[]),
    ),
    case(
        "all types",
        nothing,
        Grep,
        || with("type", json!("\x1b")),
        Refuses(&["\\u{1b}"], &["\x1b"]),
    ),
    case("globs of numbers", nothing, Grep, || with("glob", json!([1])), Refuses(&["glob"], &[])),
    case(
        "too many globs",
        nothing,
        Grep,
        || with("glob", json!(vec!["*"; 33])),
        Refuses(&["33 patterns are more than 32"], &[]),
    ),
    case("no pattern", nothing, Grep, || json!({}), Refuses(&["pattern"], &[])),
    case("no object", nothing, Grep, || json!([]), Refuses(&["object"], &[])),
];

#[test]
fn arguments_that_are_out_of_bounds() {
    check(ARGUMENTS_THAT_ARE_OUT_OF_BOUNDS);
}
