"""The same queries asked again under other settings or beliefs."""
