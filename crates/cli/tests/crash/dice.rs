//! Numbers that look random and are not: a failure can be had again.

use crate::kill::Kill;

/// The numbers that follow from a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A death within so many writes, or so many milliseconds.
    pub(crate) fn kill(&mut self, writes: u64, millis: u64) -> Kill {
        match self.below(4) {
            0 => Kill::PriorHistory(1 + self.below(writes)),
            1 => Kill::After(1 + self.below(writes)),
            2 => Kill::Torn(1 + self.below(writes)),
            _ => Kill::Time(self.below(millis)),
        }
    }
}
