//! Chance that can be had again: the same seed and place give the same numbers (`SplitMix64`).

/// A sequence of numbers.
pub(crate) struct Dice(u64);

impl Dice {
    /// The sequence of one place.
    pub(crate) fn new(seed: u64, place: [usize; 2]) -> Self {
        let mut dice = Self(seed);
        for part in place {
            dice.0 = dice.next() ^ part as u64;
        }
        dice
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
