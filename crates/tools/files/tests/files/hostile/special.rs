//! Things that are no files, and folders where a file should be.

use std::os::unix::net::UnixListener;

use antiphon_file_tools::Mode;
use rustix::fs::{CWD, FileType, Mode as Bits, mknodat};

use super::{Case, edits, reads, writes};
use crate::world::World;

pub(crate) fn cases() -> Vec<Case> {
    [pipes(), devices(), folders()].into_iter().flatten().collect()
}

fn fifo(world: &World) {
    mknodat(CWD, world.path("pipe"), FileType::Fifo, Bits::RUSR | Bits::WUSR, 0).unwrap();
}

fn socket(world: &World) {
    drop(UnixListener::bind(world.path("socket")).unwrap());
}

fn pipes() -> Vec<Case> {
    vec![
        reads("reading a named pipe", "pipe").given(fifo).fails("a named pipe"),
        writes("writing to a named pipe", "pipe", "x").given(fifo).fails("a named pipe"),
        edits("editing a named pipe", "pipe", "a", "b").given(fifo).fails("a named pipe"),
        reads("reading a link to a named pipe", "link")
            .given(|world| {
                fifo(world);
                world.link("link", "pipe");
            })
            .fails("a named pipe"),
        reads("a named pipe as a folder", "pipe/x").given(fifo).fails("does not exist"),
        reads("reading a socket", "socket").given(socket).fails("a socket"),
        writes("writing to a socket", "socket", "x").given(socket).fails("a socket"),
    ]
}

/// In full mode, where nothing else keeps them away. Nothing is written: each is refused.
fn devices() -> Vec<Case> {
    let full = |case: Case| case.mode(Mode::Full);
    vec![
        full(reads("reading endless zeros", "/dev/zero")).fails("a device"),
        full(reads("reading nothing", "/dev/null")).fails("a device"),
        full(reads("reading randomness", "/dev/urandom")).fails("a device"),
        full(writes("writing to nowhere", "/dev/null", "x")).fails("a device"),
        full(edits("editing nothing", "/dev/null", "a", "b")).fails("a device"),
        reads("a device in workspace mode", "/dev/zero").fails("outside"),
        reads("memory in workspace mode", "/proc/self/mem").fails("outside"),
        full(reads("the memory of this process", "/proc/self/mem"))
            .fails("part of a kernel file system"),
        full(reads("its environment", "/proc/self/environ")).fails("part of a kernel file system"),
        full(reads("its settings, written", "/proc/self/comm"))
            .fails("part of a kernel file system"),
        full(writes("settings of the kernel", "/proc/sys/kernel/x", "x")).fails(""),
        full(reads("an open file by number", "/proc/self/fd/0")).fails("a link of the kernel's"),
        full(reads("the program itself", "/proc/self/exe")).fails("a link of the kernel's"),
        full(reads("the processes", "/proc")).fails("part of a kernel file system"),
    ]
}

fn folders() -> Vec<Case> {
    let sub = |world: &World| world.put("sub/x", "x");
    vec![
        reads("reading a folder lists it", "sub").given(sub).says("a folder with 1 entry:\nx\n"),
        reads("reading an empty folder", "sub")
            .given(|world| std::fs::create_dir(world.path("sub")).unwrap())
            .says("a folder with 0 entries"),
        reads("reading the project lists it", ".").says("a.txt"),
        writes("writing to a folder", "sub", "x").given(sub).fails("is a folder, not a file"),
        writes("writing to a folder with a slash", "sub/", "x").given(sub).fails("is a folder"),
        writes("writing to a new folder", "new/", "x").fails("is a folder"),
        writes("writing to the project", ".", "x").fails("is a folder"),
        writes("writing to the folder above", "..", "x").fails("is a folder"),
        writes("writing to a folder by a dot", "sub/.", "x").given(sub).fails("is a folder"),
        writes("writing beneath a file", "a.txt/new", "x")
            .fails("nothing can be beneath it")
            .leaves("a.txt", "alpha\nbeta\n"),
        writes("writing deep beneath a file", "a.txt/new/new", "x")
            .fails("nothing can be beneath it"),
        edits("editing a folder", "sub", "a", "b").given(sub).fails("is a folder, not a file"),
    ]
}
