//! Each package with the program that installs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::installed::{scripted_task, works};
use crate::world::{World, binary, done, files, search_path};

#[test]
fn each_package_is_installed_works_and_is_removed() {
    let world = World::new(&["tarball", "deb", "wheel", "npm"]);
    debian(&world);
    wheel(&world);
    npm(&world);
    archive(&world);
}

fn archive(world: &World) {
    let root = world.unpacked();
    works(world, &root.join("bin/antiphon"));
    runs_in_an_empty_root(world, &root);
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(files(&root), Vec::<PathBuf>::new());
}

/// A static binary needs nothing of the system: it runs where there is no other file. One for glibc is not tried.
fn runs_in_an_empty_root(world: &World, root: &Path) {
    // Only a static binary is said to run with musl.
    let is_static = world.package(".whl").to_str().unwrap().contains("musllinux");
    let named = std::env::var_os("ANTIPHON_PACKAGED").is_some();
    assert!(is_static || !named, "{} is not static", binary().display());
    if !is_static {
        return;
    }
    for folder in ["project", "home", "tmp", "dev", "proc"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--root"]).arg(root);
        command.args(["--wd", "/project", program]).env_clear().env("HOME", "/home");
        command
    };
    assert!(done(inside("/bin/antiphon").arg("--version")).starts_with("antiphon "));
    scripted_task(&root.join("project"), inside("/bin/antiphon"));
}

/// Into a root of its own, with a database of its own. What it depends on is not there.
fn debian(world: &World) {
    let root = world.path("debian");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = world.command("dpkg");
        command.arg("--root").arg(&root).arg("--log").arg(root.join("log"));
        done(command.args(["--force-not-root", "--force-depends"]).args(arguments))
    };
    let package = world.package(".deb");
    let fields = done(world.command("dpkg-deb").args(["--field", package.to_str().unwrap()]));
    assert!(fields.starts_with("Package: antiphon\nVersion: "), "{fields}");
    dpkg(&["--install", package.to_str().unwrap()]);
    works(world, &root.join("usr/bin/antiphon"));
    assert_eq!(dpkg(&["--verify", "antiphon"]), "", "every file is as the package says");
    assert!(root.join("usr/share/man/man1/antiphon-run.1.gz").exists());
    dpkg(&["--remove", "antiphon"]);
    assert_eq!(files(&root.join("usr")), Vec::<PathBuf>::new());
}

fn wheel(world: &World) {
    let root = world.path("venv");
    // The environment's Python alone decides which platforms it takes.
    done(world.command("python3").args(["-m", "venv"]).arg(&root));
    let pip = |arguments: &[&str]| {
        let mut command = world.command(root.join("bin/pip"));
        done(command.arg("--disable-pip-version-check").args(arguments))
    };
    let package = world.package(".whl");
    pip(&["install", "--no-index", package.to_str().unwrap()]);
    works(world, &root.join("bin/antiphon"));
    assert!(root.join("share/man/man1/antiphon-run.1").exists());
    let left = pip(&["list", "--format=freeze"]);
    assert!(left.contains("antiphon=="), "{left}");
    pip(&["uninstall", "--yes", "antiphon"]);
    let ours = |path: &PathBuf| path.to_string_lossy().contains("antiphon");
    assert_eq!(files(&root).into_iter().filter(ours).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

fn npm(world: &World) {
    let root = world.path("npm");
    fs::create_dir(&root).unwrap();
    let npm = |arguments: &[&str]| {
        let mut command = world.command("npm");
        command.arg("--prefix").arg(&root).args([
            "--offline",
            "--no-audit",
            "--no-fund",
            "--global",
        ]);
        done(command.args(arguments).env("PATH", search_path(None)))
    };
    npm(&["install", world.package(".tgz").to_str().unwrap()]);
    works(world, &root.join("bin/antiphon"));
    assert!(root.join("share/man/man1/antiphon-run.1").exists());
    npm(&["uninstall", "antiphon"]);
    assert_eq!(files(&root), Vec::<PathBuf>::new());
}
