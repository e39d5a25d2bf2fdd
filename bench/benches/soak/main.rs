//! A minute of everything at once, with faults: chat, tasks with tools, an inbox, watchers that come and
//! go, clients that hang up, a model that fails, and a server that is killed and started again.
//!
//! It fails when something that was accepted is lost, when memory or open files grow while
//! the load stays the same, or when a process is left behind. `SOAK_S` says how many seconds it takes,
//! 60 when absent.

mod actors;
mod house;
mod ledger;
mod memory;
mod verdict;

use std::time::{Duration, Instant};

use antiphon_bench::{Error, raise_files};
use house::House;
use ledger::Ledger;
use memory::Memory;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

const SOAK_S: u32 = 60;
const SOAK_S_MAX: u32 = 24 * 60 * 60;

/// When the server is killed, in hundredths of the time. What comes behind is undisturbed.
const KILLED_AT: [u32; 3] = [12, 24, 36];

/// When memory is looked at first, in hundredths of the time: what is needed is there by then.
const WARM_AT: u32 = 60;

/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
    let mut house = House::build()?;
    let (ledger, stop) = (Ledger::default(), CancellationToken::new());
    let mut actors = actors::all(&house.address(), &ledger, &stop);
    let mut memory = Memory::default();
    let began = Instant::now();
    let mut kills = KILLED_AT.iter().map(|hundredths| how_long * *hundredths / 100).peekable();
    while began.elapsed() < how_long {
        tokio::time::sleep(LOOK_EVERY).await;
        if kills.next_if(|at| began.elapsed() >= *at).is_some() {
            house.kill_and_restart().await?;
        }
        if began.elapsed() >= how_long * WARM_AT / 100 {
            memory.look(house.process()?)?;
        }
    }
    stop.cancel();
    while let Some(ended) = actors.join_next().await {
        ended??;
    }
    ledger.print(began.elapsed());
    verdict::settled(&house, &ledger).await?;
    memory.judge()?;
    house.end().await
}
