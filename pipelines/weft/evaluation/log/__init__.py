"""What the query log says: measures, other policies, alarms."""
