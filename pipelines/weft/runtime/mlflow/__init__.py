"""MLflow: runs, pictures, tables, the registry of learned versions."""
