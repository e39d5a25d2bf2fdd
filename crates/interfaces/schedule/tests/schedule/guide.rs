//! The examples of the guide are valid schedules.

use std::fs;
use std::path::Path;

use super::schedules;

const FIELDS: [&str; 9] =
    ["agent", "every", "from", "cron", "zone", "at", "body", "salience", "wake"];

#[test]
fn the_tables_of_the_guide_are_valid_schedules() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schedules.md");
    let guide = fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let names: Vec<String> = blocks
        .flat_map(|block| {
            let all = schedules(block);
            all.iter().map(|one| format!("{}: {}", one.name, one.when)).collect::<Vec<_>>()
        })
        .collect();
    let expected = [
        "inbox: every 15m",
        "release: at 2026-11-20T08:00:00Z",
        "standup: cron 0 9 * * mon-fri in Europe/Vienna",
        "review: every 7days from 2026-11-16T09:00:00Z",
    ];
    assert_eq!(names, expected);
    for field in FIELDS {
        assert!(guide.contains(&format!("| `{field}`")), "the guide does not explain `{field}`");
    }
}
