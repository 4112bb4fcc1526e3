"""The laboratory: what is only measured or demonstrated with. No product module imports it; a wheel leaves it out."""
