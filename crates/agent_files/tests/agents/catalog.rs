//! Several folders, and what changes in them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_agent_files::{
    AGENTS_MAX, AgentCatalog, AgentFileEntry, Changes, CheckedFile, ENTRIES_MAX, FileCheck, Folder,
    FolderOwner, Problem, ProblemKind,
};
use antiphon_core::port::{Agents, PromptSource};
use antiphon_core::{AgentDefinition, AgentName};
use tempfile::TempDir;

use super::{agent, catalog};

/// A project's folder and a user's.
struct World {
    folder: TempDir,
    catalog: AgentCatalog,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "user"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let folders = vec![
            Folder::project(folder.path().join("project")),
            Folder::user(folder.path().join("user")),
        ];
        Self { catalog: catalog(folders), folder }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Writes a file, and what changed by that.
    fn write(&self, file: &str, text: &str) -> Changes {
        fs::write(self.path(file), text).unwrap();
        self.catalog.reload()
    }

    fn remove(&self, file: &str) -> Changes {
        fs::remove_file(self.path(file)).unwrap();
        self.catalog.reload()
    }

    fn description(&self, name: &str) -> Option<String> {
        self.catalog.find(name).map(|agent| agent.description.clone())
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_agent_without_a_file_is_replaced_by_the_users_and_not_by_the_projects() {
    let World { folder, catalog } = World::new();
    let name = AgentName::parse("a").unwrap();
    let definition =
        AgentDefinition { description: "remote".to_owned(), ..AgentDefinition::new(name, "") };
    let fixed = AgentFileEntry {
        definition: Arc::new(definition),
        path: folder.path().join("config.toml"),
        origin: FolderOwner::User,
        shadows: Vec::new(),
        version: "1".to_owned(),
        fault: None,
        imported: None,
    };
    let world = World { catalog: catalog.with_fixed(vec![fixed]), folder };
    assert_eq!(world.description("a").as_deref(), Some("remote"));
    assert_eq!(world.catalog.list().len(), 1);
    assert_eq!(world.write("project/a.md", &agent("project's")), Changes::default());
    assert_eq!(world.description("a").as_deref(), Some("remote"));
    assert_eq!(world.catalog.entry("a").unwrap().shadows, [world.path("project/a.md")]);
    assert_eq!(world.remove("project/a.md"), Changes::default());
    assert_eq!(world.write("user/a.md", &agent("user's")).changed, names(&["a"]));
    assert_eq!(world.description("a").as_deref(), Some("user's"));
    assert_eq!(world.remove("user/a.md").changed, names(&["a"]));
    assert_eq!(world.description("a").as_deref(), Some("remote"));
}

#[test]
fn the_projects_agent_replaces_the_users() {
    let world = World::new();
    assert_eq!(world.write("user/a.md", &agent("user's")).added, names(&["a"]));
    assert_eq!(world.write("user/b.md", &agent("user's b")).added, names(&["b"]));
    assert_eq!(world.write("project/a.md", &agent("project's")).changed, names(&["a"]));
    assert_eq!(world.description("a").as_deref(), Some("project's"));
    let entry = world.catalog.entry("a").unwrap();
    assert_eq!(
        (entry.origin, entry.shadows),
        (FolderOwner::Project, vec![world.path("user/a.md")])
    );
    let listed: Vec<String> =
        world.catalog.list().iter().map(|agent| agent.name.to_string()).collect();
    assert_eq!(listed, ["a", "b"]);
    assert_eq!(world.remove("project/a.md").changed, names(&["a"]));
    assert_eq!(world.description("a").as_deref(), Some("user's"));
    assert_eq!(world.remove("user/a.md").removed, names(&["a"]));
    assert_eq!(world.description("a"), None);
}

#[test]
fn a_file_that_becomes_invalid_is_reported_once_and_its_last_valid_version_stays() {
    let world = World::new();
    world.write("project/a.md", &agent("good"));
    let path = world.path("project/a.md");
    let bad = "---\ndescription: bad\ntool: read\n---\nx";
    let problem = |line, reason: &str| Problem {
        path: path.clone(),
        line: Some(line),
        reason: reason.to_owned(),
        kind: ProblemKind::Invalid,
        in_force: true,
    };
    let changes = world.write("project/a.md", bad);
    let known = antiphon_agent_files::FIELDS.join(", ");
    let unknown = problem(3, &format!("there is no field `tool`; there are {known}"));
    assert_eq!(changes, Changes { problems: vec![unknown.clone()], ..Changes::default() });
    let shown = format!(
        "{}:3: there is no field `tool`; there are {known} (what it said before stays in force)",
        path.display()
    );
    assert_eq!(unknown.to_string(), shown);
    assert_eq!(world.description("a").as_deref(), Some("good"));
    assert_eq!(world.catalog.entry("a").unwrap().fault.unwrap().line, 3);
    assert!(world.catalog.reload().is_empty());
    // Bad in another way, and again nothing is lost.
    assert_eq!(world.write("project/a.md", "").problems, [problem(1, "the file is empty")]);
    assert_eq!(world.description("a").as_deref(), Some("good"));
    let fixed = world.write("project/a.md", &agent("better"));
    let expected =
        Changes { changed: names(&["a"]), fixed: vec![path.clone()], ..Changes::default() };
    assert_eq!(fixed, expected);
    assert!(world.catalog.problems().is_empty());
    // Gone is gone, also when it was bad last.
    world.write("project/a.md", "");
    let gone = world.remove("project/a.md");
    assert_eq!((gone.removed, gone.fixed), (names(&["a"]), vec![path]));
}

#[test]
fn a_file_that_was_never_valid_hides_the_agent_of_a_later_folder() {
    let world = World::new();
    world.write("user/a.md", &agent("user's"));
    let changes = world.write("project/a.md", "---\n");
    assert_eq!(changes.removed, names(&["a"]));
    assert!(!changes.problems[0].in_force);
    assert_eq!(world.description("a"), None);
    assert_eq!(world.remove("project/a.md").added, names(&["a"]));
}

#[test]
fn an_unchanged_agent_stays_the_same_and_nothing_is_reported() {
    let world = World::new();
    world.write("project/a.md", &agent("a"));
    let before = world.catalog.find("a").unwrap();
    assert!(world.write("project/a.md", &agent("a")).is_empty());
    assert!(Arc::ptr_eq(&before, &world.catalog.find("a").unwrap()));
}

#[test]
fn a_changed_schema_changes_its_agent() {
    let world = World::new();
    fs::create_dir(world.path("project/schemas")).unwrap();
    let text = "---\ndescription: d\noutput_schema: schemas/s.json\n---\nb";
    let missing = world.write("project/a.md", text);
    assert_eq!(missing.problems[0].line, Some(3));
    assert_eq!(world.write("project/schemas/s.json", "{}").added, names(&["a"]));
    let changes = world.write("project/schemas/s.json", r#"{"type":"string"}"#);
    assert_eq!(changes.changed, names(&["a"]));
    let schema = world.catalog.find("a").unwrap().output_schema.clone().unwrap();
    assert_eq!(schema.as_str(), r#"{"type":"string"}"#);
}

#[test]
fn only_visible_markdown_files_are_agents() {
    let world = World::new();
    for file in [".a.md", ".#b.md", "c.txt", "d.md~", "e.markdown", "md"] {
        fs::write(world.path("project").join(file), "x").unwrap();
    }
    assert!(world.catalog.reload().is_empty());
    assert!(world.catalog.list().is_empty());
}

#[test]
fn missing_folders_hold_no_agents() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(vec![Folder::project(folder.path().join("none/agents"))]);
    assert!(catalog.list().is_empty() && catalog.problems().is_empty());
    fs::create_dir_all(folder.path().join("none/agents")).unwrap();
    fs::write(folder.path().join("none/agents/a.md"), "x").unwrap();
    assert_eq!(catalog.reload().added, names(&["a"]));
    fs::remove_dir_all(folder.path().join("none")).unwrap();
    assert_eq!(catalog.reload().removed, names(&["a"]));
}

#[test]
fn a_folder_that_cannot_be_read_any_more_keeps_its_agents_in_force() {
    let world = World::new();
    world.write("project/a.md", &agent("a"));
    fs::rename(world.path("project"), world.path("aside")).unwrap();
    fs::write(world.path("project"), "a file").unwrap();
    let changes = world.catalog.reload();
    assert!(changes.removed.is_empty());
    assert_eq!(changes.problems[0].to_string(), {
        format!("{}: it is not a folder", world.path("project").display())
    });
    assert!(world.catalog.find("a").is_some());
}

#[test]
fn of_too_many_files_the_first_are_used_and_a_problem_is_reported() {
    let world = World::new();
    for number in 0..=AGENTS_MAX {
        fs::write(world.path(&format!("project/a{number:05}.md")), "x").unwrap();
    }
    let changes = world.catalog.reload();
    assert_eq!(changes.added.len(), AGENTS_MAX);
    assert_eq!(changes.problems.len(), 1);
    assert!(changes.problems[0].reason.contains("more than 10000 agents"), "{changes:?}");
    assert!(world.catalog.find("a10000").is_none());
}

#[test]
fn a_folder_with_too_many_entries_is_reported() {
    let world = World::new();
    for number in 0..ENTRIES_MAX {
        fs::write(world.path(&format!("project/{number}.txt")), "").unwrap();
    }
    let changes = world.catalog.reload();
    assert_eq!(changes.problems.len(), 1);
    assert!(changes.problems[0].reason.contains("more than 20000 entries"), "{changes:?}");
}

#[test]
fn the_catalog_builds_system_prompts_with_the_given_function() {
    let world = World::new();
    world.write("project/a.md", &agent("a"));
    let agent = world.catalog.find("a").unwrap();
    assert_eq!(world.catalog.system_prompt(PromptSource::Named(&agent)), "You work.");
    assert_eq!(world.catalog.system_prompt(PromptSource::AdHoc("Be brief.")), "base\n\nBe brief.");
}

#[test]
fn what_decides_about_files_is_made_once_for_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300 {
        fs::write(folder.path().join(format!("a{number}.md")), agent("one")).unwrap();
    }
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let shared = Arc::clone(&counts);
    let check = FileCheck::new(
        move || {
            shared[0].fetch_add(1, Ordering::SeqCst);
            let shared = Arc::clone(&shared);
            move |_: &CheckedFile<'_>| {
                shared[1].fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        },
        Vec::new(),
    );
    let folders = vec![Folder::project(folder.path())];
    let catalog = AgentCatalog::open_checked(folders, check, super::test_prompt);
    assert_eq!(catalog.entries().len(), 300);
    let counted = || [0, 1].map(|at: usize| counts[at].load(Ordering::SeqCst));
    assert_eq!(counted(), [1, 300]);
    catalog.reload();
    assert_eq!(counted(), [2, 600]);
}

#[test]
fn a_refused_file_of_the_project_has_no_effect_and_what_was_in_force_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (project, user) = (folder.path().join("project"), folder.path().join("user"));
    for name in [&project, &user] {
        fs::create_dir(name).unwrap();
    }
    let list = folder.path().join("allowed");
    fs::write(&list, "").unwrap();
    let allowed = list.clone();
    let check = FileCheck::new(
        move || {
            let allowed = fs::read_to_string(&allowed).unwrap();
            move |file: &CheckedFile<'_>| {
                let is_allowed = allowed.contains(&file.definition.description);
                if is_allowed { Ok(()) } else { Err("ask for it".to_owned()) }
            }
        },
        vec![list.clone()],
    );
    fs::write(project.join("a.md"), agent("one")).unwrap();
    fs::write(user.join("b.md"), agent("mine")).unwrap();
    let folders = vec![Folder::user(&user), Folder::project(&project)];
    let catalog = AgentCatalog::open_checked(folders, check, super::test_prompt);
    let description = |name: &str| catalog.find(name).map(|agent| agent.description.clone());
    assert_eq!((description("a"), description("b")), (None, Some("mine".to_owned())));
    let [problem] = <[Problem; 1]>::try_from(catalog.problems()).unwrap();
    assert_eq!((problem.kind, problem.line), (ProblemKind::NotTrusted, None));
    assert!(problem.to_string().ends_with("a.md: ask for it"), "{problem}");

    fs::write(&list, "one").unwrap();
    assert_eq!(catalog.reload().added, ["a"]);
    fs::write(project.join("a.md"), agent("two")).unwrap();
    assert!(catalog.reload().problems[0].in_force);
    assert_eq!(description("a").unwrap(), "one", "what it said before stays in force");
    // Refused by now as well: neither the old content nor the new has effect.
    fs::write(&list, "").unwrap();
    assert_eq!(catalog.reload().removed, ["a"]);
    fs::write(&list, "two").unwrap();
    assert_eq!(catalog.reload().added, ["a"]);
    // An invalid file does not keep content in force that is refused by now.
    fs::write(project.join("a.md"), "---\n").unwrap();
    catalog.reload();
    assert_eq!(description("a").unwrap(), "two");
    fs::write(&list, "").unwrap();
    assert_eq!(catalog.reload().removed, ["a"]);
}
