"""The proof that a scheduled tree computes what its plain schedule computes, for all sizes.

Input: a plain kernel, and a tree with its certificate. Output: nothing; a `Refused` with a witness
where the tree or the certificate is wrong. Nothing is taken from the primitives but the flow, which
is checked. Only subset and emptiness of isl sets decide; what isl itself raises is not caught.

Where the tree's standing says so, reads whose sources data hides (`hidden.py`) are tested instead
(`compare.py`). All else is proved: instances, bodies, bounds, races, and that nothing is read
before it is written.
"""

from dataclasses import replace
from typing import assert_never

from ..ir.inits import explicit_inits
from ..ir.nodes import Kernel, Update
from .barriers import check_threads
from .certificate import Read, Scheduled
from .compare import compare
from .extract import extract
from .flow import Computed, Logical, Values, merged, through, with_free
from .hidden import testable
from .laws.plain import under
from .match import LogicalRead, match
from .messages import check_messages
from .padding import without_padding
from .roles import Execution, Role, execution
from .safety import check_bounds, check_domains, check_races, check_tiles
from .statement import Access, Statement
from .taken import Taken
from .witness import Refused as Refused
from .witness import Witness as Witness
from .witness import sample


def prove(plain: Kernel, state: Scheduled) -> None:
    """Returns if the tree is proved. Raises Refused if not, with the reason and a counterexample.

    The tree's assumptions count for both, so that a variant is proved under its `when`. Where the
    certificate takes laws for granted, it is the plain schedule under these laws that the tree has
    to compute.
    """
    _require_same_signature(plain, state.kernel)
    plain = replace(plain, phases=state.kernel.phases)
    logical = under(plain, state.laws, state.kernel)
    tree = extract(explicit_inits(state.kernel), plain.assumptions)
    tree = without_padding(tree, logical)
    run = execution(tree, state.flow, logical)
    check_domains(run)
    check_bounds(run)
    taken = Taken(run, logical)
    untold: list[Access] = []
    for s in tree.statements:
        match run.roles[s.uid]:
            case Role.VALUE | Role.TERM:
                _check_instances(s, logical)
                untold += _check_reads(s, run, logical, taken, state.standing.reads)
            case Role.COPY:
                for w in s.writes:
                    taken.stored(w)
            case Role.JOIN | Role.UNION:
                for w in s.writes:
                    taken.joined(w)
            case Role.INIT:
                pass  # what it makes is checked where it is read
            case role:
                assert_never(role)
    for name, wanted in logical.finals.items():
        taken.values(tree.end(tree.arguments[name]), None, wanted)
    check_races(run)
    check_threads(run.tree, run.relations)
    check_messages(run.tree)
    check_tiles(run)
    if untold:
        compare(plain, state.kernel)


def _require_same_signature(plain: Kernel, kernel: Kernel) -> None:
    ours = (plain.dims, plain.parameters, plain.scalars)
    if ours != (kernel.dims, kernel.parameters, kernel.scalars):
        raise Refused("the tree's dims, arguments or scalars are not the plain schedule's")


def _check_instances(statement: Statement, logical: Logical) -> None:
    """Refuses an instance that the plain schedule has not."""
    assert statement.block.origin and statement.origin
    block = statement.block.origin.block
    alien = statement.origin.subtract_range(logical.keys[block].domain())
    if alien.is_empty():
        return
    case = sample(alien.domain())
    instance = statement.describe(case)
    raise Refused(
        f"{instance} runs, an instance that block '{block}' of the plain schedule has not",
        Witness(case.sizes, (instance,)),
        statement.block.span,
    )


def _check_reads(
    s: Statement, run: Execution, logical: Logical, taken: Taken, tested: frozenset[Read]
) -> list[Access]:
    """Refuses a body or a read's value that is not the plain block's. Returns the reads of which
    the proof does not tell, among those that may be tested.
    """
    sources = {read.number: run.makers(read) for read in s.reads}
    matched = match(s, logical, sources)
    untold = []
    for read in s.reads:
        wanted = _wanted(read, matched)
        source = run.source(read)
        run.writers(read, source)  # a certificate that names no block is no case for tests
        try:
            taken.values(read, source, wanted)
        except Refused as refused:
            if not (testable(read, run, refused) and refused.hidden in tested):
                raise
            untold.append(read)
    if isinstance(s.block.body, Update) and run.roles[s.uid] is Role.VALUE:
        assert s.block.origin and s.origin
        for w in s.writes:
            value = Computed(s.block.origin.block, w.number)
            instance = s.origin.apply_range(logical.keys[value.block])
            taken.values(w, None, through(instance, logical.bases[value]))
    return untold


def _wanted(read: Access, matched: tuple[LogicalRead, ...]) -> Values:
    """The values that the plain reads take that an executed read stands for."""
    parts = []
    for m in matched:
        if m.number == read.number:
            events = with_free(m.instances, read.free).intersect_domain(read.domain)
            parts.append(through(events, m.values))
    return merged(*parts)
