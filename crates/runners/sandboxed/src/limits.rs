//! How much of the machine a worker may take, all its processes together.
//!
//! | what      | how it is held                                                                  |
//! |-----------|---------------------------------------------------------------------------------|
//! | memory    | counted every 50 ms over all processes: what is resident and belongs to no file on a disk; `RLIMIT_DATA` of twice as much for each process, for what is too fast to be counted |
//! | CPU time  | counted the same way; `RLIMIT_CPU` for each process, which also holds those that hide their children's time |
//! | processes | counted the same way                                                            |
//! | files     | `RLIMIT_NOFILE` for each process                                                |
//! | time      | the runner's clock                                                              |
//!
//! Memory that a process writes without mapping it (`memfd_create`) is not counted.
//! Limits hold for one worker. A task that waited for an answer continues in a new worker.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Default memory of a worker, in bytes.
pub const MEMORY_BYTES_DEFAULT: u64 = 2 * 1024 * 1024 * 1024;

/// The least memory a worker can do something with, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Default CPU time of a worker, in seconds.
pub const CPU_S_DEFAULT: u64 = 3600;

/// Default of `processes_max`. More than one shell may have, so that the shell ends a command with
/// too many processes before the worker is ended.
pub const PROCESSES_DEFAULT: u64 = 768;

/// Default number of open files of each process.
pub const OPEN_FILES_DEFAULT: u64 = 4096;

const MB: u64 = 1024 * 1024;

/// Resource limits of a worker, for all its processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerLimits {
    /// Memory of all its processes, in bytes.
    pub memory_bytes_max: u64,
    /// CPU time of all its processes, in seconds.
    pub cpu_s_max: u64,
    /// Seconds on the clock; as long as it takes if absent.
    pub wall_s_max: Option<NonZeroU64>,
    /// Processes at a time.
    pub processes_max: u64,
    /// Open files of each process.
    pub open_files_max: u64,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self {
            memory_bytes_max: MEMORY_BYTES_DEFAULT,
            cpu_s_max: CPU_S_DEFAULT,
            wall_s_max: None,
            processes_max: PROCESSES_DEFAULT,
            open_files_max: OPEN_FILES_DEFAULT,
        }
    }
}

/// The `config` of an executor. It comes from a model: nothing in it gives more than there is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    memory_mb: Option<NonZeroU64>,
    cpu_s: Option<NonZeroU64>,
    wall_s: Option<NonZeroU64>,
}

impl WorkerLimits {
    /// These limits, lowered by `config`. The error text is for the author of `config`.
    pub(crate) fn narrowed(self, config: &Value) -> Result<Self, String> {
        let config: Option<Config> = serde_json::from_value(config.clone())
            .map_err(|error| format!("the config of the runner `sandbox` is invalid: {error}"))?;
        let config = config.unwrap_or_default();
        let mut limits = self;
        if let Some(requested) = config.memory_mb {
            let allowed = self.memory_bytes_max / MB;
            let mb = less("memory_mb", requested, allowed)?;
            if mb * MB < MEMORY_BYTES_MIN {
                let least = MEMORY_BYTES_MIN / MB;
                return Err(format!("`memory_mb` must be from {least} to {allowed}, not {mb}"));
            }
            limits.memory_bytes_max = mb * MB;
        }
        if let Some(requested) = config.cpu_s {
            limits.cpu_s_max = less("cpu_s", requested, self.cpu_s_max)?;
        }
        if let Some(requested) = config.wall_s {
            let allowed = self.wall_s_max.map_or(u64::MAX, NonZeroU64::get);
            limits.wall_s_max = NonZeroU64::new(less("wall_s", requested, allowed)?);
        }
        Ok(limits)
    }
}

fn less(name: &str, requested: NonZeroU64, allowed: u64) -> Result<u64, String> {
    if requested.get() > allowed {
        return Err(format!("`{name}` may be {allowed} at most, not {requested}"));
    }
    Ok(requested.get())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(config: Value) -> String {
        WorkerLimits::default().narrowed(&config).unwrap_err()
    }

    #[test]
    fn a_config_narrows() {
        let config = json!({ "memory_mb": 128, "cpu_s": 7, "wall_s": 60 });
        let narrowed = WorkerLimits::default().narrowed(&config).unwrap();
        let expected = WorkerLimits {
            memory_bytes_max: 128 * MB,
            cpu_s_max: 7,
            wall_s_max: NonZeroU64::new(60),
            ..WorkerLimits::default()
        };
        assert_eq!(narrowed, expected);
        for nothing in [json!({}), Value::Null] {
            assert_eq!(
                WorkerLimits::default().narrowed(&nothing).unwrap(),
                WorkerLimits::default()
            );
        }
    }

    #[test]
    fn a_config_never_widens() {
        assert_eq!(
            error(json!({ "memory_mb": 1_000_000 })),
            "`memory_mb` may be 2048 at most, not 1000000"
        );
        assert_eq!(error(json!({ "cpu_s": 3601 })), "`cpu_s` may be 3600 at most, not 3601");
        let limits = WorkerLimits { wall_s_max: NonZeroU64::new(10), ..WorkerLimits::default() };
        let error = limits.narrowed(&json!({ "wall_s": 11 })).unwrap_err();
        assert_eq!(error, "`wall_s` may be 10 at most, not 11");
    }

    #[test]
    fn a_config_that_means_nothing_is_refused() {
        assert!(error(json!({ "network": "on" })).contains("unknown field `network`"));
        assert!(error(json!({ "memory_mb": 0 })).contains("nonzero"));
        assert!(error(json!({ "memory_mb": 1 })).contains("from 64 to 2048"));
        assert!(error(json!({ "cpu_s": "all" })).contains("invalid type"));
        assert!(error(json!([])).contains("config of the runner"));
    }
}
