//! `antiphon run` with 50 calls of `read`: how long a step takes, and the most memory it had.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use antiphon_bench::{Error, Process, Times, heading};
use tokio::runtime::Runtime;

use crate::model;

const STEPS: usize = 50;
const RUNS: usize = 5;

pub(crate) fn measure(_: &Runtime) -> Result<(), Error> {
    heading(
        &format!(
            "`antiphon run` with {STEPS} calls of `read`; {RUNS} runs beside as many with none"
        ),
        "growth -- run",
    );
    let (_model, project) = model::project("")?;
    let (mut times, mut without, mut peak) = (Times::default(), Times::default(), 0);
    for _ in 0..RUNS {
        for (steps, times) in [(0, &mut without), (STEPS, &mut times)] {
            let model = model::name(steps);
            let began = Instant::now();
            let mut run = project
                .command(&["run", "--trust", "--model", &model, "Look at it."])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            let process = Process::new(run.id());
            let status = loop {
                // A process stands in front of the one that works. The last look may be a little before the end; what it
                // needs most is earlier.
                let all = [run.id()].into_iter().chain(process.descendants());
                let kib = all.map(|id| Process::new(id).peak_kib().unwrap_or_default()).sum();
                peak = peak.max(kib);
                if let Some(status) = run.try_wait()? {
                    break status;
                }
                sleep(Duration::from_millis(2));
            };
            times.push(began.elapsed());
            if !status.success() {
                return Err(format!("`antiphon run` ended with {status}").into());
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let (step, mib) = (
        (times.percentile_ms(50) - without.percentile_ms(50)) / STEPS as f64,
        peak as f64 / 1024.0,
    );
    println!(
        "a step {step:.2} ms, peak {mib:.1} MiB, a run without a call {:.0} ms",
        without.percentile_ms(50)
    );
    Ok(())
}
