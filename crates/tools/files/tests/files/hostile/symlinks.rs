//! Symlinks that lead away, nowhere or in circles.

use antiphon_file_tools::Mode;

use super::{Case, edits, reads, writes};
use crate::world::World;

pub(crate) fn cases() -> Vec<Case> {
    [away(), inside(), broken()].into_iter().flatten().collect()
}

fn to_secret(world: &World) {
    world.link("link", world.outside.join("secret.txt"));
}

fn to_folder(world: &World) {
    world.link("link", &world.outside);
}

fn to_new(world: &World) {
    world.link("link", world.outside.join("new.txt"));
}

fn away() -> Vec<Case> {
    let (read, written) = ("outside of what may be read", "outside of what may be written");
    let relative = |world: &World| world.link("link", "../outside/secret.txt");
    let chained = |world: &World| {
        world.link("link", "second");
        world.link("second", "third");
        world.link("third", "../outside/secret.txt");
    };
    vec![
        reads("reading a link to a file outside", "link").given(to_secret).fails(read),
        reads("reading a relative link outside", "link").given(relative).fails(read),
        reads("reading a chain of links outside", "link").given(chained).fails(read),
        reads("reading through a link to a folder", "link/secret.txt").given(to_folder).fails(read),
        reads("listing a link to a folder", "link").given(to_folder).fails(read),
        writes("writing to a link outside", "link", "x").given(to_secret).fails(written),
        writes("writing to a chain of links", "link", "x").given(chained).fails(written),
        writes("writing to a link to nothing outside", "link", "x").given(to_new).fails(written),
        writes("writing through a link to a folder", "link/new.txt", "x")
            .given(to_folder)
            .fails(written),
        writes("a new folder through a link to a folder", "link/new/new.txt", "x")
            .given(to_folder)
            .fails(written),
        edits("editing a link outside", "link", "TOP", "top").given(to_secret).fails(written),
        reads("`..` behind a link to a folder", "link/../secret.txt")
            .given(|world| world.link("link", world.outside.join("folder")))
            .fails(read),
        reads("a link to the root of the system", "link/etc/passwd")
            .given(|world| world.link("link", "/"))
            .fails(read),
        reads("a link to this process", "link/environ")
            .given(|world| world.link("link", "/proc/self"))
            .fails(read),
        reads("a link to this process in full mode", "link/environ")
            .mode(Mode::Full)
            .given(|world| world.link("link", "/proc/self"))
            .fails("part of a kernel file system"),
        reads("a link of the kernel's in full mode", "link/secret.txt")
            .mode(Mode::Full)
            .given(|world| world.link("link", "/proc/self/root"))
            .fails("a link of the kernel's"),
    ]
}

fn inside() -> Vec<Case> {
    let near = |world: &World| world.link("link", "a.txt");
    let absolute = |world: &World| world.link("link", world.path("a.txt"));
    let folder = |world: &World| {
        world.put("deep/er/x", "x\n");
        world.link("link", "deep/er");
    };
    vec![
        reads("reading a link inside", "link").given(near).says("alpha"),
        reads("reading an absolute link inside", "link").given(absolute).says("alpha"),
        writes("writing to a link inside", "link", "x")
            .given(near)
            .after_reading("link")
            .says("Overwrote `a.txt`")
            .leaves("a.txt", "x")
            .leaves("link", "x"),
        writes("writing to a link inside that was read by its target", "link", "x")
            .given(near)
            .after_reading("a.txt")
            .says("Overwrote `a.txt`"),
        edits("editing an absolute link inside", "link", "beta", "gamma")
            .given(absolute)
            .says("Edited `a.txt`")
            .leaves("a.txt", "alpha\ngamma\n"),
        reads("reading through a link to a folder inside", "link/x").given(folder).says("x"),
        reads("`..` behind a link to a folder inside", "link/../er/x").given(folder).says("x"),
        writes("a new file through a link to a folder inside", "link/new/y", "y")
            .given(folder)
            .says("Created `deep/er/new/y`")
            .leaves("deep/er/new/y", "y"),
    ]
}

fn broken() -> Vec<Case> {
    let to_nothing = |world: &World| world.link("link", "none");
    let folder = |world: &World| world.link("link", "none/none");
    let to_itself = |world: &World| world.link("link", "link");
    let circle = |world: &World| {
        world.link("link", "second");
        world.link("second", "link");
    };
    vec![
        reads("reading a link to nothing", "link").given(to_nothing).fails("does not exist"),
        writes("writing to a link to nothing", "link", "x")
            .given(to_nothing)
            .fails("a symlink to nothing")
            .leaves_nothing_at("none"),
        writes("writing through a link to no folder", "link/new", "x")
            .given(folder)
            .fails("a symlink to nothing")
            .leaves_nothing_at("none"),
        edits("editing a link to nothing", "link", "a", "b")
            .given(to_nothing)
            .fails("a symlink to nothing"),
        reads("reading a link to itself", "link").given(to_itself).fails("a symlink loop"),
        reads("reading a circle of links", "link").given(circle).fails("a symlink loop"),
        writes("writing to a link to itself", "link", "x").given(to_itself).fails("a symlink loop"),
        writes("writing through a circle of links", "link/x", "x")
            .given(circle)
            .fails("a symlink loop"),
    ]
}
