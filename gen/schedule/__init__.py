"""Schedules: recipes of primitives, each a step from one proved tree to the next.

Read `base` (what a primitive is, and the one way to run it), then any file of `primitives`, each
with its documentation and examples; `edit` is what they share. `recipe` reads a spec's steps,
`registry` lists primitives by name, `intrinsics` are instructions as data, and `limits` and `reach`
are asked after every step.
"""
