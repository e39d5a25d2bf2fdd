//! Malicious and mistaken files.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use antiphon_agent_files::{Folder, Problem};
use antiphon_core::port::Agents;
use rustix::fs::{CWD, Mode, mknodat};

use super::{agent, catalog};

fn reason(problems: &[Problem], name: &str) -> String {
    let found: Vec<&Problem> =
        problems.iter().filter(|problem| problem.path.ends_with(name)).collect();
    assert_eq!(found.len(), 1, "{name} is reported once: {problems:?}");
    found[0].reason.clone()
}

#[test]
fn only_regular_files_in_the_folder_are_read_and_nothing_blocks_the_reader() {
    let world = tempfile::tempdir().unwrap();
    let folder = world.path().join("agents");
    fs::create_dir(&folder).unwrap();
    let path = |name: &str| folder.join(name);
    fs::write(world.path().join("outside.md"), agent("outside")).unwrap();
    fs::write(path("good.md"), agent("good")).unwrap();
    symlink("good.md", path("alias.md")).unwrap();
    symlink("../outside.md", path("out.md")).unwrap();
    symlink(world.path().join("outside.md"), path("absolute.md")).unwrap();
    symlink("loop.md", path("loop.md")).unwrap();
    symlink("none.md", path("dangling.md")).unwrap();
    symlink("/proc/self/fd/0", path("magic.md")).unwrap();
    symlink("/dev/zero", path("zero.md")).unwrap();
    fs::create_dir(path("folder.md")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    mknodat(CWD, path("fifo.md"), fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = UnixListener::bind(path("socket.md")).unwrap();
    File::create(path("huge.md")).unwrap().set_len(10 * 1024 * 1024 * 1024).unwrap();
    fs::write(path("ten.md"), "x\n".repeat(5 * 1024 * 1024)).unwrap();
    fs::write(path("binary.md"), [0, 159, 146, 150]).unwrap();

    let began = Instant::now();
    let catalog = catalog(vec![Folder::project(&folder)]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());

    let names: Vec<String> = catalog.list().iter().map(|agent| agent.name.to_string()).collect();
    assert_eq!(names, ["alias", "good"]);
    let problems = catalog.problems();
    let leads_out = "it is a link that leads out of its folder";
    for name in ["out.md", "absolute.md", "magic.md", "zero.md"] {
        assert_eq!(reason(&problems, name), leads_out, "{name}");
    }
    assert_eq!(reason(&problems, "loop.md"), "it is a link that leads nowhere");
    assert!(reason(&problems, "dangling.md").contains("No such file"));
    for name in ["folder.md", "fifo.md"] {
        assert_eq!(reason(&problems, name), "it is not a regular file", "{name}");
    }
    assert!(!reason(&problems, "socket.md").is_empty());
    for name in ["huge.md", "ten.md"] {
        assert!(reason(&problems, name).contains("the file has more than"), "{name}");
    }
    assert_eq!(reason(&problems, "binary.md"), "the file is not UTF-8 text");
    assert_eq!(problems.len(), 12);
}

#[test]
fn an_invalid_file_name_is_reported() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    for name in [b"a\xff.md".as_slice(), b"user.md", "a\u{202e}b.md".as_bytes(), b"a\nb.md"] {
        fs::write(folder.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let catalog = catalog(vec![Folder::user(folder.path())]);
    assert!(catalog.list().is_empty());
    assert_eq!(catalog.problems().len(), 4);
    for problem in catalog.problems() {
        assert!(problem.reason.starts_with("the file's name is the agent's: "), "{problem}");
    }
}

#[test]
fn a_schema_is_read_only_below_the_folder() {
    let world = tempfile::tempdir().unwrap();
    let folder = world.path().join("agents");
    fs::create_dir_all(folder.join("in")).unwrap();
    fs::write(world.path().join("secret.json"), r#"{"title":"secret"}"#).unwrap();
    fs::write(folder.join("in/s.json"), r#"{"type":"string"}"#).unwrap();
    symlink("../secret.json", folder.join("out.json")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    symlink("in/s.json", folder.join("link.json")).unwrap();
    for (name, schema) in
        [("a", "out.json"), ("b", "up/secret.json"), ("c", "link.json"), ("d", "in"), ("e", ".")]
    {
        let text = format!("---\ndescription: d\noutput_schema: {schema}\n---\nb");
        fs::write(folder.join(format!("{name}.md")), text).unwrap();
    }
    let catalog = catalog(vec![Folder::project(&folder)]);
    let names: Vec<String> = catalog.list().iter().map(|agent| agent.name.to_string()).collect();
    assert_eq!(names, ["c"]);
    let problems = catalog.problems();
    for name in ["a.md", "b.md"] {
        assert!(reason(&problems, name).ends_with("it is a link that leads out of its folder"));
    }
    for name in ["d.md", "e.md"] {
        assert!(reason(&problems, name).ends_with("it is not a regular file"));
    }
}

#[test]
fn a_projects_folder_is_no_link_and_the_users_may_be() {
    let world = tempfile::tempdir().unwrap();
    let real = world.path().join("real");
    let link = world.path().join("link");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("a.md"), agent("a")).unwrap();
    symlink(&real, &link).unwrap();
    let project = catalog(vec![Folder::project(&link)]);
    assert!(project.find("a").is_none());
    assert_eq!(
        project.problems()[0].to_string(),
        format!("{}: it is not a folder", link.display())
    );
    assert!(catalog(vec![Folder::user(&link)]).find("a").is_some());
}
