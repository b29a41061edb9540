"""What authors look up: `primitives` (what a step takes), `schema` (of specs, for editors)."""
