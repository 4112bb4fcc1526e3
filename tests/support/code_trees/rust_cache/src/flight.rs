//! One computation for many who ask.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

#[derive(Default)]
pub struct Flights {
    running: Mutex<HashMap<String, Arc<(Mutex<Option<Vec<u8>>>, Condvar)>>>,
}

impl Flights {
    /// Computes a value once: whoever asks for the same key meanwhile waits for the first to finish.
    pub fn once(&self, key: &str, compute: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        let (flight, first) = {
            let mut running = self.running.lock().unwrap();
            match running.get(key) {
                Some(flight) => (flight.clone(), false),
                None => {
                    let flight = Arc::new((Mutex::new(None), Condvar::new()));
                    running.insert(key.to_owned(), flight.clone());
                    (flight, true)
                }
            }
        };
        if first {
            let value = compute();
            *flight.0.lock().unwrap() = Some(value.clone());
            flight.1.notify_all();
            self.running.lock().unwrap().remove(key);
            return value;
        }
        let mut value = flight.0.lock().unwrap();
        while value.is_none() {
            value = flight.1.wait(value).unwrap();
        }
        value.clone().unwrap()
    }
}
