//! Front matter of files that other programs wrote.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use antiphon_agent_files::LenientFile;
use serde_json::{Value, json};

fn fields(front: &str) -> Vec<(String, Value)> {
    LenientFile::read(format!("---\n{front}\n---\nBody.").as_bytes()).unwrap().fields.unwrap()
}

#[test]
fn a_text_that_is_no_yaml_is_read_line_by_line() {
    let found = fields(
        "name: reviewer\ndescription: Use it when: a change is done. Context: <example>\n  more\ntools:\n  - Read\n  - Bash",
    );
    let expected = [
        ("name", json!("reviewer")),
        ("description", json!("Use it when: a change is done. Context: <example>\nmore")),
        ("tools", json!(["Read", "Bash"])),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn a_field_that_is_given_twice_is_refused() {
    let twice = b"---\ntools: Read\ndescription: a: b\ntools: Bash\n---\nBody.";
    assert!(LenientFile::read(twice).unwrap_err().to_string().contains("`tools` is defined twice"));
}
