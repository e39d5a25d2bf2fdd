//! Memory and open files under constant load.

use antiphon_bench::{Error, Process};

/// Largest growth of memory since the warm-up, in percent.
const GROWTH_MAX: u64 = 20;

/// Memory that varies with running requests: less is not growth.
const NOISE_KIB: u64 = 8 * 1024;

/// Open files that vary with connections.
const FILES_NOISE: usize = 48;

/// Measurements, in order.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    seen: Vec<(u64, usize)>,
}

impl Memory {
    pub(crate) fn look(&mut self, server: Process) -> Result<(), Error> {
        self.seen.push((server.resident_kib()?, server.files()?));
        Ok(())
    }

    /// Compares the median of the first quarter with that of the last.
    pub(crate) fn judge(&self) -> Result<(), Error> {
        let quarter = (self.seen.len() / 4).max(1).min(self.seen.len());
        let first = middle(&self.seen[..quarter]);
        let last = middle(&self.seen[self.seen.len() - quarter..]);
        println!(
            "{:52}{:>10}{:>10}",
            "memory of the server, MiB: warm, end",
            first.0 / 1024,
            last.0 / 1024
        );
        println!("{:52}{:>10}{:>10}", "open files of the server: warm, end", first.1, last.1);
        if last.0 > first.0 + (first.0 * GROWTH_MAX / 100).max(NOISE_KIB) {
            return Err(format!("memory grew from {} to {} KiB", first.0, last.0).into());
        }
        if last.1 > first.1 + FILES_NOISE {
            return Err(format!("open files grew from {} to {}", first.1, last.1).into());
        }
        Ok(())
    }
}

fn middle(seen: &[(u64, usize)]) -> (u64, usize) {
    let mut kib: Vec<u64> = seen.iter().map(|seen| seen.0).collect();
    let mut files: Vec<usize> = seen.iter().map(|seen| seen.1).collect();
    kib.sort_unstable();
    files.sort_unstable();
    let at = seen.len() / 2;
    (kib.get(at).copied().unwrap_or_default(), files.get(at).copied().unwrap_or_default())
}
