//! The boundary itself.

use std::fs;

use antiphon_file_tools::{
    EntryKind, Mode, PathError, Protected, ReadAccess, Workspace, WorkspaceConfig, WorkspaceError,
};

use crate::world::World;

#[test]
fn more_folders_can_be_roots_or_readable() {
    let world = World::with(Mode::Workspace, |config, base| {
        for name in ["second", "docs"] {
            fs::create_dir(base.join(name)).unwrap();
            fs::write(base.join(name).join("x"), format!("{name}\n")).unwrap();
        }
        config.roots.push(base.join("second"));
        config.readable.push(base.join("docs"));
    });
    let beside = |name: &str| world.root.with_file_name(name).to_str().unwrap().to_owned();
    assert!(world.read(&format!("{}/x", beside("second"))).tool_output().contains("second"));
    assert!(world.read("../second/x").tool_output().contains("second"));
    world.write("../second/new", "x").tool_output();
    world.write(&format!("{}/newer", beside("second")), "x").tool_output();
    assert!(world.read(&format!("{}/x", beside("docs"))).tool_output().contains("docs"));
    let failed = world.edit("../../docs/x", "docs", "x").failed();
    assert!(failed.contains("outside of what may be written"), "{failed}");
    assert!(failed.contains("/second`") && !failed.contains("/docs` or"), "{failed}");
    // A link from one root to another leads nowhere that the path itself could not.
    world.link("link", "../second");
    assert!(world.read("link/x").tool_output().contains("second"));
    world.edit("link/x", "second", "third").tool_output();
    world.write("../second/.git/x", "x").failed();
}

#[test]
fn a_root_behind_a_link_is_known_by_both_its_paths() {
    let world = World::with(Mode::Workspace, |config, base| {
        std::os::unix::fs::symlink(&config.roots[0], base.join("alias")).unwrap();
        config.roots[0] = base.join("alias");
    });
    let alias = world.root.with_file_name("alias");
    for root in [&world.root, &alias] {
        let path = root.join("a.txt");
        assert!(world.read(path.to_str().unwrap()).tool_output().contains("alpha"));
        let new = root.join("new").join(root.file_name().unwrap());
        world.write(new.to_str().unwrap(), "x").tool_output();
    }
}

#[test]
fn a_root_within_a_protected_folder_is_a_root() {
    let world = World::with(Mode::Workspace, |config, _| {
        let inner = config.roots[0].join(".antiphon/worktrees/one");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("x"), "inner\n").unwrap();
        config.roots = vec![inner];
    });
    assert!(world.read("x").tool_output().contains("inner"));
    world.edit("x", "inner", "outer").tool_output();
    assert!(world.read("../../journal.db").failed().contains("outside"));
}

#[test]
fn a_root_that_is_moved_is_followed() {
    let world = World::new();
    let moved = world.root.with_file_name("moved");
    fs::rename(&world.root, &moved).unwrap();
    assert!(world.read("a.txt").tool_output().contains("alpha"));
    world.edit("a.txt", "alpha", "omega").tool_output();
    assert!(world.write(".git/config", "x").failed().contains("`.git`"));
    assert_eq!(fs::read(moved.join("a.txt")).unwrap(), b"omega\nbeta\n");
    fs::rename(&moved, &world.root).unwrap();
}

#[test]
fn another_spelling_of_a_protected_folder_is_told_by_its_identity() {
    // A disk that does not care about case cannot be had everywhere; a second name of the same
    // file is the same to the system.
    let world = World::new();
    fs::remove_dir_all(world.path(".git")).unwrap();
    world.put(".git", "gitdir: ../elsewhere\n");
    fs::hard_link(world.path(".git"), world.path(".GIT")).unwrap();
    assert!(world.edit(".GIT", "elsewhere", "x").failed().contains("`.git`"));
}

#[test]
fn what_is_protected_can_be_said() {
    let world = World::with(Mode::Workspace, |config, _| {
        config.protected.push(Protected { name: "vault".into(), reading: ReadAccess::Refused });
    });
    world.put("deep/vault/x", "x");
    assert!(world.read("deep/vault/x").failed().contains("`vault`"));
    assert!(world.write("vault", "x").failed().contains("`vault`"));
    world.write("vaults", "x").tool_output();
}

#[test]
fn a_workspace_that_cannot_be_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let open = |change: fn(&mut WorkspaceConfig)| {
        let mut config = WorkspaceConfig::of(folder.path(), Mode::Workspace);
        change(&mut config);
        Workspace::open(config)
    };
    assert!(matches!(open(|config| config.roots.clear()), Err(WorkspaceError::NoRoot)));
    let root = open(|config| config.roots.push("/no/such/folder".into()));
    assert!(matches!(root, Err(WorkspaceError::Root { .. })));
    let file = open(|config| config.readable.push("/dev/null".into()));
    assert!(matches!(file, Err(WorkspaceError::Root { .. })));
    for name in ["", ".", "..", "a/b", "a/"] {
        let mut config = WorkspaceConfig::of(folder.path(), Mode::Workspace);
        config.protected = vec![Protected { name: name.into(), reading: ReadAccess::Allowed }];
        let opened = Workspace::open(config);
        assert!(matches!(opened, Err(WorkspaceError::Name { .. })), "{name:?}");
    }
}

#[test]
fn an_opened_file_stays_the_same_when_its_path_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, "first").unwrap();
    let workspace = Workspace::open(WorkspaceConfig::of(folder.path(), Mode::ReadOnly)).unwrap();
    let found = workspace.open_path("f").unwrap();
    fs::rename(&path, folder.path().join("g")).unwrap();
    fs::write(&path, "second").unwrap();
    assert_eq!(std::io::read_to_string(found.open().unwrap()).unwrap(), "first");
    assert_eq!((found.kind(), found.size()), (EntryKind::File, 5));
    assert_ne!(found.identity(), workspace.open_path("f").unwrap().identity());
    assert_eq!(workspace.name_of(found.path()), "f");
    assert!(matches!(workspace.open_path("none"), Err(PathError::NotFound { .. })));
}

#[test]
fn files_beneath_a_folder_are_opened_without_following_links() {
    let world = World::new();
    world.put("sub/x", "x");
    world.link("sub/near", "x");
    world.link("sub/far", world.outside.join("secret.txt"));
    let workspace = Workspace::open(WorkspaceConfig::of(&world.root, Mode::ReadOnly)).unwrap();
    let folder = workspace.open_path("sub").unwrap();
    let open = |path: &str| folder.open_beneath(path.as_ref());
    assert_eq!(std::io::read_to_string(open("x").unwrap()).unwrap(), "x");
    for path in ["near", "far", "../a.txt", "/etc/passwd", "none", ".", ""] {
        assert!(open(path).is_err(), "{path}");
    }
}
