use std::time::Duration;
use tidecache::clock::Monotonic;
use tidecache::policy::LeastRecent;
use tidecache::Cache;

#[test]
fn the_least_recent_entry_goes_first() {
    let mut cache = Cache::new(LeastRecent::default(), Monotonic::default(), 2, Duration::from_secs(60));
    cache.put("a", vec![1]);
    cache.put("b", vec![1]);
    cache.get("a");
    cache.put("c", vec![1]);
    assert!(cache.get("b").is_none());
}

#[test]
fn what_is_too_large_is_not_stored() {
    let mut cache = Cache::new(LeastRecent::default(), Monotonic::default(), 2, Duration::from_secs(60));
    assert!(!cache.put("a", vec![1, 2, 3]));
}
