//! Latency and throughput of inboxes.
//!
//! Each figure is compared with its lower bound: the same durable appends to the journal alone.
//! Models answer at once and in memory, so that only Antiphon is measured.

mod admission;
mod drop;
mod turn;
mod world;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        admission::compare().await?;
        turn::compare().await?;
        drop::compare().await
    })
}

/// Median and 99th percentile, in milliseconds.
fn summary(mut times: Vec<std::time::Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| {
        let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    format!("{:>10.2}{:>10.2}", at(50), at(99))
}
