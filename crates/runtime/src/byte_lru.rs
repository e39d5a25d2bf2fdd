//! Values with a limit of bytes. When one more does not fit, those that were not used for the longest time are dropped. Neither that
//! nor a use looks at the other values.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, with a limit of bytes.
#[derive(Debug)]
pub(crate) struct ByteLru<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys by the time of their last use.
    by_use: BTreeMap<u64, K>,
    /// Counts the uses.
    clock: u64,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Eq + Hash + Clone, V> ByteLru<K, V> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { entries: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0, bytes_max }
    }

    /// The value of a key. Does not count as a use.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// The value of a key, which is used now.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        if let Some(key) = self.by_use.remove(&entry.used) {
            entry.used = self.clock;
            self.by_use.insert(self.clock, key);
        }
        Some(&mut entry.value)
    }

    /// Keeps a value, in place of the one before. Returns whether it fits at all.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) -> bool {
        self.remove(&key);
        if bytes > self.bytes_max {
            return false;
        }
        while self.bytes + bytes > self.bytes_max && self.remove_oldest().is_some() {}
        self.clock += 1;
        self.bytes += bytes;
        self.by_use.insert(self.clock, key.clone());
        self.entries.insert(key, Entry { value, bytes, used: self.clock });
        true
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let Entry { value, bytes, used } = self.entries.remove(key)?;
        self.by_use.remove(&used);
        self.bytes -= bytes;
        Some(value)
    }

    /// The value that was not used for the longest time.
    pub(crate) fn oldest(&self) -> Option<&V> {
        self.by_use.first_key_value().and_then(|(_, key)| self.peek(key))
    }

    /// Removes it.
    pub(crate) fn remove_oldest(&mut self) -> Option<V> {
        let key = self.by_use.first_key_value().map(|(_, key)| key.clone())?;
        self.remove(&key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives memory back that the values here do not need.
    pub(crate) fn shrink(&mut self) {
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to_fit();
        }
    }

    /// Bytes of all values.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    thread_local! {
        /// How often a key was looked at.
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often it is looked at.
    #[derive(Debug, Eq)]
    struct Key(usize);

    fn look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            look();
            self.0 == other.0
        }
    }

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            look();
            self.0.hash(state);
        }
    }

    impl Clone for Key {
        fn clone(&self) -> Self {
            look();
            Self(self.0)
        }
    }

    /// How often keys are looked at for one more value, when that many are there and none fits beside them.
    fn looks(values: usize) -> usize {
        let mut lru = ByteLru::new(values);
        for number in 0..values {
            assert!(lru.insert(Key(number), (), 1));
        }
        LOOKS.set(0);
        for number in values..values + 100 {
            assert!(lru.insert(Key(number), (), 1));
            lru.touch(&Key(number));
        }
        assert_eq!(lru.bytes(), values);
        LOOKS.get()
    }

    #[test]
    fn one_more_costs_the_same_however_many_there_are() {
        let (few, many) = (looks(10), looks(20_000));
        assert!(many <= few + 100, "{few} {many}");
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut lru = ByteLru::new(3);
        for key in ["a", "b", "c"] {
            lru.insert(key, key, 1);
        }
        lru.touch(&"a");
        assert_eq!(lru.oldest(), Some(&"b"));
        lru.insert("d", "d", 2);
        assert_eq!((lru.peek(&"a"), lru.peek(&"b"), lru.peek(&"c")), (Some(&"a"), None, None));
        assert!(!lru.insert("a", "too long", 4));
        assert_eq!((lru.peek(&"a"), lru.bytes()), (None, 2), "the one before is gone too");
        assert_eq!(lru.remove_oldest(), Some("d"));
        assert!(lru.is_empty() && lru.bytes() == 0);
    }
}
