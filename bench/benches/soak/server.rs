//! The server under test: killed and restarted in the same folder.

use std::time::{Duration, Instant};

use antiphon_bench::{Address, Error, Process, Project, Served};
use tokio::sync::watch;

const CONFIG: &str = r#"
[scripts]
instant = "instant.toml"
worker = "worker.toml"
flaky = "flaky.toml"
slow = "slow.toml"
"#;

const INSTANT: &str = r#"
name = "instant"
[[reply]]
steps = [{ text = "There is nothing wrong with it, as far as anybody can see." }]
"#;

/// Reads, runs a command, and reports.
const WORKER: &str = r#"
name = "worker"
[[reply]]
when = { turn = 0 }
steps = [
  { call = { name = "read", arguments = { path = "note.txt" } } },
  { call = { name = "glob", arguments = { pattern = "*.txt" } } },
]
[[reply]]
when = { turn = 1 }
steps = [{ call = { name = "bash", arguments = { command = "echo done" } } }]
[[reply]]
steps = [{ text = "Done: {{last_result}}" }]
"#;

/// Fails at the first call, and sometimes always.
const FLAKY: &str = r#"
name = "flaky"
[[reply]]
when = { last_user_contains = "never" }
steps = [{ text = "Let me" }, { error = { kind = "server", message = "gone" } }]
[[reply]]
when = { attempt = 1 }
steps = [{ error = { kind = "overloaded", message = "later", retry_after_ms = 20 } }]
[[reply]]
steps = [{ text = "Sorry for the wait." }]
"#;

const SLOW: &str = r#"
name = "slow"
chunk_chars = 4
delay_ms = 40
[[reply]]
steps = [{ text = "One, two, three, four, five, six, seven, eight, nine, ten, and nobody is there to hear it." }]
"#;

/// An agent with an inbox.
const LISTENER: &str = "---\ndescription: Listens.\nmodel: scripted/instant\n---\nListen.\n";

/// How long processes of a killed server may take to end.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(5);

/// A server and its current address.
pub(crate) struct ServerUnderTest {
    project: Project,
    served: Option<Served>,
    address: watch::Sender<Address>,
}

impl ServerUnderTest {
    pub(crate) fn build() -> Result<Self, Error> {
        let project = Project::new(env!("CARGO_TARGET_TMPDIR"), CONFIG)?;
        let scripts = [("instant", INSTANT), ("worker", WORKER), ("flaky", FLAKY), ("slow", SLOW)];
        for (name, script) in scripts {
            project.write(&format!("{name}.toml"), script)?;
        }
        project.write("note.txt", "There is nothing wrong with it.\n")?;
        project.write(".antiphon/agents/listener.md", LISTENER)?;
        let served = serve(&project)?;
        let address = watch::Sender::new(served.address()?);
        Ok(Self { project, served: Some(served), address })
    }

    pub(crate) fn address(&self) -> watch::Receiver<Address> {
        self.address.subscribe()
    }

    pub(crate) fn process(&self) -> Result<Process, Error> {
        Ok(self.served.as_ref().ok_or("there is no server")?.process())
    }

    pub(crate) async fn kill_and_restart(&mut self) -> Result<(), Error> {
        let orphans = self.process()?.descendants();
        if let Some(served) = self.served.take() {
            served.kill()?;
        }
        let served = serve(&self.project)?;
        self.address.send_replace(served.address()?);
        self.served = Some(served);
        none_left(orphans).await
    }

    /// Shuts it down and checks that no process is left.
    pub(crate) async fn end(mut self) -> Result<(), Error> {
        let children = self.process()?.descendants();
        if let Some(served) = self.served.take() {
            served.end()?;
        }
        none_left(children).await?;
        println!("{:52}{:>10}", "processes left behind", 0);
        Ok(())
    }
}

fn serve(project: &Project) -> Result<Served, Error> {
    project.serve(&["--allow", "bash(echo *)"])
}

/// Waits until none of these processes exists.
async fn none_left(processes: Vec<u32>) -> Result<(), Error> {
    let until = Instant::now() + ORPHANS_END_WITHIN;
    for id in processes {
        while std::path::Path::new(&format!("/proc/{id}")).exists() {
            if Instant::now() > until {
                return Err(format!("process {id} outlived its server").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
