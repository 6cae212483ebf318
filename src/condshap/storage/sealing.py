"""Bytes of a file <-> the same with a checksum of all of them inside, so that no flipped bit goes unnoticed.

A seal is a text of fixed length that stands somewhere in the file, in its metadata. Its digits are the SHA-256 of the whole
file with zeros in their place. It guards against damage, not against somebody who means harm and can seal again.
"""

from __future__ import annotations

import hashlib
import re
import secrets

_DIGITS = 64
_SEAL = re.compile(rb"sha256:([0-9a-f]{64})")


def new_seal() -> str:
    """Text to be put into the file before it is sealed; no file has it by chance."""
    return f"sha256:{secrets.token_hex(_DIGITS // 2)}"


def sealed(content: bytes, seal: str) -> bytes:
    """Write the checksum into a file's bytes, which hold the text of `new_seal` once.

    >>> seal = new_seal()
    >>> is_sealed(sealed(f"one, two, {seal}".encode(), seal)), is_sealed(f"one, two, {seal}".encode())
    (True, False)
    """
    placed = seal.encode()
    assert content.count(placed) == 1, "a file must hold its seal once"
    start = content.index(placed) + len(placed) - _DIGITS
    return content[:start] + _digest(content, start).encode() + content[start + _DIGITS :]


def is_sealed(content: bytes) -> bool:
    """Whether the bytes are those that were sealed: all of them, and none changed."""
    return any(_digest(content, found.start(1)).encode() == found.group(1) for found in _SEAL.finditer(content))


def _digest(content: bytes, start: int) -> str:
    """SHA-256 of the bytes, with zeros from `start` on where the digits of the seal are."""
    view, found = memoryview(content), hashlib.sha256()
    for part in (view[:start], b"0" * _DIGITS, view[start + _DIGITS :]):
        found.update(part)
    return found.hexdigest()


def checksum(content: bytes) -> str:
    """Return 16 digits of the SHA-256, enough to find damage in a line of text."""
    return hashlib.sha256(content).hexdigest()[:16]
