//! What may be spent in a day and in a month.

use std::num::NonZeroU64;

use antiphon_core::{Cost, PerWindow, SpendExceeded, SpendLimits, SpendWindow};
use chrono::{DateTime, Utc};

fn limits(daily: u64, monthly: u64) -> SpendLimits {
    SpendLimits {
        daily_nano_usd_max: NonZeroU64::new(daily),
        monthly_nano_usd_max: NonZeroU64::new(monthly),
    }
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn spent(today: u64, this_month: u64) -> PerWindow {
    PerWindow { today: Cost { nano_usd: today }, this_month: Cost { nano_usd: this_month } }
}

#[test]
fn spending_ends_at_the_limit_and_the_one_that_lasts_longer_is_told() {
    let now = time("2024-02-29T23:59:59.5Z");
    let exceeded = |window, limit, spent, resets_at| {
        let (limit, spent) = (Cost { nano_usd: limit }, Cost { nano_usd: spent });
        Err(SpendExceeded { window, limit, spent, resets_at: time(resets_at) })
    };
    let march = "2024-03-01T00:00:00Z";
    let day = |spent| exceeded(SpendWindow::Day, 10, spent, march);
    let month = |spent| exceeded(SpendWindow::Month, 100, spent, march);
    assert_eq!(limits(10, 100).check(spent(9, 99), now), Ok(()));
    assert_eq!(limits(10, 100).check(spent(10, 99), now), day(10));
    assert_eq!(limits(10, 100).check(spent(11, 100), now), month(100));
    assert_eq!(limits(10, 0).check(spent(u64::MAX, u64::MAX), now), day(u64::MAX));
    assert_eq!(limits(0, 100).check(spent(99, 99), now), Ok(()));
    assert_eq!(limits(0, 0).check(spent(u64::MAX, u64::MAX), now), Ok(()));
}

#[test]
fn windows_begin_at_midnight_and_on_the_first() {
    for (now, day, next_day, month, next_month) in [
        ("2024-02-29T12:00:00Z", "2024-02-29", "2024-03-01", "2024-02-01", "2024-03-01"),
        ("2024-12-31T23:59:59Z", "2024-12-31", "2025-01-01", "2024-12-01", "2025-01-01"),
        ("2025-01-01T00:00:00Z", "2025-01-01", "2025-01-02", "2025-01-01", "2025-02-01"),
    ] {
        let found = [SpendWindow::Day, SpendWindow::Month]
            .map(|window| [window.began(time(now)), window.ends(time(now))]);
        let at = |date: &str| time(&format!("{date}T00:00:00Z"));
        assert_eq!(found, [[at(day), at(next_day)], [at(month), at(next_month)]], "{now}");
    }
}

#[test]
fn a_refusal_says_what_was_spent_and_when_to_come_again() {
    let now = time("2025-01-20T10:00:00Z");
    let error = limits(1_500_000_000, 0).check(spent(1_600_000_000, 0), now).unwrap_err();
    assert_eq!(
        error.to_string(),
        "$1.6000 of $1.5000 for this day are spent; try again from 2025-01-21 00:00:00 UTC on"
    );
}

#[test]
fn what_is_added_raises_the_limits_there_are_and_makes_none() {
    let by = spent(5, 7);
    assert_eq!(limits(10, 100).raised(by), limits(15, 107));
    assert_eq!(limits(0, 100).raised(by), limits(0, 107));
    assert_eq!(limits(0, 0).raised(by), limits(0, 0));
    let all = spent(u64::MAX, u64::MAX);
    assert_eq!(limits(10, 100).raised(all), limits(u64::MAX, u64::MAX));
}
