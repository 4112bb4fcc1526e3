"""What users run: each module is a job, `python -m jobs.NAME`, and runs the same under `ray job submit`."""
