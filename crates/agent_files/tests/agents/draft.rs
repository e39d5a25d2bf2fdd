//! New files.

use std::fs;
use std::os::unix::fs::symlink;

use antiphon_agent_files::{Draft, DraftError, FIELDS, Folder, new_file};
use antiphon_core::port::Agents;
use antiphon_core::{AgentName, ModelRef};

use super::{catalog, read};

fn draft(name: &str) -> Draft {
    Draft { name: AgentName::parse(name).unwrap(), description: None, model: None }
}

#[test]
fn a_new_file_is_an_agent_and_explains_every_field() {
    let world = tempfile::tempdir().unwrap();
    let folder = Folder::project(world.path().join("a/b"));
    let requested = Draft {
        description: Some("Says: \"yes\"\n# and {name}".to_owned()),
        model: Some(ModelRef::parse("anthropic/claude").unwrap()),
        ..draft("1.0")
    };
    let path = new_file(&folder, &requested).unwrap();
    assert_eq!(path, world.path().join("a/b/1.0.md"));
    let catalog = catalog(vec![folder]);
    assert_eq!(catalog.problems(), []);
    let agent = catalog.find("1.0").unwrap();
    assert_eq!(agent.description, "Says: \"yes\"\n# and {name}");
    assert_eq!(agent.model, requested.model);
    let text = fs::read_to_string(&path).unwrap();
    for field in FIELDS.iter().filter(|field| **field != "profile") {
        assert!(text.contains(&format!("{field}:")), "{field}");
    }
    // What is commented out is right as well.
    let reported = |line: &str| {
        let field = line.strip_prefix("# ").filter(|field| {
            let known = FIELDS.iter().any(|name| field.starts_with(&format!("{name}:")));
            known || field.starts_with("  ")
        });
        field.unwrap_or(line).to_owned()
    };
    let whole: Vec<String> = text.lines().map(reported).collect();
    let whole = read("1.0", &whole.join("\n")).unwrap();
    assert!(whole.output_schema.is_some() && whole.tools.is_some() && !whole.limits.is_none());
}

#[test]
fn an_existing_file_is_never_replaced() {
    let world = tempfile::tempdir().unwrap();
    let folder = Folder::user(world.path());
    let path = world.path().join("a.md");
    for there in ["mine", ""] {
        fs::write(&path, there).unwrap();
        let refused = new_file(&folder, &draft("a"));
        assert_eq!(refused, Err(DraftError::Exists { path: path.clone() }));
        assert_eq!(fs::read_to_string(&path).unwrap(), there);
    }
    symlink("elsewhere", world.path().join("b.md")).unwrap();
    assert!(matches!(new_file(&folder, &draft("b")), Err(DraftError::Exists { .. })));
    let left = fs::read_dir(world.path()).unwrap().count();
    assert_eq!(left, 2, "nothing else is left there");
}

#[test]
fn an_invalid_agent_is_not_written() {
    let world = tempfile::tempdir().unwrap();
    let folder = Folder::user(world.path().join("agents"));
    let long = Draft { description: Some("x".repeat(2000)), ..draft("a") };
    assert!(matches!(new_file(&folder, &long), Err(DraftError::Refused(_))));
    assert!(!folder.path.exists());
    symlink(world.path(), world.path().join("link")).unwrap();
    let link = Folder::project(world.path().join("link"));
    assert!(matches!(new_file(&link, &draft("a")), Err(DraftError::Unwritable { .. })));
}
