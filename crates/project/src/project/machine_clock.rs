//! The clock of this machine: the system clock, and the time since the machine started.

use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use antiphon_core::port::{BootTime, Clock, SystemClock};
use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    fn boot_time(&self) -> Option<BootTime> {
        static BOOT_ID: LazyLock<Option<Uuid>> = LazyLock::new(boot_id);
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        Some(BootTime { boot_id: (*BOOT_ID)?, elapsed_ms: elapsed_ms(&uptime)? })
    }
}

/// The id of this start of the machine. It is hashed: events do not say which machine they are from.
fn boot_id() -> Option<Uuid> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = Uuid::parse_str(id.trim()).ok()?;
    Some(Uuid::new_v5(&id, b"antiphon"))
}

/// Reads `/proc/uptime`: seconds with two decimals, then the idle time.
fn elapsed_ms(uptime: &str) -> Option<u64> {
    let seconds = uptime.split_ascii_whitespace().next()?;
    let (whole, hundredths) = seconds.split_once('.')?;
    let hundredths: u64 = format!("{hundredths:0<2}").get(..2)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(hundredths * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_the_start_of_the_machine_goes_on() {
        let before = MachineClock.boot_time().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let passed = MachineClock.boot_time().unwrap().since(before).unwrap();
        assert!((10..10_000).contains(&passed.as_millis()), "{passed:?}");
    }

    #[test]
    fn an_uptime_is_read_or_refused() {
        assert_eq!(elapsed_ms("350735.47 234388.90\n"), Some(350_735_470));
        assert_eq!(elapsed_ms("5.5 1.0"), Some(5_500));
        for wrong in ["", "x.47 1", "12", "-1.00 1", "99999999999999999999.00 1"] {
            assert_eq!(elapsed_ms(wrong), None, "{wrong}");
        }
    }
}
