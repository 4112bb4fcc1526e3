//! A cache in memory.

pub mod cache;
pub mod clock;
pub mod flight;
pub mod persist;
pub mod policy;

pub use cache::Cache;
pub use policy::Policy;
