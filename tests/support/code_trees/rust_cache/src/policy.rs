//! Which entry has to go.

use std::collections::VecDeque;

/// Decides over what is dropped when there is no room.
pub trait Policy {
    fn touched(&mut self, key: &str);
    fn removed(&mut self, key: &str);
    fn victim(&mut self) -> Option<String>;
}

/// Drops what was used longest ago.
#[derive(Default)]
pub struct LeastRecent {
    order: VecDeque<String>,
}

impl Policy for LeastRecent {
    fn touched(&mut self, key: &str) {
        self.removed(key);
        self.order.push_back(key.to_owned());
    }

    fn removed(&mut self, key: &str) {
        self.order.retain(|each| each != key);
    }

    fn victim(&mut self) -> Option<String> {
        self.order.pop_front()
    }
}
