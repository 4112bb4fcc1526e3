"""The routes, by what they are about; each is thin: what it does is in `app`."""
