//! From the start of `antiphon run` to its first request to a model.
//!
//! Alone and as the client of an owner, each also in a project whose settings were trusted before. The model only notes when
//! the request comes, and refuses it. Needs `ANTIPHON`. Beside it: the same program that prints its version.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use antiphon_bench::{Error, Project, Times, heading};

/// Starts of each kind.
const STARTS: usize = 100;

/// How long a start may take.
const AIM_MS: u32 = 15;

/// The answer to each request. It is not repeated.
const REFUSAL: &str =
    "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";

/// A model that never answers.
const STALLS: &str = "name = \"stalls\"\n[[reply]]\nsteps = [{ stall = true }]\n";

fn main() -> Result<(), Error> {
    let model = TcpListener::bind("127.0.0.1:0")?;
    heading(
        &format!("from the start of `antiphon run` to its first request to a model, of {STARTS}"),
        "start",
    );
    println!("{:60}{:>10}{:>10}", "", "p50, ms", "p99, ms");
    let alone = Project::new(env!("CARGO_TARGET_TMPDIR"), "")?;
    row("the program prints its version", &versions(&alone)?);
    row("alone", &starts(&alone, &model)?);
    let trusted = Project::new(env!("CARGO_TARGET_TMPDIR"), "")?;
    trusted.write(".antiphon/antiphon.toml", "[permissions]\nallow = [\"bash(make *)\"]\n")?;
    if !trusted.command(&["trust", "--yes"]).stdout(Stdio::null()).status()?.success() {
        return Err("the project cannot be trusted".into());
    }
    row("alone, with trusted settings of the project", &starts(&trusted, &model)?);
    let owner = Owner::start(&alone)?;
    row("as the client of an owner", &starts(&alone, &model)?);
    drop(owner);
    let owner = Owner::start(&trusted)?;
    row("as the client of an owner, with trusted settings", &starts(&trusted, &model)?);
    drop(owner);
    println!("\nThe aim is {AIM_MS} ms at p50 on an idle machine, for each of the four.");
    Ok(())
}

fn row(name: &str, times: &Times) {
    let (p50, p99) = (times.percentile_ms(50), times.percentile_ms(99));
    println!("{name:60}{p50:>10.2}{p99:>10.2}");
}

fn versions(project: &Project) -> Result<Times, Error> {
    let mut times = Times::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        project.command(&["--version"]).output()?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn starts(project: &Project, model: &TcpListener) -> Result<Times, Error> {
    let url = format!("http://{}", model.local_addr()?);
    let mut times = Times::default();
    for _ in 0..STARTS {
        let mut run = project.command(&["run", "--model", "anthropic/claude-sonnet-4-5", "hi"]);
        run.env("ANTHROPIC_API_KEY", "none").env("ANTHROPIC_BASE_URL", &url);
        run.stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let mut run = run.spawn()?;
        let (mut request, _) = model.accept()?;
        request.read_exact(&mut [0])?;
        times.push(began.elapsed());
        refuse(&mut request)?;
        run.wait()?;
    }
    Ok(times)
}

/// Reads what has come, and answers.
fn refuse(request: &mut TcpStream) -> Result<(), Error> {
    request.set_read_timeout(Some(Duration::from_millis(20)))?;
    let mut rest = vec![0; 64 * 1024];
    while request.read(&mut rest).is_ok_and(|count| count > 0) {}
    request.write_all(REFUSAL.as_bytes())?;
    Ok(())
}

/// A process that owns the journal and works.
struct Owner(Child);

impl Owner {
    fn start(project: &Project) -> Result<Self, Error> {
        project.write("stalls.toml", STALLS)?;
        let arguments = ["run", "--model", "scripted/stalls", "--script", "stalls.toml", "wait"];
        let mut owner = project.command(&arguments);
        let owner = Self(owner.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let end = Instant::now() + Duration::from_secs(10);
        let is_listed = || -> Result<bool, Error> {
            let listed = project.command(&["tasks", "list", "--unfinished"]).output()?;
            Ok(String::from_utf8_lossy(&listed.stdout).contains("running"))
        };
        while !is_listed()? {
            if Instant::now() > end {
                return Err("the owner does not start".into());
            }
        }
        Ok(owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
