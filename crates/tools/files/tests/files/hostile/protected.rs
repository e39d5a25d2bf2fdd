//! What tools leave alone in every mode.

use antiphon_file_tools::Mode;

use super::{Case, edits, reads, writes};
use crate::world::World;

pub(crate) fn cases() -> Vec<Case> {
    [writing(), reading(), names()].into_iter().flatten().collect()
}

/// As in a worktree: a file that says where the repository is.
fn worktree(world: &World) {
    std::fs::remove_dir_all(world.path(".git")).unwrap();
    world.put(".git", "gitdir: ../elsewhere\n");
}

fn writing() -> Vec<Case> {
    let git = "nothing named `.git`, or in it, may be written";
    let hook = ".git/hooks/pre-commit";
    vec![
        writes("a hook", hook, "x").fails(git).leaves_nothing_at(hook),
        writes("a hook in full mode", hook, "x").mode(Mode::Full).fails(git),
        writes("a hook by its absolute path", "{root}/.git/hooks/x", "x").fails(git),
        writes("a hook with dots and slashes", ".//.git/./hooks//x", "x").fails(git),
        writes("a hook by way of another folder", "sub/../.git/hooks/x", "x")
            .given(|world| world.put("sub/x", ""))
            .fails(git),
        writes("a hook by a link", "link/x", "x")
            .given(|world| world.link("link", ".git/hooks"))
            .fails(git),
        writes("the configuration by a link", "link", "x")
            .given(|world| world.link("link", ".git/config"))
            .after_reading("link")
            .fails(git),
        edits("the configuration", ".git/config", "core", "other").fails(git),
        writes("a new folder in the repository", ".git/new/new", "x").fails(git),
        writes("the repository itself", ".git", "x").fails(git),
        writes("a worktree's file", ".git", "gitdir: /\n")
            .given(worktree)
            .after_reading(".git")
            .fails(git),
        edits("a worktree's file, edited", ".git", "elsewhere", "x").given(worktree).fails(git),
        writes("a repository within", "sub/.git/hooks/x", "x")
            .given(|world| world.put("sub/.git/config", ""))
            .fails(git),
        writes("a repository that is not there yet", "sub/.git/hooks/x", "x")
            .fails(git)
            .leaves_nothing_at("sub"),
        writes("another repository in full mode", "../elsewhere/.git/hooks/x", "x")
            .mode(Mode::Full)
            .given(|world| world.put("../elsewhere/.git/config", ""))
            .fails(git),
        writes("an agent of ours", ".antiphon/agents/evil.md", "x").fails("`.antiphon`"),
        writes("our settings in full mode", ".antiphon/antiphon.toml", "x")
            .mode(Mode::Full)
            .fails("`.antiphon`"),
        writes("a request to IdeA", ".ideai/requests/me/x.json", "{}").fails("`.ideai`"),
        edits("a hard link to the configuration", "link", "core", "other")
            .given(|world| {
                std::fs::hard_link(world.path(".git/config"), world.path("link")).unwrap();
            })
            .says("other hard links: they keep the old content")
            .leaves("link", "[other]\n"),
    ]
}

fn reading() -> Vec<Case> {
    let secret = "nothing named `.antiphon`, or in it, may be read";
    vec![
        reads("the repository's configuration", ".git/config").says("[core]"),
        reads("the repository", ".git").says("a folder with 2 entries"),
        reads("IdeA's requests", ".ideai/request.json").says("{}"),
        reads("our journal", ".antiphon/journal.db").fails(secret),
        reads("our journal in full mode", ".antiphon/journal.db").mode(Mode::Full).fails(secret),
        reads("our journal in read-only mode", "{root}/.antiphon/journal.db")
            .mode(Mode::ReadOnly)
            .fails(secret),
        reads("our folder", ".antiphon").fails(secret),
        reads("our journal by a link", "link")
            .given(|world| world.link("link", ".antiphon/journal.db"))
            .fails(secret),
        reads("our journal by a link to its folder", "link/journal.db")
            .given(|world| world.link("link", world.path(".antiphon")))
            .fails(secret),
        reads("something not there in our folder", ".antiphon/none").fails("does not exist"),
    ]
}

/// Names are compared whole, and as they are spelled.
fn names() -> Vec<Case> {
    let created = "Created";
    vec![
        writes("capitals are another name", ".GIT/x", "x").says(created).leaves(".GIT/x", "x"),
        writes("a longer name", ".gitignore", "x").says(created),
        writes("a name that ends alike", "sub.git/x", "x").says(created),
        writes("a name with more behind", ".git2/x", "x").says(created),
        writes("a name with a space", ".git /x", "x").says(created),
        writes("a name with something unseen", ".git\u{200b}/x", "x")
            .says(r"Created `.git\u{200b}/x`"),
        writes("a name of letters that look alike", ".g\u{456}t/x", "x").says(created),
    ]
}
