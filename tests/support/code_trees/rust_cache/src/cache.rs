//! The cache itself.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Clock;
use crate::policy::Policy;

struct Entry {
    value: Vec<u8>,
    stored_at: Duration,
}

/// Holds values up to a number of bytes.
pub struct Cache<P: Policy, C: Clock> {
    entries: HashMap<String, Entry>,
    policy: P,
    clock: C,
    used: usize,
    limit: usize,
    max_age: Duration,
}

impl<P: Policy, C: Clock> Cache<P, C> {
    pub fn new(policy: P, clock: C, limit: usize, max_age: Duration) -> Self {
        Cache { entries: HashMap::new(), policy, clock, used: 0, limit, max_age }
    }

    /// The value under a key. One that is too old is dropped and counts as missing.
    pub fn get(&mut self, key: &str) -> Option<&[u8]> {
        if self.is_stale(key) {
            self.remove(key);
            return None;
        }
        self.policy.touched(key);
        self.entries.get(key).map(|entry| entry.value.as_slice())
    }

    /// Stores a value, making room first. Whatever is larger than the whole cache is not stored.
    pub fn put(&mut self, key: &str, value: Vec<u8>) -> bool {
        if value.len() > self.limit {
            return false;
        }
        self.remove(key);
        self.make_room(value.len());
        self.used += value.len();
        self.policy.touched(key);
        let stored_at = self.clock.now();
        self.entries.insert(key.to_owned(), Entry { value, stored_at });
        true
    }

    pub fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.used -= entry.value.len();
            self.policy.removed(key);
        }
    }

    fn make_room(&mut self, wanted: usize) {
        while self.used + wanted > self.limit {
            match self.policy.victim() {
                Some(key) => self.remove(&key),
                None => break,
            }
        }
    }

    fn is_stale(&self, key: &str) -> bool {
        self.entries
            .get(key)
            .is_some_and(|entry| self.clock.now() - entry.stored_at > self.max_age)
    }
}
