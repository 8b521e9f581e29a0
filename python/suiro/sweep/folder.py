"""A sweep's own folder, `OUT/sweep`: one driver at a time, and a room of its own for every attempt.

| name | what |
|---|---|
| `lock` | held by the driver; the kernel releases it however the driver ends |
| `plan.json` | what is swept |
| `scenario/` | the scenario with its files |
| `attempts/` | a room per attempt of this machine or of a cluster |
| `jobs/` | the arrays that Slurm was given, a room per attempt in each |
| `parts/N` | trial N, until it is merged |
| `logs/N.log` | what the last attempt at trial N printed |
| `begun.jsonl` | all attempts, by trial and number, before they are handed over |
| `attempts.jsonl` | all attempts that ended |

A process or job of a driver that was killed can live on. It writes to its own room, which nobody else takes for theirs.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

from .._files import open_beneath
from .job import WORDS_MAX, Scenario
from .words import Refused, say

#: Seconds between two looks at a room whose process still ends.
LOOK_S = 0.05
#: Bytes of a line of a list that are read.
LINE_MAX = 1 << 16
#: What a file system without locks answers.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)


def hold(folder: Path) -> int:
    """Takes the right to write below a folder: a descriptor, to be closed. The kernel also takes it back from a process that was killed.

    Raises Refused, with who has it, if another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A file, as network file systems do not lock folders; children do not inherit it.
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 200).decode(errors="replace").strip()
        os.close(lock)
        raise Refused(
            f"another suiro sweep is at work in {folder.parent}: {holder or 'it has just begun'}\n"
            "hint: wait until it has ended, or name another folder with --out"
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(lock)
            raise
        say(f"warning: the file system of {folder} has no locks: make sure that no other sweep writes there")
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return lock


def check_own(folder: Path) -> None:
    """Refuses a sweep's folder in which a link would lead what is written elsewhere: the results may be a stranger's."""
    for path in (folder, *(folder / name for name in ("attempts", "jobs", "parts", "logs", "scenario", "attempts.jsonl"))):
        if path.is_symlink():
            raise Refused(f"{path} is a link, and links are not followed\nhint: remove it, or name another folder with --out")


def place(scenario: Scenario, folder: Path) -> Path:
    """The scenario's text in the sweep's folder. It is written once: what runs already reads it."""
    there = folder / "scenario"
    if not there.exists():
        room = Path(tempfile.mkdtemp(prefix=".scenario-", dir=folder))
        scenario.write(room / "scenario")
        os.replace(room / "scenario", there)
        room.rmdir()
    return there / f"{scenario.name}.toml"


def room(folder: Path, trial: int) -> Path:
    """A new folder for one attempt at a trial."""
    attempts = folder / "attempts"
    attempts.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{trial}-", dir=attempts))


def settle(folder: Path) -> None:
    """Removes the rooms of a driver that was killed, each when its process has ended: it would disturb the trials that begin now."""
    for half in [*folder.glob(".scenario-*"), *folder.glob(".plan.json.*")]:
        # What it was writing.
        shutil.rmtree(half) if half.is_dir() and not half.is_symlink() else half.unlink()
    told = False
    for room in sorted((folder / "attempts").glob("*")):
        while _is_written(room / "part"):
            if not told:
                say("waiting for the trials of the sweep that was killed to end")
                told = True
            time.sleep(LOOK_S)
        shutil.rmtree(room)


def _is_written(part: Path) -> bool:
    """Whether a `suiro run` of this machine holds a results folder."""
    try:
        found = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(found, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(found)
    return False


def check_space(folder: Path, most: int) -> None:
    """Raises OSError if the disk, or this user's share of it, has no room for a file of so many bytes."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, most)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(error.errno, f"{error.strerror}: there is no room for {most >> 20} MiB", str(folder)) from None


def keep_log(log: Path, folder: Path, trial: int) -> str:
    """Keeps what an attempt printed as that of its trial. Gives its last words."""
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    try:
        words = log.read_text(errors="replace")[-WORDS_MAX:].strip()
        os.replace(log, logs / f"{trial}.log")
    except FileNotFoundError:
        return ""
    return words


def write(path: Path, text: str) -> None:
    """A file that appears when it is whole. A link in its place is replaced, not followed."""
    number, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(number, "w") as file:
        file.write(text)
    os.chmod(beside, 0o644)
    os.replace(beside, path)


def attempts(folder: Path, name: str) -> list[tuple[int, int]]:
    """The attempts that a list in the sweep's folder has, by trial and number. A line that was cut short is left out."""
    found = []
    try:
        with os.fdopen(open_beneath(folder, name), "rb") as file:
            while line := file.readline(LINE_MAX):
                try:
                    attempt = json.loads(line)
                    found.append((int(attempt["trial"]), int(attempt["number"])))
                except (ValueError, LookupError, TypeError, RecursionError):
                    continue
    except FileNotFoundError:
        pass
    return found


def append(path: Path, line: str) -> None:
    """Adds a line to a file, not through a link."""
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    with os.fdopen(number, "a") as file:
        file.write(line + "\n")
