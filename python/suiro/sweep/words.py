"""The texts that people read."""

from __future__ import annotations

import sys


class Refused(Exception):
    """The sweep cannot begin or go on: what is wrong, and a hint."""


def say(text: str) -> None:
    """A message to people, without terminal escapes."""
    safe = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    sys.stderr.write(f"{safe}\n")
