//! A child agent is allowed less than its parent.

use antiphon_permissions::Decision::{Allow, Ask, Deny};
use antiphon_permissions::Limits;

use crate::world::{explain, file, gate, script};

fn limits(text: &str) -> Limits {
    toml::from_str(text).unwrap()
}

#[test]
fn narrowing_takes_away_and_never_gives() {
    let parent = gate("allow = [\"mcp__github__*\"]\ndeny = [\"bash(rm *)\"]");
    let same = parent.narrowed(&Limits::default()).unwrap();
    assert_eq!(script(&same, "ls"), Allow);
    assert_eq!(script(&same, "rm x"), Deny);
    assert_eq!(explain(&same, "mcp__github__list", "{}", &[]).decision(), Allow);

    let less = parent.narrowed(&limits("deny = [\"bash(git *)\"]\nask = [\"write\"]")).unwrap();
    assert_eq!(script(&less, "git status"), Deny);
    assert_eq!(script(&less, "rm x"), Deny);
    assert_eq!(script(&less, "ls"), Allow);
    assert_eq!(file(&less, "write", "x"), Ask);

    let looking = less.narrowed(&limits("mode = \"read-only\"")).unwrap();
    assert_eq!(script(&looking, "ls"), Deny);
    assert_eq!(file(&looking, "read", "x"), Allow);
    assert_eq!(file(&looking, "write", "x"), Deny);
    assert_eq!(explain(&looking, "mcp__github__list", "{}", &[]).decision(), Deny);

    let more = looking.narrowed(&limits("mode = \"full\"")).unwrap();
    assert_eq!(script(&more, "ls"), Deny);
    let more = parent.narrowed(&limits("mode = \"full\"")).unwrap();
    assert_eq!(explain(&more, "unheard_of", "{}", &[]).decision(), Ask);
}

#[test]
fn grants_apply_to_narrowed_gates() {
    let parent = gate("");
    let child = parent.narrowed(&limits("deny = [\"bash(rm *)\"]")).unwrap();
    assert_eq!(explain(&child, "mcp__a__b", "{}", &[]).decision(), Ask);
    assert_eq!(explain(&child, "mcp__a__b", "{}", &["mcp__a__b"]).decision(), Allow);
}

#[test]
fn limits_that_cannot_be_read_are_refused() {
    assert!(gate("").narrowed(&limits("deny = [\"bash(\"]")).is_err());
}
