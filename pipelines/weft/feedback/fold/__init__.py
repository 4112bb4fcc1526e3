"""Events to changes of a partition's state. Pure: no clock, no store, no broker."""
