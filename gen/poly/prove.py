"""The proof that a scheduled tree computes what its plain schedule computes, for all sizes.

Input: a plain kernel, and a tree with its certificate. Output: nothing; a `Refused` with a witness
where the tree or the certificate is wrong. Nothing is taken from the primitives but the flow, which
is checked. Only subset and emptiness of isl sets decide; what isl itself raises is not caught.
"""

from typing import assert_never

from ..ir.inits import explicit_inits
from ..ir.nodes import Kernel, Update
from .barriers import check_threads
from .certificate import Scheduled
from .extract import outline
from .flow import Computed, Logical, Values, logical_flow, merged, through, with_free
from .match import LogicalRead, match
from .padding import without_padding
from .parts import Parts, parts, proved
from .roles import Execution, Role, execution
from .safety import check_bounds, check_domains, check_races, check_tiles
from .statement import Access, Statement
from .taken import Taken
from .terms import SharedTerms
from .witness import Refused as Refused
from .witness import Witness as Witness
from .witness import sample


def prove(plain: Kernel, state: Scheduled) -> None:
    """Returns if the tree is proved. Raises Refused if not, with the reason and a counterexample.

    The tree's assumptions count for both, so that a variant is proved under its `when`. What is
    known of the plain kernel's other trees is not proved again (`parts`).
    """
    _require_same_signature(plain, state.kernel)
    logical = logical_flow(plain, state.kernel)
    whole = outline(explicit_inits(state.kernel), plain.assumptions)
    launched = any(s.around.launch for s in whole.blocks)  # whose threads are no part's
    known = frozenset[bytes]() if launched else frozenset(proved(plain))
    new = parts(whole, state).without(known)
    tree = whole.tree(frozenset[int]().union(*(part.members for part in new.all)))
    run = execution(without_padding(tree, logical), state.flow, logical)
    _check_parts(new, run, logical)
    check_threads(run.tree, run.relations)
    if not launched:
        proved(plain).update(part.digest for part in new.all)


def _check_parts(new: Parts, run: Execution, logical: Logical) -> None:
    subjects = {part.subject: part for part in new.values}
    statements = [s for s in run.tree.statements if s.uid in subjects]
    check_domains(statements)
    check_bounds(statements)
    everything = Taken(run, logical, SharedTerms(logical))
    for s in statements:
        _check_values(s, logical, everything.within(subjects[s.uid]))
    ends = {part.subject: part for part in new.ends}
    for name, wanted in logical.finals.items():
        if name in ends:
            taken, tree = everything.within(ends[name]), run.tree
            taken.values(tree.end(tree.arguments[name]), None, wanted)
    buffers = frozenset(str(part.subject) for part in new.places)
    check_races(run, buffers)
    check_tiles(run, buffers)


def _check_values(s: Statement, logical: Logical, taken: Taken) -> None:
    """Refuses a statement that does not what its role says."""
    match taken.run.roles[s.uid]:
        case Role.VALUE | Role.TERM:
            _check_instances(s, logical)
            _check_reads(s, taken.run, logical, taken)
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


def _check_reads(s: Statement, run: Execution, logical: Logical, taken: Taken) -> None:
    """Refuses a body or a read's value that is not the plain block's."""
    sources = {read.number: run.makers(read) for read in s.reads}
    matched = match(s, logical, sources)
    for read in s.reads:
        wanted = _wanted(read, matched, logical)
        taken.values(read, run.source(read), wanted)
    if isinstance(s.block.body, Update) and run.roles[s.uid] is Role.VALUE:
        assert s.block.origin and s.origin
        for w in s.writes:
            value = Computed(s.block.origin.block, w.number)
            instance = s.origin.apply_range(logical.keys[value.block])
            taken.values(w, None, through(instance, logical.bases[value]))


def _wanted(read: Access, matched: tuple[LogicalRead, ...], logical: Logical) -> Values:
    """The values that the plain reads take that an executed read stands for."""
    parts = []
    for m in matched:
        if m.number == read.number:
            events = with_free(m.instances, read.free).intersect_domain(read.domain)
            parts.append(through(events, logical.reads[m.block, m.read]))
    return merged(*parts)
