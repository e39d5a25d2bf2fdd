//! US dollars, as users write them and as the journal counts them.

use antiphon_core::Cost;

/// `usd` in billionths of a dollar. `None` unless it is from 0.000000001 to 1,000,000 dollars.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number was checked to be from 1 to 10^15"
)]
pub fn nano_usd(usd: f64) -> Option<u64> {
    let nano = (usd * 1e9).round();
    (1.0..=1e15).contains(&nano).then_some(nano as u64)
}

/// A cost in dollars without trailing zeros: `1.5`.
pub fn dollars(cost: Cost) -> String {
    let text = format!("{}.{:09}", cost.nano_usd / 1_000_000_000, cost.nano_usd % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
