//! Time, so that tests can have their own.

use std::time::{Duration, Instant};

pub trait Clock {
    fn now(&self) -> Duration;
}

/// Counts from when the process began.
pub struct Monotonic(Instant);

impl Default for Monotonic {
    fn default() -> Self {
        Monotonic(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
