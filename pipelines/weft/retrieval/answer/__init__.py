"""From scores to an explained answer. No I/O."""
