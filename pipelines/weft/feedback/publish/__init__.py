"""What leaves a partition: snapshots for searches, forks of sessions, dead letters."""
