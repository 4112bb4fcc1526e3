"""The night: fold the day's evidence into a new learned version, calibrate, judge, publish and report it."""
