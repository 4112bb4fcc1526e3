"""How searchers are opened: in this process or in several, over what is live or over views held still."""
