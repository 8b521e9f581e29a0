"""Files of a results folder, which may be a stranger's: regular files only, up to a bound, and no link is followed."""

import json
import os
import stat
from pathlib import Path
from typing import Any

#: Largest document that is read, in bytes; as in the program.
DOCUMENT_BYTES_MAX = 256 << 20


class ResultsError(ValueError):
    """Something in a results folder is missing, damaged or not what it must be. The text names the file."""


def parts(path: str) -> list[str]:
    """The names in a relative path.

    Raises ResultsError if it is not made of names alone.
    """
    names = path.split("/")
    if not path or any(name in ("", ".", "..") or "\0" in name for name in names):
        raise ResultsError(f"expected a path below its folder, found {path!r}")
    return names


def open_beneath(root: Path, path: str) -> int:
    """A file descriptor of a regular file below `root`, to be closed by the caller.

    Raises FileNotFoundError if there is none; ResultsError if it is a link or not a regular file, or lies behind a link.
    """
    names = parts(path)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            deeper = os.open(name, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = deeper
        found = os.open(names[-1], flags | os.O_NONBLOCK, dir_fd=at)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "no such file", str(root / path)) from None
    except OSError as error:
        raise ResultsError(f"{root / path}: {error.strerror}; links are not followed") from None
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise ResultsError(f"{root / path}: expected a regular file")
    return found


def list_beneath(root: Path, path: str) -> list[str]:
    """The names in a folder below `root`, sorted; none if it does not exist."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    at = os.open(root, flags)
    try:
        for name in parts(path):
            deeper = os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = deeper
        return sorted(os.listdir(at))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"{root / path}: {error.strerror}; links are not followed") from None
    finally:
        os.close(at)


def read_text(root: Path, path: str, most: int = DOCUMENT_BYTES_MAX) -> str:
    """The text of a file of at most `most` bytes."""
    with os.fdopen(open_beneath(root, path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ResultsError(f"{root / path}: larger than {most >> 20} MiB, the most that is read of it")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ResultsError(f"{root / path}: not text: it is not UTF-8") from None


def read_document(root: Path, path: str) -> dict[str, Any]:
    """A JSON document of the folder: an object."""
    text = read_text(root, path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{root / path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ResultsError(f"{root / path}: expected an object, found {type(document).__name__}")
    return document
