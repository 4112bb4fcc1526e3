"""Documents into semantic units: parsing only, no I/O, no clock."""
