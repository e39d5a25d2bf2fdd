//! A minute of mixed load with faults: chat, tasks with tools, an inbox, watchers that come and go,
//! clients that disconnect, a model that fails, and a server that is killed and restarted.
//!
//! It fails when an accepted task is lost, when memory or open files grow under constant load, or
//! when a process is left. `SOAK_S` sets the duration in seconds, 60 by default.

mod accepted_tasks;
mod check;
mod clients;
mod memory;
mod server;

use std::time::{Duration, Instant};

use accepted_tasks::AcceptedTasks;
use antiphon_bench::{Error, raise_files};
use memory::Memory;
use server::ServerUnderTest;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

const SOAK_S: u32 = 60;
const SOAK_S_MAX: u32 = 24 * 60 * 60;

/// When the server is killed, in percent of the duration. After that it is undisturbed.
const KILLED_AT: [u32; 3] = [12, 24, 36];

/// When memory is first measured, in percent of the duration: after the warm-up.
const WARM_AT: u32 = 60;

/// How often memory is measured.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);

fn main() -> Result<(), Error> {
    raise_files()?;
    let seconds = match std::env::var("SOAK_S") {
        Ok(seconds) => seconds.parse()?,
        Err(_) => SOAK_S,
    };
    if !(10..=SOAK_S_MAX).contains(&seconds) {
        return Err(format!("SOAK_S is 10 to {SOAK_S_MAX}, not {seconds}").into());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(soak(Duration::from_secs(u64::from(seconds))))
}

async fn soak(how_long: Duration) -> Result<(), Error> {
    println!("everything at once for {} s, killed {} times\n", how_long.as_secs(), KILLED_AT.len());
    let mut server = ServerUnderTest::build()?;
    let (accepted, stop) = (AcceptedTasks::default(), CancellationToken::new());
    let mut actors = clients::all(&server.address(), &accepted, &stop);
    let mut memory = Memory::default();
    let began = Instant::now();
    let mut kills = KILLED_AT.iter().map(|hundredths| how_long * *hundredths / 100).peekable();
    while began.elapsed() < how_long {
        tokio::time::sleep(SAMPLE_EVERY).await;
        if kills.next_if(|at| began.elapsed() >= *at).is_some() {
            server.kill_and_restart().await?;
        }
        if began.elapsed() >= how_long * WARM_AT / 100 {
            memory.look(server.process()?)?;
        }
    }
    stop.cancel();
    while let Some(ended) = actors.join_next().await {
        ended??;
    }
    accepted.print(began.elapsed());
    check::settled(&server, &accepted).await?;
    memory.judge()?;
    server.end().await
}
