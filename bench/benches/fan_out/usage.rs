//! CPU time and memory of this process since a moment.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

use crate::Error;

/// What a measurement used.
pub(crate) struct ResourceUsage {
    pub(crate) wall_s: f64,
    pub(crate) cpu_us: f64,
    /// Peak memory beyond the start value.
    pub(crate) peak_kib: f64,
    pub(crate) journal_bytes: f64,
}

/// The start of a measurement.
pub(crate) struct Meter {
    start: Instant,
    cpu_us: f64,
    resident_kib: f64,
}

impl Meter {
    pub(crate) fn start() -> Result<Self, Error> {
        let resident_kib = status_kib("VmRSS:")?;
        Ok(Self { cpu_us: cpu_us()?, resident_kib, start: Instant::now() })
    }

    pub(crate) fn stop(&self) -> Result<ResourceUsage, Error> {
        Ok(ResourceUsage {
            wall_s: self.start.elapsed().as_secs_f64(),
            cpu_us: cpu_us()? - self.cpu_us,
            peak_kib: status_kib("VmHWM:")? - self.resident_kib,
            journal_bytes: 0.0,
        })
    }
}

impl ResourceUsage {
    /// The same per item; the elapsed time stays.
    pub(crate) fn each(&self, count: u32) -> Self {
        let count = f64::from(count);
        Self {
            wall_s: self.wall_s,
            cpu_us: self.cpu_us / count,
            peak_kib: self.peak_kib / count,
            journal_bytes: self.journal_bytes / count,
        }
    }

    /// The form in which one process passes it to another.
    pub(crate) fn line(&self) -> String {
        let Self { wall_s, cpu_us, peak_kib, journal_bytes } = self;
        json!([wall_s, cpu_us, peak_kib, journal_bytes]).to_string()
    }

    pub(crate) fn read(line: &str) -> Result<Self, Error> {
        let line: Value = serde_json::from_str(line)?;
        let number = |index: usize| line[index].as_f64().ok_or("that is no measurement");
        Ok(Self {
            wall_s: number(0)?,
            cpu_us: number(1)?,
            peak_kib: number(2)?,
            journal_bytes: number(3)?,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few seconds")]
fn cpu_us() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = |time: TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

fn status_kib(name: &str) -> Result<f64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let line = line.ok_or_else(|| format!("the system does not tell {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
