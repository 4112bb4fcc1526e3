"""Where weft meets a command line: options, output, logs and exit codes."""
