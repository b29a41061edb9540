"""The proof that a scheduled tree computes what its plain schedule computes, for all sizes.

Input: a plain kernel, and a tree with its certificate. Output: nothing; a `Refused` with a witness
where the tree or the certificate is wrong. Nothing is taken from the primitives but the flow, which
is checked. Only subset and emptiness of isl sets decide; what isl itself raises is not caught.

Where the tree's standing says so, reads whose sources data hides (`tested.hidden_sources`) are
tested instead (`tested.comparison`). All else is proved: instances, bodies, bounds, races, and that
nothing is read before it is written.
"""

from dataclasses import replace
from typing import assert_never

from ..ir.inits import explicit_inits
from ..ir.nodes import Kernel, Update
from ..ir.text.print_expr import expr_to_text
from .certificate import Read, Scheduled
from .checks.messages import check_messages
from .checks.races import check_threads
from .checks.safety import check_bounds, check_domains, check_races, check_tiles
from .decisions import Decisions, parts
from .sets.extract import outline
from .sets.statement import Access, Statement
from .tested.comparison import compare
from .tested.hidden_sources import meetings, testable
from .values.flow import Computed, Logical, Values, merged, through, with_free
from .values.match import LogicalRead, match
from .values.padding import check_written, without_padding
from .values.reads import Taken
from .values.roles import Execution, Role, execution
from .values.terms import SharedTerms
from .witness import Refused as Refused
from .witness import Witness as Witness
from .witness import sample
from .workbench import Workbench


def prove(plain: Kernel, state: Scheduled, bench: Workbench | None = None) -> None:
    """Returns if the tree is proved. Raises Refused if not, with the reason and a counterexample.

    The plain schedule's assumptions count for both, the `when` of a variant among them; the tree
    may have no others. Where the certificate takes laws for granted, it is the plain schedule under
    these laws that the tree has to compute. What the workbench knows of the plain kernel's other
    trees is not proved again (`parts`); where a test stands in for a proof, nothing becomes known.
    bench: without one, nothing is known.
    """
    bench = bench or Workbench()
    _require_same_signature(plain, state.kernel)
    logical = bench.values(plain, state.laws, state.kernel)
    whole = outline(explicit_inits(state.kernel), plain.assumptions)
    known = bench.proved(plain) if whole.has_parts else frozenset[bytes]()
    new = parts(whole, state).without(known)
    tree = whole.tree(frozenset[int]().union(*(part.members for part in new.all)))
    run = execution(*without_padding(tree, logical), state.flow, logical)
    untold = _check_parts(new, run, logical, state.standing.reads)
    check_threads(run.tree, run.relations)
    check_messages(run.tree)
    if untold:
        phased = replace(plain, phases=state.kernel.phases)
        compare(phased, state.kernel, meetings(bench.values(plain, (), state.kernel)))
    elif whole.has_parts:
        bench.learn(plain, frozenset(part.digest for part in new.all))


def _check_parts(
    new: Decisions, run: Execution, logical: Logical, tested: frozenset[Read]
) -> list[Access]:
    """Refuses what is wrong with any part. Returns the reads of which the proof does not tell."""
    subjects = {part.subject: part for part in new.values}
    statements = [s for s in run.tree.statements if s.uid in subjects]
    check_domains(statements)
    check_bounds(statements)
    everything = Taken(run, logical, SharedTerms(logical))
    untold: list[Access] = []
    for s in statements:
        check_written(s, run.extra, everything.within(subjects[s.uid]).run.relations)
        untold += _check_values(s, logical, everything.within(subjects[s.uid]), tested)
    ends = {part.subject: part for part in new.ends}
    for name, wanted in logical.finals.items():
        if name in ends:
            taken, tree = everything.within(ends[name]), run.tree
            taken.values(tree.end(tree.arguments[name]), None, wanted)
    buffers = frozenset(str(part.subject) for part in new.places)
    check_races(run, buffers)
    check_tiles(run, buffers)
    return untold


def _check_values(
    s: Statement, logical: Logical, taken: Taken, tested: frozenset[Read]
) -> list[Access]:
    """Refuses a statement that does not do what its role says. Returns the reads of which the proof
    does not tell.
    """
    match taken.run.roles[s.uid]:
        case Role.VALUE:
            _check_instances(s, logical)
            return _check_reads(s, logical, taken, tested)
        case Role.TERM:
            _check_instances(s, logical)
            taken.together(s)
            return _check_reads(s, logical, taken, tested)
        case Role.COPY:
            for w in s.writes:
                taken.stored(w)
        case Role.JOIN | Role.UNION:
            for w in s.writes:
                taken.joined(w)
            taken.together(s)
        case Role.INIT:
            pass  # what it makes is checked where it is read
        case role:
            assert_never(role)
    return []


def _require_same_signature(plain: Kernel, kernel: Kernel) -> None:
    ours = (plain.dims, plain.parameters, plain.scalars)
    if ours != (kernel.dims, kernel.parameters, kernel.scalars):
        raise Refused("the tree's dims, arguments or scalars are not the plain schedule's")
    for assumption in kernel.assumptions:
        if assumption not in plain.assumptions:
            text = expr_to_text(assumption)
            raise Refused(f"the tree assumes `{text}`, which the plain schedule does not")


def _check_instances(statement: Statement, logical: Logical) -> None:
    """Refuses an instance that the plain schedule does not have."""
    assert statement.block.origin and statement.origin
    block = statement.block.origin.block
    alien = statement.origin.subtract_range(logical.keys[block].domain())
    if alien.is_empty():
        return
    case = sample(alien.domain())
    instance = statement.describe(case)
    raise Refused(
        f"{instance} runs, an instance that block '{block}' of the plain schedule does not have",
        Witness(case.sizes, (instance,)),
        statement.block.span,
    )


def _check_reads(
    s: Statement, logical: Logical, taken: Taken, tested: frozenset[Read]
) -> list[Access]:
    """Refuses a body or a read's value that is not the plain block's. Returns the reads of which
    the proof does not tell, among those that may be tested.
    """
    run = taken.run
    sources = {read.number: run.makers(read) for read in s.reads}
    matched = match(s, logical, sources)
    untold = []
    for read in map(run.live, s.reads):
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
