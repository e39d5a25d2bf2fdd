//! The terminal program at a pseudo-terminal, with a model of the terminal: how soon a person sees something.
//!
//! | part     | measures                                                                                      |
//! |----------|-----------------------------------------------------------------------------------------------|
//! | `start`  | from the start of the process to the prompt on the screen                                     |
//! | `keys`   | from a key to its character on the screen, at rest and while 50 agents stream                 |
//! | `deltas` | CPU of the whole program for each delta of an answer, beside `antiphon run` into a file       |
//! | `memory` | resident memory with an empty conversation, with one of 10 MB, and with its transcript open   |
//!
//! Needs `ANTIPHON`. `cargo bench … --bench terminal -- keys` measures that part alone.

mod screen;

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_bench::{Error, Process, Project, Times};
use screen::Screen;

/// Starts that are measured.
const STARTS: usize = 50;

/// Keys that are measured.
const KEYS: usize = 500;

/// Keys that are typed before the prompt is cleared.
const TYPED: usize = 50;

/// Agents that stream.
const AGENTS: usize = 50;

/// Deltas of the answer whose CPU is measured.
const DELTAS: u32 = 200_000;

/// Messages of the long conversation, and bytes of each.
const MESSAGES: usize = 1_000;
const MESSAGE_BYTES: usize = 10_500;

fn main() -> Result<(), Error> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|it| it == part);
    if is_chosen("start") {
        start()?;
    }
    if is_chosen("keys") {
        keys()?;
    }
    if is_chosen("deltas") {
        deltas()?;
    }
    if is_chosen("memory") {
        memory()?;
    }
    Ok(())
}

fn project(script: &str) -> Result<Project, Error> {
    let project = Project::new(env!("CARGO_TARGET_TMPDIR"), "")?;
    project.write("s.toml", &format!("name = \"s\"\n{script}"))?;
    Ok(project)
}

/// The program of a project with a terminal of its own.
fn program(project: &Project, more: &[&str]) -> Command {
    let begin = ["chat", "--model", "scripted/s", "--script", "s.toml"];
    let alone = project.command(&[&begin, more].concat());
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg("--wait").arg(alone.get_program()).args(alone.get_args());
    command.env_clear().current_dir(project.path()).env("TERM", "xterm-256color");
    command.envs(alone.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn chat(project: &Project, more: &[&str]) -> Result<Screen, Error> {
    let mut screen = Screen::start(program(project, more))?;
    screen.until("Ask anything")?;
    Ok(screen)
}

fn row(name: &str, times: &Times) {
    let (p50, p99) = (times.percentile_ms(50), times.percentile_ms(99));
    println!("{name:60}{p50:>10.2}{p99:>10.2}");
}

fn start() -> Result<(), Error> {
    println!(
        "from the start of a process, of {STARTS}, ms                             p50       p99\n"
    );
    let project = project("[[reply]]\nsteps = [{ text = \"Hello.\" }]\n")?;
    let (mut versions, mut prompts) = (Times::default(), Times::default());
    for _ in 0..STARTS {
        let began = Instant::now();
        project.command(&["--version"]).output()?;
        versions.push(began.elapsed());
        let began = Instant::now();
        let screen = chat(&project, &[])?;
        prompts.push(began.elapsed());
        screen.quit()?;
    }
    row("the program prints its version", &versions);
    row("the prompt is on the screen", &prompts);
    println!("\nThe aim is 30 ms at p50 on an idle machine.\n");
    Ok(())
}

fn keys() -> Result<(), Error> {
    println!(
        "from a key to the screen, of {KEYS}, ms                                  p50       p99\n"
    );
    let project = project(&format!(
        "[[reply]]\nwhen = {{ system_contains = \"You are a worker\" }}\ndelay_ms = 20\nchunk_chars = 5\n\
         steps = [{{ text = \"word \", repeat = 100000 }}]\n\
         [[reply]]\nwhen = {{ turn = 0 }}\n\
         steps = [{{ call = {{ name = \"call_agent\", arguments = {{ join = \"all\", targets = [{}] }} }} }}]\n",
        (0..AGENTS)
            .map(|number| format!("{{ agent = \"worker\", prompt = \"part {number}\" }}"))
            .collect::<Vec<_>>()
            .join(", ")
    ))?;
    let agent = "---\ndescription: works\nmodel: scripted/s\n---\nYou are a worker.\n";
    project.write(".antiphon/agents/worker.md", agent)?;
    let trusted = project.command(&["trust", "--yes"]).stdout(Stdio::null()).status()?;
    if !trusted.success() {
        return Err("the project cannot be trusted".into());
    }
    let mut screen = chat(&project, &[])?;
    row("at rest", &typed(&mut screen)?);
    screen.press("go\r")?;
    screen.until("worker")?;
    // Until all of them stream.
    screen.watch(Duration::from_secs(5))?;
    let (process, before) = (screen.process()?, Instant::now());
    let usage = process.usage()?;
    row(&format!("while {AGENTS} agents stream, each 50 deltas a second"), &typed(&mut screen)?);
    let cores = process.usage()?.cores_since(&usage);
    println!(
        "{:60}{cores:>10.2} cores for {:.1} s",
        "  the whole program meanwhile",
        before.elapsed().as_secs_f64()
    );
    println!("\nThe aim is 16 ms at p99 while agents stream.\n");
    Ok(())
}

/// Types, and waits for each character.
fn typed(screen: &mut Screen) -> Result<Times, Error> {
    let mut times = Times::default();
    for number in 0..KEYS {
        if number % TYPED == 0 {
            screen.press("\x15")?;
            screen.until_seen(|screen| screen.cursor_position().1 == 2)?;
        }
        let (_, column) = screen.cursor();
        let began = Instant::now();
        screen.press("x")?;
        screen.until_seen(|screen| {
            let (row, now) = screen.cursor_position();
            now == column + 1 && screen.cell(row, column).is_some_and(|cell| cell.contents() == "x")
        })?;
        times.push(began.elapsed());
        // A person is slower, and keys meet every phase of a frame.
        screen.watch(Duration::from_micros(3_000 + (number as u64 * 977) % 14_000))?;
    }
    Ok(times)
}

fn deltas() -> Result<(), Error> {
    println!("CPU for each of {DELTAS} deltas of 5 characters, µs\n");
    let project = project(&format!(
        "chunk_chars = 5\n[[reply]]\nsteps = [{{ text = \"{}\\n\\n\", repeat = {} }}, {{ text = \"The end.\" }}]\n",
        "word ".repeat(40).trim_end(),
        DELTAS / 40
    ))?;
    let mut screen = chat(&project, &[])?;
    let process = screen.process()?;
    let before = process.usage()?;
    screen.press("go\r")?;
    screen.until("The end.")?;
    screen.until("Ask anything")?;
    let shown = process.usage()?.cpu_since(&before);
    screen.quit()?;
    let arguments = ["run", "--model", "scripted/s", "--script", "s.toml", "go"];
    let mut run = project.command(&arguments);
    let mut run =
        run.stdout(File::create(project.path().join("answer"))?).stderr(Stdio::null()).spawn()?;
    let mut plain = Duration::ZERO;
    while run.try_wait()?.is_none() {
        // The last look before its end.
        for id in Process::new(run.id()).descendants() {
            if let Ok(usage) = Process::new(id).usage() {
                plain = plain.max(usage.cpu());
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / f64::from(DELTAS);
    println!("{:60}{:>10.2}", "the whole program, with the terminal", each(shown));
    println!("{:60}{:>10.2}", "the same into a file, without a terminal", each(plain));
    println!("{:60}{:>10.2}", "the terminal", each(shown.saturating_sub(plain)));
    println!("\nThe aim is 3 µs for the terminal.\n");
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a few million")]
fn memory() -> Result<(), Error> {
    println!("resident memory, MiB\n");
    let project = project("[[reply]]\nsteps = [{ text = \"Hello.\" }]\n")?;
    let mib = |kib: u64| kib as f64 / 1024.0;
    let screen = chat(&project, &[])?;
    println!("{:60}{:>10.1}", "an empty conversation", mib(screen.process()?.resident_kib()?));
    screen.quit()?;
    let at = "2026-01-01T00:00:00Z";
    let said = "words of a prompt that is long ".repeat(MESSAGE_BYTES / 31);
    let messages: Vec<serde_json::Value> = (0..MESSAGES)
        .map(|number| {
            let text = format!("prompt {number}\n{said}");
            serde_json::json!({ "type": "user", "timestamp": at, "content": [{ "type": "text", "text": text }] })
        })
        .collect();
    let session = serde_json::json!({ "version": 1, "id": "long", "system_prompt": "", "created_at": at,
        "updated_at": at, "messages": messages });
    project.write("long.json", &session.to_string())?;
    let imported =
        project.command(&["sessions", "import", "long.json"]).stdout(Stdio::null()).status()?;
    if !imported.success() {
        return Err("the conversation cannot be imported".into());
    }
    let mut screen = chat(&project, &["-c"])?;
    let process = screen.process()?;
    println!("{:60}{:>10.1}", "a conversation of 10 MB", mib(process.resident_kib()?));
    let began = Instant::now();
    screen.press("\x14")?;
    screen.until("q closes")?;
    let opened = began.elapsed();
    println!("{:60}{:>10.1}", "its whole transcript, open", mib(process.resident_kib()?));
    let began = Instant::now();
    screen.press("/no such text\r")?;
    screen.until("is not here")?;
    let searched = began.elapsed();
    let began = Instant::now();
    screen.press("g")?;
    screen.until("prompt 0")?;
    println!(
        "\nThe transcript is open after {:.0} ms, its first line is shown after {:.0} ms, and a search of all of it takes {:.0} ms.\n",
        opened.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64() * 1e3,
        searched.as_secs_f64() * 1e3
    );
    screen.press("q")?;
    screen.until("Ask anything")?;
    screen.quit()
}
