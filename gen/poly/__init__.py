"""The prover: does a scheduled tree compute what the plain one computes, for all sizes?

Read `certificate` (what is claimed: where every read's value comes from), `prove` (the checks in
their order), `witness` (what a refusal says). Below: `sets` (trees as isl sets and maps), `values`
(which value a read takes), `checks` (races, bounds, messages), `rewrites` (does a rewritten tree do
the same), `laws` (algebra that changes values), `tested` (what only a run can tell), `queries`
(answers for primitives, which prove nothing). `decisions`, `cache` and `limit` are about time.
"""
