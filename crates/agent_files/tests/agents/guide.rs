//! The guide shows files that are agents.

use std::fs;
use std::path::Path;

use antiphon_agent_files::{FIELDS, Folder, LIMITS};
use antiphon_core::port::Agents;

use super::catalog;

/// Every whole file in the guide: its path beneath the folder of agents, and what it says.
fn files(guide: &str) -> Vec<(&str, String)> {
    let mut files = Vec::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let path = line.strip_prefix("`.antiphon/agents/").and_then(|rest| rest.strip_suffix("`:"));
        let Some(path) = path else { continue };
        let fence = lines.by_ref().find(|line| line.starts_with("```")).unwrap();
        let fence = &fence[..fence.chars().take_while(|c| *c == '`').count()];
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        files.push((path, text.join("\n") + "\n"));
    }
    files
}

#[test]
fn the_files_of_the_guide_are_agents() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let guide = fs::read_to_string(guide).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files(&guide) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let catalog = catalog(vec![Folder::project(folder.path())]);
    assert_eq!(catalog.problems(), []);
    let names: Vec<String> = catalog.list().iter().map(|agent| agent.name.to_string()).collect();
    assert_eq!(names, ["lead", "reviewer", "scribe", "tester"]);
    assert!(catalog.find("reviewer").unwrap().output_schema.is_some());
    for name in FIELDS.iter().chain(&LIMITS) {
        assert!(guide.contains(&format!("`{name}`")), "the guide does not explain `{name}`");
    }
}
