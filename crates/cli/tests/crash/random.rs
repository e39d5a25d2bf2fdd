//! Pseudo-random numbers of a seed, so that a failure can be reproduced.

use crate::kill::Kill;

/// A linear congruential generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A kill within this many writes or milliseconds.
    pub(crate) fn kill(&mut self, writes: u64, millis: u64) -> Kill {
        match self.below(4) {
            0 => Kill::Before(1 + self.below(writes)),
            1 => Kill::After(1 + self.below(writes)),
            2 => Kill::Torn(1 + self.below(writes)),
            _ => Kill::Time(self.below(millis)),
        }
    }
}
