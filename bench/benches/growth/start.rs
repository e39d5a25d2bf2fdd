//! Start with 100,000 ended and 5,000 unfinished tasks, from the command to the line `listening on`.

use std::time::Instant;

use antiphon_bench::{Error, Times, heading};
use tokio::runtime::Runtime;

use crate::model;
use crate::seed::{Left, seed};

const ENDED: usize = 100_000;
const UNFINISHED: usize = 5_000;

/// How often it is started.
const STARTS: usize = 5;

pub(crate) fn measure(_: &Runtime) -> Result<(), Error> {
    heading(
        &format!("start with {ENDED} ended and {UNFINISHED} paused tasks; {STARTS} starts"),
        "growth -- start",
    );
    let (_model, project) = model::project("")?;
    project.serve(&[])?.end()?;
    let journal = project.journal()?;
    seed(&journal, ENDED, Left::Completed)?;
    seed(&journal, UNFINISHED, Left::Paused)?;
    let mut times = Times::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let served = project.serve(&[])?;
        times.push(began.elapsed());
        served.end()?;
    }
    println!("p50 {:.0} ms, longest {:.0} ms", times.percentile_ms(50), times.percentile_ms(100));
    Ok(())
}
