//! The README and the page about curl, run. Every block of code in them is `sh` or `text`: a block of `sh` is run, all of them one
//! after the other in one shell, and a block of `text` is what the block before it prints. In a text, `…`
//! stands for anything within a line, and a line of it for any lines.
//!
//! What is run is this build, in a folder of its own with what a clone has, and on a port of its own;
//! `make run` takes the binary that is there instead of building one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/pty.rs"]
mod pty;

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use antiphon_model_server::{ModelServer, RecordedRequest, Reply};

use pty::Terminal;

/// Stands for anything.
const ANYTHING: char = '…';

/// What the model says that stands in for the reader's own.
const ANSWER: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Mended.\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// A block of code.
#[derive(Debug, PartialEq)]
enum Block {
    /// Something to run.
    Run(String),
    /// What the one before it prints.
    Prints(String),
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        let text = text.join("\n");
        blocks.push(match kind {
            "sh" => Block::Run(text),
            "text" => Block::Prints(text),
            other => panic!("a block of `{other}` is not run: make it `sh`, or `text` behind one"),
        });
    }
    blocks
}

/// Whether these lines are there, in this order and without others between them.
fn prints(printed: &[&str], expected: &[&str]) -> bool {
    match expected {
        [] => true,
        [first, rest @ ..] if first.trim() == ANYTHING.to_string() => {
            (0..=printed.len()).any(|skipped| prints(&printed[skipped..], rest))
        }
        [first, rest @ ..] => match printed {
            [line, others @ ..] => {
                is_like(line.trim_end(), first.trim_end()) && prints(others, rest)
            }
            [] => false,
        },
    }
}

fn is_like(line: &str, expected: &str) -> bool {
    match expected.split_once(ANYTHING) {
        None => line == expected,
        Some((before, rest)) => line.strip_prefix(before).is_some_and(|line| {
            let mut ends = line.char_indices().map(|(end, _)| end).chain([line.len()]);
            ends.any(|end| is_like(&line[end..], rest))
        }),
    }
}

/// A clone of this repository, with its files as they are now, and a home of its own.
struct Reader {
    folder: tempfile::TempDir,
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        // Side by side: a project must not hold the home folder.
        fs::create_dir(folder.path().join("home")).unwrap();
        fs::create_dir(folder.path().join("temporary")).unwrap();
        let cloned = Command::new("git")
            .args(["-c", "safe.directory=*", "clone", "--quiet"])
            .args([source.as_path(), &folder.path().join("clone")])
            .output()
            .unwrap();
        assert!(cloned.status.success(), "{cloned:?}");
        let copied = Command::new("cp")
            .args(["-r", "Makefile", "scripts", "examples", "-t"])
            .arg(folder.path().join("clone"))
            .current_dir(source)
            .status();
        assert!(copied.unwrap().success());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes each block to a file, with a port of its own for the server.
    fn write_blocks(&self, blocks: &[&str]) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for (number, block) in blocks.iter().enumerate() {
            let block = block
                .replace("antiphon serve", &format!("antiphon serve --listen 127.0.0.1:{port}"))
                .replace("127.0.0.1:7117/", &format!("127.0.0.1:{port}/"));
            fs::write(self.path(&format!("block-{number}")), block).unwrap();
        }
    }

    /// A program in the clone, with the environment of its reader.
    fn command(&self, program: &str, models: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_antiphon"));
        let mut path = vec![binary.parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new(program);
        command
            .current_dir(self.path("clone"))
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("temporary"))
            .env("ANTIPHON", binary)
            .env("ANTHROPIC_BASE_URL", models);
        command
    }

    /// Types these blocks into an interactive shell at a terminal, and tells what each showed there.
    fn type_in(&self, blocks: &[&str], models: &str) -> Vec<String> {
        self.write_blocks(blocks);
        let mut shell = self.command("setsid", models);
        shell.args(["--ctty", "--wait", "bash", "--norc", "--noprofile", "--noediting", "-i"]);
        shell.env("TERM", "xterm-256color");
        let mut terminal = Terminal::start(shell);
        let folder = self.folder.path().display();
        let mut shown = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let from = terminal.text().len();
            // What is typed is shown, too, and differs from what is printed.
            terminal.press(&format!(
                "eval \"$(cat {folder}/block-{number})\"; echo '@@'done:{number}:$?'@@'\n"
            ));
            terminal.until(&format!("@@done:{number}:"));
            terminal.until(&format!("@@done:{number}:0@@"));
            shown.push(plain(&terminal.text()[from..]));
            assert!(!block.is_empty());
        }
        terminal.press("exit\n");
        terminal.end();
        shown
    }

    /// Runs these blocks in one shell, and tells what each printed.
    fn run(&self, blocks: &[&str], models: &str) -> Vec<String> {
        let mut script = String::from("set -e\ntrap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n");
        self.write_blocks(blocks);
        for number in 0..blocks.len() {
            let folder = self.folder.path().display();
            writeln!(
                script,
                "eval \"$(cat {folder}/block-{number})\" >{folder}/printed-{number} 2>&1 </dev/null\n\
                 echo {number} >{folder}/done"
            )
            .unwrap();
        }
        let status = self
            .command("timeout", models)
            .args(["100", "bash", "-c", &script])
            .stdin(Stdio::null())
            .process_group(0)
            .status()
            .unwrap();
        let printed = |number: usize| {
            let printed = fs::read(self.path(&format!("printed-{number}"))).unwrap_or_default();
            String::from_utf8_lossy(&printed).into_owned()
        };
        let printed: Vec<String> = (0..blocks.len()).map(printed).collect();
        let done = fs::read_to_string(self.path("done")).unwrap_or_default();
        let last = done.trim().parse::<usize>().map_or(0, |done| done + 1).min(blocks.len() - 1);
        assert!(
            status.success(),
            "{status} in:\n{}\nwhich printed:\n{}",
            blocks[last],
            printed[last]
        );
        printed
    }
}

/// What a terminal shows, without colors and without moves of the cursor; what is drawn over something begins a line.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.peek() == Some(&'[') => {
                rest.next();
                let last = rest.by_ref().find(|c| ('@'..='~').contains(c));
                if last != Some('m') {
                    plain.push('\n');
                }
            }
            '\x1b' => {}
            '\r' => plain.push('\n'),
            c => plain.push(c),
        }
    }
    plain
}

/// Whether each of these lines is somewhere on the screen.
fn shows(shown: &str, expected: &str) -> bool {
    let has = |expected: &&str| {
        let expected = format!("{ANYTHING}{}{ANYTHING}", expected.trim());
        shown.lines().any(|line| is_like(line, &expected))
    };
    expected.lines().filter(|line| line.trim() != ANYTHING.to_string()).all(|line| has(&line))
}

/// The page, typed into an interactive shell: a status line is drawn there, jobs run in the background of the terminal,
/// and programs may ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_block_of_the_readme_does_what_it_says_when_it_is_typed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let blocks = blocks(&fs::read_to_string(page).unwrap());
    let models = ModelServer::start(|_: &RecordedRequest, _| Reply::events(ANSWER)).await.unwrap();
    let run = blocks.iter().filter_map(|block| match block {
        Block::Run(text) => Some(text.as_str()),
        Block::Prints(_) => None,
    });
    let run: Vec<&str> = run.collect();
    let url = models.url();
    let shown = tokio::task::block_in_place(|| Reader::new().type_in(&run, &url));
    let mut shown = run.into_iter().zip(&shown);
    let mut last = None;
    for block in &blocks {
        match block {
            Block::Run(_) => last = shown.next(),
            Block::Prints(expected) => {
                let (ran, shown) = last.unwrap();
                assert!(
                    shows(shown, expected),
                    "it says that\n{ran}\nprints\n{expected}\nand the terminal shows\n{shown}"
                );
            }
        }
    }
}

async fn does_what_it_says(page: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let blocks = blocks(&fs::read_to_string(page).unwrap());
    let models = ModelServer::start(|_: &RecordedRequest, _| Reply::events(ANSWER)).await.unwrap();
    let run = blocks.iter().filter_map(|block| match block {
        Block::Run(text) => Some(text.as_str()),
        Block::Prints(_) => None,
    });
    let run: Vec<&str> = run.collect();
    let url = models.url();
    let printed = tokio::task::block_in_place(|| Reader::new().run(&run, &url));
    let mut printed = run.into_iter().zip(&printed);
    let mut last = None;
    for block in &blocks {
        match block {
            Block::Run(_) => last = printed.next(),
            Block::Prints(expected) => {
                let (ran, printed) = last.unwrap();
                let expected: Vec<&str> = expected.lines().collect();
                let lines: Vec<&str> = printed.lines().collect();
                assert!(
                    (0..=lines.len()).any(|from| prints(&lines[from..], &expected)),
                    "it says that\n{ran}\nprints\n{}\nand it prints\n{printed}",
                    expected.join("\n")
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_block_of_the_readme_does_what_it_says() {
    does_what_it_says("README.md").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_block_of_the_page_about_curl_does_what_it_says() {
    does_what_it_says("docs/curl.md").await;
}

#[test]
fn a_page_is_read_and_compared_as_it_says() {
    let page = "Text.\n\n```sh\necho a\n```\n\n```text\na\n```\n";
    let read = blocks(page);
    assert_eq!(read, [Block::Run("echo a".to_owned()), Block::Prints("a".to_owned())]);
    assert!(prints(&["a 12 b", "c", "d"], &["a … b", "…", "d"]));
    assert!(!prints(&["a 12 b", "c"], &["a … b", "d"]));
    assert!(!prints(&["a"], &["a", "b"]));
    assert!(!is_like("ab", "a"));
}
