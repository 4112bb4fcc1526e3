"""The console: pages for a browser on the same application, by NiceGUI (OPS-6)."""
