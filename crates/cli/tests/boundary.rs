//! The boundary of an agent and what a person can open in it, with the real binary, as the user of
//! the test and, if that is root, as an ordinary user too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/users.rs"]
mod users;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A project beside other files of a user.
struct World {
    folder: tempfile::TempDir,
    user: Option<u32>,
}

impl World {
    /// One for each user that the test can be.
    fn all(calls: &[&str]) -> Vec<Self> {
        users::all().into_iter().map(|user| Self::new(calls, user)).collect()
    }

    fn new(calls: &[&str], user: Option<u32>) -> Self {
        let world = Self { folder: users::folder_of(user), user };
        if user.is_some() {
            let binary = env!("CARGO_BIN_EXE_antiphon");
            let linked = fs::hard_link(binary, world.path("antiphon"));
            linked.or_else(|_| fs::copy(binary, world.path("antiphon")).map(drop)).unwrap();
        }
        for made in ["project", "home/.claude", "home/.config/antiphon"] {
            fs::create_dir_all(world.path(made)).unwrap();
        }
        fs::write(world.path("home/.claude/key"), "the stolen key").unwrap();
        fs::write(world.path("beside.txt"), "what lies beside").unwrap();
        let replies = calls.iter().enumerate().map(|(turn, call)| {
            format!("[[reply]]\nwhen = {{ turn = {turn} }}\nstep = [{{ call = {call} }}]\n")
        });
        let mut script = "name = \"work\"\n".to_owned() + &replies.collect::<String>();
        script += "[[reply]]\nstep = [{ text = \"{{last_result}}\" }]\n";
        fs::write(world.path("project/work.toml"), script).unwrap();
        let settings = "[user]\nname = a\nemail = a@b\n[safe]\ndirectory = *\n";
        fs::write(world.path("home/.gitconfig"), settings).unwrap();
        world.git(&["init", "-q", "-b", "main", "."]);
        for owned in ["", "project", "home", "beside.txt"] {
            world.own(&world.path(owned));
        }
        world
    }

    /// The binary, where the user can reach it.
    fn binary(&self) -> PathBuf {
        match self.user {
            Some(_) => self.path("antiphon"),
            None => env!("CARGO_BIN_EXE_antiphon").into(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn own(&self, folder: &Path) {
        let Some(user) = self.user else { return };
        chown(folder, Some(user), Some(user)).unwrap();
        // The binary may be a link to the one of every other test.
        if folder.symlink_metadata().unwrap().is_dir() && folder != self.path("") {
            for entry in fs::read_dir(folder).unwrap() {
                self.own(&entry.unwrap().path());
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let output = command.args(arguments).current_dir(self.path("project")).env_clear();
        let output =
            output.env("HOME", self.path("home")).env("PATH", std::env::var_os("PATH").unwrap());
        let output = output.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn antiphon(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } =
            self.command(self.binary().to_str().unwrap()).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        (status.code().unwrap(), text.into_owned())
    }

    fn run(&self, more: &[&str]) -> (i32, String) {
        let begin = ["run", "go", "--model", "scripted/work", "--script", "work.toml"];
        self.antiphon(&[&begin, more].concat())
    }

    /// Runs the task, allows what it asks about, and goes on.
    fn run_allowed(&self, how: &[&str]) -> String {
        let (code, text) = self.run(&["--ask", "wait"]);
        assert_eq!(code, 3, "{text}");
        let (code, text) = self.antiphon(&[&["approvals", "allow"], how, &["last"]].concat());
        assert_eq!(code, 0, "{text}");
        let (code, text) = self.antiphon(&["run", "--resume", "last"]);
        assert_eq!(code, 0, "{text}");
        text
    }
}

#[test]
fn an_allowed_file_outside_of_the_project_is_read_and_written() {
    for world in World::all(&["{ name = \"read\", arguments = { path = \"../beside.txt\" } }"]) {
        let (_, text) = world.run(&[]);
        assert!(!text.contains("what lies beside"), "without an answer it is not read: {text}");
        let text = world.run_allowed(&[]);
        assert!(text.contains("what lies beside"), "{text}");
    }
    let write = "{ name = \"write\", arguments = { path = \"../made.txt\", content = \"made\" } }";
    for world in World::all(&[write]) {
        world.run_allowed(&[]);
        assert_eq!(fs::read_to_string(world.path("made.txt")).unwrap(), "made");
    }
}

#[test]
fn a_link_out_of_the_project_is_refused_without_a_question() {
    for world in World::all(&["{ name = \"read\", arguments = { path = \"link\" } }"]) {
        std::os::unix::fs::symlink("../beside.txt", world.path("project/link")).unwrap();
        let (code, text) = world.run(&["--ask", "wait"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("outside") && !text.contains("what lies beside"), "{text}");
    }
}

#[test]
fn hidden_files_are_out_of_reach_of_commands_and_file_tools() {
    let cat = "{ name = \"bash\", arguments = { command = \"cat ../home/.claude/key\" } }";
    let read = "{ name = \"read\", arguments = { path = \"../home/.claude/key\" } }";
    let grep =
        "{ name = \"grep\", arguments = { pattern = \"stolen\", path = \"../home/.claude\" } }";
    let token =
        "{ name = \"bash\", arguments = { command = \"cat ../home/.local/state/antiphon/x\" } }";
    for call in [cat, read, grep, token] {
        for world in World::all(&[call]) {
            let state = world.path("home/.local/state/antiphon");
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join("x"), "the stolen token").unwrap();
            world.own(&world.path("home"));
            let (code, text) = world.run(&["--ask", "wait"]);
            assert_eq!(code, 0, "no question is asked: {text}");
            assert!(!text.contains("the stolen"), "{call}\n{text}");
        }
    }
}

#[test]
fn a_project_cannot_say_what_is_hidden() {
    let cat = "{ name = \"bash\", arguments = { command = \"cat ../home/.claude/key\" } }";
    for world in World::all(&[cat]) {
        fs::create_dir_all(world.path("project/.antiphon")).unwrap();
        let settings = "[sandbox]\nhidden = []\nunix_sockets = true\nmemory_mib = 1\n";
        fs::write(world.path("project/.antiphon/antiphon.toml"), settings).unwrap();
        world.own(&world.path("project"));
        let (_, text) = world.run(&[]);
        assert!(!text.contains("the stolen"), "{text}");
    }
}

#[test]
fn the_user_can_add_to_what_is_hidden() {
    for call in [
        "{ name = \"bash\", arguments = { command = \"cat ../clients/list\" } }",
        "{ name = \"read\", arguments = { path = \"../clients/list\" } }",
    ] {
        for world in World::all(&[call]) {
            fs::create_dir(world.path("clients")).unwrap();
            fs::write(world.path("clients/list"), "the stolen list").unwrap();
            let hidden = format!("[sandbox]\nhidden = [{:?}]\n", world.path("clients"));
            fs::write(world.path("home/.config/antiphon/config.toml"), hidden).unwrap();
            world.own(world.folder.path());
            let (code, text) = world.run(&["--ask", "wait"]);
            assert_eq!(code, 0, "{text}");
            assert!(!text.contains("the stolen"), "{text}");
        }
    }
}

#[test]
fn work_is_committed_from_inside_the_sandbox_with_an_approval() {
    let commit = "{ name = \"bash\", arguments = { command = \"git add work.toml && git commit -m inside\" } }";
    for world in World::all(&[commit]) {
        let (_, text) = world.run(&[]);
        assert!(text.contains("it changes the repository"), "{text}");
        let text = world.run_allowed(&["--always"]);
        assert_eq!(world.git(&["log", "--format=%s"]), "inside\n", "{text}");
        for name in ["commondir", "config.worktree", "modules", "worktrees"] {
            assert!(!world.path("project/.git").join(name).exists(), "{name} is left behind");
        }
        // Always: the next task is not asked.
        let (code, text) = world.run(&[]);
        assert!(code == 0 && text.contains("nothing to commit"), "{text}");
    }
}

#[test]
fn a_command_that_needs_more_is_told_so_and_offered_for_approval() {
    let outside = "{ name = \"bash\", arguments = { command = \"touch ../made\" } }";
    for world in World::all(&[outside]) {
        let (_, text) = world.run(&[]);
        assert!(text.contains("the sandbox refused to write `../made`"), "{text}");
        assert!(text.contains("without_sandbox: true"), "{text}");
    }
    let more =
        "{ name = \"bash\", arguments = { command = \"touch ../made\", without_sandbox = true } }";
    for world in World::all(&[more]) {
        let (_, text) = world.run(&["--allow", "bash"]);
        assert!(
            text.contains("unsandboxed(touch ../made *)") || text.contains("unsandboxed("),
            "{text}"
        );
        assert!(!world.path("made").exists(), "a rule for `bash` does not open the sandbox");
        world.run_allowed(&[]);
        assert!(world.path("made").exists());
    }
}

#[test]
fn a_rule_for_a_command_without_the_sandbox_covers_nothing_around_it() {
    for around in ["CURL_HOME=. true", "env time -o ../made true", "flock ../made true"] {
        let call = format!(
            "{{ name = \"bash\", arguments = {{ command = \"{around}\", without_sandbox = true }} }}"
        );
        for world in World::all(&[&call]) {
            let (_, text) = world.run(&["--allow", "unsandboxed(true)"]);
            assert!(text.contains(&format!("unsandboxed(={around})")), "{text}");
            assert!(!world.path("made").exists(), "{around}");
        }
    }
}

#[test]
fn memory_of_a_command_is_limited_by_the_users_settings() {
    let eats = "{ name = \"bash\", arguments = { command = \"head -c 900m /dev/zero | tail\" } }";
    for world in World::all(&[eats]) {
        let settings = "[sandbox]\nmemory_mib = 128\n";
        fs::write(world.path("home/.config/antiphon/config.toml"), settings).unwrap();
        world.own(world.folder.path());
        let (_, text) = world.run(&[]);
        assert!(text.contains("stopped: it used more than 128 MiB of memory"), "{text}");
    }
}
