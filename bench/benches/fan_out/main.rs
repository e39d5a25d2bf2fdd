//! The cost of 100, 1,000 and 10,000 concurrent agents.
//!
//! One task calls `call_agent` with that many targets and waits for all of them. Each makes one
//! model call, which takes 50 ms. Compared with the same requests from a bare loop of tokio and
//! reqwest, and with the same agents with a model in memory or a journal in memory, to separate the
//! costs of HTTP, the disk and the orchestrator.
//!
//! Each measurement is a separate process, and so is the model server: neither leftovers of another
//! measurement nor the server's work are counted.

mod bare;
mod model;
mod team;
mod usage;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use antiphon_bench::heading;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use team::Model;
use usage::ResourceUsage;

type Error = Box<dyn std::error::Error>;

const CHILDREN: [u32; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 3;

/// Files that are open in addition to the connections.
const OTHER_FILES: u64 = 256;

/// Argument that makes this program the model server.
const SERVER: &str = "__server";

/// Argument that makes this program a measurement: subject, number of children, address of the
/// model.
const MEASURE: &str = "__measure";

/// What is measured.
struct Subject {
    name: &'static str,
    word: &'static str,
    over: ModelPath,
    run: fn(u32, &str) -> Result<ResourceUsage, Error>,
}

/// How the model is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModelPath {
    Http,
    Nothing,
}

const SUBJECTS: [Subject; 4] = [
    Subject {
        name: "tokio and reqwest alone",
        word: "bare",
        over: ModelPath::Http,
        run: |children, url| bare::run(children, url),
    },
    Subject {
        name: "agents, synced",
        word: "http",
        over: ModelPath::Http,
        run: |children, url| team::run(children, &Model::At(url), team::synced),
    },
    Subject {
        name: "  without HTTP",
        word: "no-http",
        over: ModelPath::Nothing,
        run: |children, _| team::run(children, &Model::InMemory, team::synced),
    },
    Subject {
        name: "  without either",
        word: "no-disk",
        over: ModelPath::Nothing,
        run: |children, _| team::run(children, &Model::InMemory, team::in_memory),
    },
];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [SERVER] => model::serve(),
        [MEASURE, word, children, url] => {
            let subject = SUBJECTS.iter().find(|subject| subject.word == *word);
            let subject = subject.ok_or_else(|| format!("there is no `{word}` to measure"))?;
            println!("{}", (subject.run)(children.parse()?, url)?.line());
            Ok(())
        }
        _ => compare(),
    }
}

fn compare() -> Result<(), Error> {
    let files = raise_files()?;
    let call_ms = model::ANSWER_AFTER.as_millis();
    heading(
        &format!(
            "agents at once, each with one model call of {call_ms} ms; the fastest of {ROUNDS}"
        ),
        "fan_out",
    );
    println!(
        "{:26}{:>10}{:>10}{:>14}{:>14}{:>16}",
        "", "children", "wall, s", "CPU, µs each", "peak KiB each", "journal B each"
    );
    for subject in &SUBJECTS {
        for children in CHILDREN {
            print!("{:26}{children:>10}", subject.name);
            if subject.over == ModelPath::Http && u64::from(children) + OTHER_FILES > files {
                println!("  needs more open files than {files}: raise `ulimit -Hn`");
                continue;
            }
            let spent = fastest(subject, children)?;
            let ResourceUsage { wall_s, cpu_us, peak_kib, journal_bytes } = spent.each(children);
            println!("{wall_s:>10.3}{cpu_us:>14.0}{peak_kib:>14.1}{journal_bytes:>16.0}");
        }
    }
    Ok(())
}

/// Raises the limit of open files to the maximum: each child has one connection.
fn raise_files() -> Result<u64, Error> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

fn fastest(subject: &Subject, children: u32) -> Result<ResourceUsage, Error> {
    let mut fastest: Option<ResourceUsage> = None;
    for _ in 0..ROUNDS {
        let spent = measure(subject, children)?;
        fastest = Some(match fastest.take() {
            Some(best) if best.wall_s <= spent.wall_s => best,
            Some(_) | None => spent,
        });
    }
    fastest.ok_or_else(|| "nothing was measured".into())
}

fn measure(subject: &Subject, children: u32) -> Result<ResourceUsage, Error> {
    // A new server for each: its port is fresh, and so are the client's.
    let server = (subject.over == ModelPath::Http).then(Server::start).transpose()?;
    let url = server.as_ref().map_or("none", |server| server.url.as_str());
    let output = Command::new(std::env::current_exe()?)
        .args([MEASURE, subject.word, &children.to_string(), url])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("`{}` with {children} children failed", subject.word).into());
    }
    ResourceUsage::read(&String::from_utf8(output.stdout)?)
}

/// A model server in its own process, which ends when its input is closed.
struct Server {
    url: String,
    process: Child,
}

impl Server {
    fn start() -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut url)?;
        Ok(Self { url: url.trim().to_owned(), process })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It ends by itself; this only waits for it.
        let _ = self.process.wait();
    }
}
