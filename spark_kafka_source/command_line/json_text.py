"""JSON texts, read and written so that nothing is lost: numbers keep their digits.

RFC 8259 has neither NaN nor infinite numbers. A name that an object has twice is refused, because
readers differ in which value counts.
"""

import json
from decimal import Decimal
from typing import Any, NoReturn


class NotJsonError(ValueError):
    """A text that is not JSON, or a value without a JSON text. The reason follows 'it'."""


def read(data: bytes) -> Any:
    """Return the value of a JSON text. A number with a point or an exponent is a `Decimal`.

    Raises `NotJsonError`.
    """
    try:
        return _DECODER.decode(data.decode().removeprefix("\ufeff"))
    except NotJsonError:
        raise
    except ArithmeticError:
        raise NotJsonError("is not JSON: a number has too large an exponent") from None
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"is not JSON: {error}") from None


def written(value: Any) -> bytes:
    """Return the shortest JSON text of a value, in UTF-8. A `Decimal` is a number.

    Raises `NotJsonError` for half a character, for NaN and infinite numbers, and for a value that
    is nested too deeply.
    """
    try:
        return _text(value).encode()
    except UnicodeEncodeError:
        raise NotJsonError("cannot be encoded: half a character") from None
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"cannot be written as JSON: {error}") from None


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{','.join(f'{_LEAF(name)}:{_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    return str(value) if isinstance(value, Decimal) else _LEAF(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJsonError(f"has the field {twice!r} twice in one object")
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"there is no number {constant}; give it as a text")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=Decimal, parse_constant=_refuse)
_LEAF = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
