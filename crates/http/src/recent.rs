//! Values in memory, up to a bound; those not asked for longest make room.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What takes memory.
pub(crate) trait Weighs {
    /// How much, in bytes.
    fn weight(&self) -> usize;
}

impl Weighs for Bytes {
    fn weight(&self) -> usize {
        self.len()
    }
}

/// A bounded map. Its values are cheap to clone.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    values: BTreeMap<K, (u64, V)>,
    /// Keys by when they were last asked for.
    order: BTreeMap<u64, K>,
    bytes: usize,
    bytes_max: usize,
    clock: u64,
    evicted: u64,
}

impl<K: Ord + Clone, V: Clone + Weighs> Recent<K, V> {
    pub fn new(bytes_max: usize) -> Self {
        let (values, order) = (BTreeMap::new(), BTreeMap::new());
        Self { values, order, bytes: 0, bytes_max, clock: 0, evicted: 0 }
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        let (used, value) = self.values.get_mut(key)?;
        self.order.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.order.insert(self.clock, key.clone());
        Some(value.clone())
    }

    /// Keeps a value; one that is larger than the bound is not kept. Returns whether it is.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        self.remove(&key);
        if value.weight() > self.bytes_max {
            return false;
        }
        self.clock += 1;
        self.bytes += value.weight();
        self.values.insert(key.clone(), (self.clock, value));
        self.order.insert(self.clock, key);
        while self.bytes > self.bytes_max {
            let oldest = self.order.first_key_value();
            let oldest = oldest.expect("what is counted is ordered").1.clone();
            self.remove(&oldest);
            self.evicted += 1;
        }
        true
    }

    /// Values from this key on, in the order of keys.
    pub fn from<'s>(&'s self, key: &K) -> impl Iterator<Item = (&'s K, &'s V)> + use<'s, K, V> {
        self.values.range(key.clone()..).map(|(key, (_, value))| (key, value))
    }

    /// How many values have made room so far.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Lets go of a value, if there is one.
    pub fn remove(&mut self, key: &K) {
        if let Some((used, value)) = self.values.remove(key) {
            self.order.remove(&used);
            self.bytes -= value.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut recent = Recent::new(10);
        recent.insert(1, Bytes::from_static(b"1111"));
        recent.insert(2, Bytes::from_static(b"2222"));
        assert!(recent.get(&1).is_some());
        assert!(recent.insert(3, Bytes::from_static(b"3333")));
        assert_eq!(
            (recent.get(&1).is_some(), recent.get(&2), recent.get(&3).is_some()),
            (true, None, true)
        );
        assert!(!recent.insert(4, Bytes::from_static(b"too large a body")));
        assert_eq!((recent.get(&4), recent.bytes, recent.evicted()), (None, 8, 1));
        let keys: Vec<u8> = recent.from(&2).map(|(key, _)| *key).collect();
        assert_eq!(keys, [3]);
    }

    proptest! {
        #[test]
        fn never_beyond_its_bound(steps in prop::collection::vec((0u8..9, 0usize..12), 1..80)) {
            let mut recent = Recent::new(20);
            for (key, length) in steps {
                recent.insert(key, Bytes::from(vec![key; length]));
                let held: usize = recent.values.values().map(|(_, b)| b.len()).sum();
                prop_assert!(held == recent.bytes && held <= 20);
                prop_assert_eq!(recent.order.len(), recent.values.len());
                prop_assert_eq!(recent.get(&key).map(|b| b.len()), Some(length));
            }
        }
    }
}
