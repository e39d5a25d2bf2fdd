//! Proof of the reports of a suite.

use antiphon_conformance::{Violation, Violations};

#[test]
fn violations_print_as_a_list() {
    let violations = Violations(vec![
        Violation { check: "the_first", found: "this".to_owned() },
        Violation { check: "the_second", found: "that".to_owned() },
    ]);
    let printed = "2 violation(s) of the contract:\n  the_first: this\n  the_second: that";
    assert_eq!(format!("{violations:?}"), printed);
    assert_eq!(violations.checks(), ["the_first", "the_second"]);
}
