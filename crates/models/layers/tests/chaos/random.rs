//! Reproducible random numbers: the same seed and position give the same numbers (`SplitMix64`).

/// A sequence of random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of one position.
    pub(crate) fn new(seed: u64, place: [usize; 2]) -> Self {
        let mut random = Self(seed);
        for part in place {
            random.0 = random.next() ^ part as u64;
        }
        random
    }

    /// A number from 0 to below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("below a usize")
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
