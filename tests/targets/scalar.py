"""Plain C, without vectors and without threads: a second target, over what `targets.c` shares.

It shows what a target has to supply; docs/new-target.md is about this file.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self, assert_never, cast

from gen.cli import main
from gen.errors import TilesmithError
from gen.ir import nodes as ir
from gen.ir.algebra import TRUE
from gen.ir.index.facts import Facts, of_kernel
from gen.ir.types import DType
from gen.ir.walk import externals, map_children, targets
from gen.language import Dtypes
from gen.lower.finish import Finished
from gen.lower.index_limits import Limits
from gen.lower.lower import PASSES
from gen.lower.passes import Finishing, Pass, Passes
from gen.targets.c import call, expr, file, finishing, library, marks, names, statements, views
from gen.targets.c.lines import indented
from gen.targets.c.temporaries import local, workspace
from gen.targets.c.updates import scalar
from gen.targets.registry import TARGETS
from gen.targets.target import CompiledFunction, Registry, joined


def _serial(node: ir.Node) -> ir.Node:
    new = map_children(node, _serial)
    return replace(new, kind=ir.LoopKind.SERIAL) if isinstance(new, ir.Loop) else new


SERIAL = Pass("serial loops", lambda kernel: cast(ir.Kernel, _serial(kernel)))


@dataclass(frozen=True)
class Scalar:
    """The one level of the target."""

    level: str = "plain"
    name: ClassVar[str] = "scalar"
    levels: ClassVar[tuple[str, ...]] = ("plain",)
    usual: ClassVar[tuple[str, ...]] = levels
    shown: ClassVar[str] = "plain"
    facts: ClassVar[frozenset[str]] = frozenset()
    rules: ClassVar[None] = None
    lowering: ClassVar[Passes] = (*PASSES[:1], SERIAL, *PASSES[1:])
    finishing: ClassVar[Finishing] = Finishing(
        (finishing.FUSED, finishing.INLINED), (finishing.NARROWED,)
    )

    @classmethod
    def at(cls, level: str) -> Self:
        return cls(level)

    @classmethod
    def here(cls) -> tuple[str, ...]:
        return cls.levels

    def parameters(self, dtypes: Dtypes) -> dict[str, int]:
        return {}

    def width(self, dtypes: Dtypes) -> int:
        return 1

    def has_code_for(self, dtype: DType) -> bool:
        return True

    def emit(
        self, kernel: str, variants: Mapping[str, Sequence[Finished]], *,
        packed: Collection[str], keep_marks: bool = False,
    ) -> dict[str, str]:  # fmt: skip
        parts = [_table(f"ts_{kernel}_{d}_plain", chosen) for d, chosen in variants.items()]
        called = [e for chosen in variants.values() for v in chosen for e in externals(v.kernel)]
        text = file.emit_file(kernel, parts, self.level, tuple(dict.fromkeys(called)))
        return {f"{kernel}.scalar.c": text if keep_marks else marks.unmarked(text)}

    def load(
        self, kernel: ir.Kernel, dtypes: str, sources: Mapping[str, str], limits: Limits,
        scalars: Mapping[str, complex],
    ) -> library.Loaded:  # fmt: skip
        command, symbol = library.compiler_command(("-march=native",)), f"{dtypes}_plain"
        text, table = joined(sources), f"ts_{kernel.name}_{symbol}"
        return library.Loaded(library.compiled(kernel, table, text, command, limits), scalars)

    def figures(self, sources: Mapping[str, str]) -> tuple[str, ...]:
        return ()

    def emulating(self) -> NoReturn:
        raise TilesmithError("this machine runs it as it is")

    def instructions(self, sources: Mapping[str, str]) -> tuple[CompiledFunction, ...]:
        raise TilesmithError("the target has no way to show instructions")


def _table(table: str, variants: Sequence[Finished]) -> str:
    """The functions of one choice of dtypes, and their table."""
    texts, rows = [], []
    for v in variants:
        symbol, when = f"{table}_{v.name}", "NULL"
        texts += marks.marked(marks.Owner.VARIANT, v.name, [_function(symbol, v.kernel)])
        if v.when is not None:
            when = f"{symbol}_when"
            texts.append(call.when_function(when, v.when, v.kernel))
        rows.append(f'    {{{symbol}, {when}, 0, "{v.name}"}},')
    return "\n\n".join([*texts, file.variants_table(table, rows)]) + "\n"


def _function(symbol: str, kernel: ir.Kernel) -> str:
    named, everywhere = names.c_names(kernel, externals(kernel)), finishing.dtypes_of(kernel)
    lines = [line for _, line in call.sizes(kernel, named.variables)[0]]
    taken, seen = call.arguments(kernel, named, lambda _: frozenset(), (), everywhere)
    lines += [line for *_, line in taken]
    lines += [f"const int64_t {named.variables[p.name]} = 0;" for p in kernel.phases]
    code = _Code(named, everywhere, seen, of_kernel(kernel), finishing.fuses(kernel))
    lines += [*_statement(kernel.body, code), "return TS_OK;"]
    return "\n".join([f"static int {symbol}(const ts_call *call)", "{", *indented(lines), "}"])


@dataclass(frozen=True)
class _Code:
    """What stands around a statement. held: what releases workspace on the way out."""

    names: names.CNames
    dtypes: Dtypes
    views: Mapping[str, views.View]
    facts: Facts
    fuses: bool
    held: tuple[str, ...] = ()

    @property
    def scalars(self) -> expr.Scalars:
        return views.plain_scalars(self.names.variables, self.views, self.facts, fuses=self.fuses)


def _statement(s: ir.Stmt, c: _Code) -> list[str]:
    match s:
        case ir.Block():
            inner = replace(c, facts=c.facts.where(s.predicate))
            dtypes = tuple(c.dtypes[t.buffer] for t in targets(s.body))
            lines = scalar(s.body, dtypes, inner.scalars)
            if s.predicate != TRUE:
                lines = statements.under(c.scalars.condition(s.predicate), lines)
            return marks.marked(marks.Owner.BLOCK, s.name, lines)
        case ir.Loop():
            inner = replace(c, facts=c.facts.inside(s))
            lines = statements.counted(s, inner.scalars, c.names, _statement(s.body, inner))
            return marks.marked(marks.Owner.LOOP, s.var, lines)
        case ir.Delinearize():
            inner = replace(c, facts=c.facts.inside(s))
            return statements.delinearized(s, c.scalars, c.names, _statement(s.body, inner))
        case ir.If():
            inner = replace(c, facts=c.facts.where(s.condition))
            return statements.under(c.scalars.condition(s.condition), _statement(s.body, inner))
        case ir.Allocate():
            return _allocated(s, c)
        case ir.Seq():
            return [line for part in s.body for line in _statement(part, c)]
        case ir.Leave():
            return statements.leaving(c.scalars.condition(s.condition))
        case ir.Barrier() | ir.Transfer():
            raise AssertionError("lowering lets none of these through")
        case _:
            assert_never(s)


def _allocated(s: ir.Allocate, c: _Code) -> list[str]:
    lines, after = list[str](), list[str]()
    for b in s.buffers:
        name = c.names.arrays[b.name]
        if b.scope is ir.Scope.HEAP:
            lines += workspace(name, b, c.scalars, c.held)
            after.insert(0, f"ts_workspace_release({name});")
            c = replace(c, held=(after[0], *c.held))
        else:
            lines.append(local(name, b, c.scalars))
        c = replace(c, views={**c.views, b.name: views.Dense(name, b)})
    return ["{", *indented([*lines, *_statement(s.body, c), *after]), "}"]


REGISTRY = Registry((*TARGETS.targets, Scalar))

if __name__ == "__main__":
    sys.exit(main(targets=REGISTRY))
