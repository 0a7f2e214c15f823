"""Possible faults of a module. Each fault changes one place of the module's text."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_TURNED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
# Tests should not check the effects of these names.
_OF_NO_ACCOUNT = ("logger", "_log", "warnings")


@dataclass(frozen=True)
class Fault:
    """A fault: a module's text, a line (from 1), and the replacement of some bytes."""

    path: str
    line: int
    kind: str
    before: str
    start: int
    end: int
    replacement: str

    @property
    def after(self) -> str:
        """Text of the module with the fault."""
        data = self.before.encode()
        return (data[: self.start] + self.replacement.encode() + data[self.end :]).decode()

    @property
    def diff(self) -> str:
        """Changed lines: old lines with a minus, new lines with a plus."""
        before, after = self.before.splitlines(), self.after.splitlines()
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        same = next((n for n, (b, a) in enumerate(zip(before, after, strict=False)) if b != a), 0)
        return "\n".join(
            [f"-{each}" for each in before[same:]] + [f"+{each}" for each in after[same:]]
        )


def faults(path: str, text: str) -> Iterator[Fault]:
    """Return all possible faults of a module."""
    lengths = [len(line) for line in text.encode().splitlines(keepends=True)]
    starts = [0, *accumulate(lengths)]
    for node in _nodes(ast.parse(text)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        # Python gives places as a line, from 1, and an offset in bytes of UTF-8.
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for kind, replacement in _replacements(node):
            yield Fault(path, node.lineno, kind, text, start, end, replacement)


def _nodes(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield nodes with an effect: no types, no texts, no parts of f-strings (wrong places)."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns") or isinstance(tree, ast.JoinedStr):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.expr | ast.stmt):
                yield node
            if isinstance(node, ast.AST):
                yield from _nodes(node)


def _replacements(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield kinds of faults, each with the text that replaces the node's text."""
    match node:
        case ast.Compare():
            for place, found in enumerate(node.ops):
                for other in _TURNED[type(found)]:
                    turned = copy.deepcopy(node)
                    turned.ops[place] = other()
                    yield "comparison", ast.unparse(turned)
        case ast.BoolOp(op, values):
            other_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and, or", ast.unparse(ast.BoolOp(other_op, values))
            yield from (("part of a condition", f"({ast.unparse(each)})") for each in values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", f"({ast.unparse(operand)})"
        case ast.BinOp(left, op, right) if type(op) in _OTHER_OPERATOR:
            other_sign = _OTHER_OPERATOR[type(op)]()
            yield "arithmetic", f"({ast.unparse(ast.BinOp(left, other_sign, right))})"
        case ast.Constant(bool(value)):
            yield "constant", str(not value)
        case ast.Constant(int(value)):
            yield from (("constant", str(other)) for other in (value + 1, value - 1))
        case ast.Call(ast.Name("min" | "max"), [_, _, *_] as arguments):
            yield from (("bound", f"({ast.unparse(each)})") for each in arguments)
        case ast.IfExp(test, body, orelse):
            yield "choice", f"({ast.unparse(ast.IfExp(test, orelse, body))})"
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield "return value", "return None"
        case _ if _can_go(node):
            yield "statement", "pass"


def _can_go(node: ast.AST) -> bool:
    """Return whether the module is still valid without the statement."""
    match node:
        case ast.Expr(ast.Call(function)):
            return not ast.unparse(function).startswith(_OF_NO_ACCOUNT)
        case ast.Assign([ast.Attribute() | ast.Subscript(), *_]):
            return True
        case _:
            alone = ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete
            return isinstance(node, alone)
