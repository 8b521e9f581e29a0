"""One attempt at one trial: what a machine is handed, and what it hands back."""

from __future__ import annotations

import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .._files import ResultsError, list_beneath, open_beneath, parts, read_document

#: Most bytes of a trial's folder that are sent over the network.
FOLDER_BYTES_MAX = 2 << 30
#: Most bytes of all files that a scenario names: they are sent to every machine.
FILES_BYTES_MAX = 2 << 30
#: Characters of a program's last messages that are kept.
WORDS_MAX = 2000


@dataclass(frozen=True)
class Scenario:
    """A scenario, as every machine gets it."""

    name: str
    """Its file's name."""
    text: str
    """Its text with every change."""
    version: str
    """The version of suiro that planned it, and that must run it."""
    files: dict[str, bytes] = field(default_factory=dict)
    """The files that it names, by their relative paths."""
    working: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """The files of the working folder that its commands name, with their modes, for machines that have another one."""

    def write(self, folder: Path) -> Path:
        """Writes it and its files into a new folder. Gives the path of its text.

        Raises ResultsError, before anything is written, if a name leads out of the folder: a scenario may be a stranger's.
        """
        own = f"{self.name}.toml"
        _place(folder, self.files | {own: self.text.encode()})
        return folder / own

    def write_working(self, folder: Path) -> Path:
        """Writes the files of its commands into a new folder, which is their working folder. Gives that."""
        _place(folder, {name: content for name, (_, content) in self.working.items()})
        for name, (mode, _) in self.working.items():
            (folder / name).chmod(mode & 0o777)
        return folder


def _place(folder: Path, files: dict[str, bytes]) -> None:
    """Writes files into a new folder; none if the name of one leads out of it."""
    for name in files:
        parts(name)
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def gather(base: Path, names: list[str]) -> dict[str, tuple[int, bytes]]:
    """The files below a folder that a scenario names by relative paths, with their modes; others are each machine's own.

    Raises ResultsError if a name leads out of the folder, through a link or not: what it leads to would be sent along.
    """
    files: dict[str, tuple[int, bytes]] = {}
    left = FILES_BYTES_MAX
    for name in names:
        if os.path.isabs(name):
            continue
        path = str(PurePosixPath(name))
        if ".." in path.split("/"):
            raise ResultsError(f"{base / name} is outside of the folder {base.absolute()}")
        with os.fdopen(open_beneath(base, path), "rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise ResultsError(f"the files that the scenario names are larger than {FILES_BYTES_MAX >> 20} MiB")
        files[path] = mode, content
    return files


@dataclass
class Attempt:
    """How one attempt ended."""

    trial: int
    number: int
    """From 1."""
    machine: str
    outcome: str
    """`valid`, `invalid`, `late`: the machine was too slow for it, `skipped`: the machine is missing something,
    `failed`: there is no record, `lost`: the machine or its worker went away, `refused`: another version of suiro,
    `damaged`: its tables cannot be read, or disagree with its accounts."""
    because: str | None = None
    seconds: float = 0.0
    """From the hand-out to the return."""
    starts: int = 1
    """How often Slurm started it: again if its machine failed."""
    clock_s: float | None = None
    """The machine's clock minus this one's, at least; null if that is not known."""

    def line(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))


def judge(trial: dict[str, Any]) -> tuple[str, str | None]:
    """The outcome of an attempt by its `trial.json`."""
    because = trial.get("invalid_because")
    if trial.get("skipped"):
        return "skipped", because
    if trial.get("valid"):
        return "valid", None
    slow = trial.get("only_late") or any(not check.get("ok", True) for check in trial.get("self_checks") or [])
    return ("late" if slow else "invalid"), because


def document(part: Path) -> str:
    """Where the `trial.json` of the only trial of a results folder is, below it.

    Raises what reading a stranger's folder raises: OSError, ValueError, LookupError, TypeError.
    """
    return str(read_document(part, "manifest.json")["plan"][0]["folder"]) + "/trial.json"


def record(part: Path) -> tuple[str, str | None]:
    """The outcome of the only trial of a results folder."""
    try:
        path = document(part)
        trial = read_document(part, path)
        damage = damaged(part, path.removesuffix("/trial.json"), trial, verdicts(part)) if trial.get("valid") is True else None
        return judge(trial) if damage is None else ("damaged", damage)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return "failed", f"its record cannot be read: {error}"


#: A cell and a repetition.
Key = tuple[frozenset[tuple[str, str]], int]


def key(of: dict[str, Any]) -> Key:
    """Which trial it is of its scenario, by its record or its row in the summary."""
    return frozenset((str(name), str(value)) for name, value in of["cell"].items()), int(of["repetition"])


def verdicts(root: Path) -> dict[Key, str | None]:
    """Why each trial is not valid, None for those that are, by the report, which read all tables; empty without a report."""
    try:
        rows = read_document(root, "summary.json")["trials"]
        return {key(row): None if row["valid"] else str(row["invalid_because"]) for row in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def damaged(root: Path, folder: str, trial: dict[str, Any], known: dict[Key, str | None]) -> str | None:
    """What is wrong with the tables of a trial that is valid by its `trial.json`.

    Raises what `document` does.
    """
    for name in list_beneath(root, folder):
        if name.endswith(".parquet") and not _is_whole(root, f"{folder}/{name}"):
            return f"{name} is cut short"
    return known.get(key(trial)) if known else None


def _is_whole(root: Path, path: str) -> bool:
    """Whether a Parquet file begins and ends as one: no more is read."""
    with os.fdopen(open_beneath(root, path), "rb") as file:
        first, size = file.read(4), os.fstat(file.fileno()).st_size
        file.seek(max(size - 8, 0))
        last = file.read()
    return first == last[4:] == b"PAR1" and size >= 12 + int.from_bytes(last[:4], "little")


def command(binary: str, scenario: Path, trial: int, out: Path) -> list[str]:
    """The command of an attempt. The driver repeats what was late, on another machine if it can."""
    return [binary, "run", str(scenario), "--trial", str(trial), "--retries", "0", "--out", str(out)]


def die_with(parent: int) -> None:
    """In a child before it becomes the program: it ends when the process that started it, `parent`, does."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != parent:
        # It ended before this, and no signal will come.
        os._exit(1)


def version(binary: str) -> str:
    """The version of the program."""
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def run_here(scenario: Scenario, trial: int, binary: str) -> dict[str, Any]:
    """Runs a trial on this machine and packs its folder. Called on a machine of a cluster.

    Raises nothing: what goes wrong is in the answer.
    """
    answer: dict[str, Any] = {"tar": None}
    try:
        found = version(binary)
        if found != scenario.version:
            answer |= {"outcome": "refused", "because": f"suiro {found} is installed there, expected {scenario.version}"}
            return answer
        with tempfile.TemporaryDirectory(prefix="suiro-sweep-") as room:
            answer |= _run_in(Path(room), scenario, trial, binary)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answer |= {"outcome": "failed", "because": f"{error}"}
    return answer


def _run_in(room: Path, scenario: Scenario, trial: int, binary: str) -> dict[str, Any]:
    part, working = room / "part", scenario.write_working(room / "working")
    # Not next to the part: a file of the scenario must not pass for a record.
    path, own = scenario.write(room / "scenario"), os.getpid()
    done = subprocess.run(
        command(os.path.abspath(binary), path, trial, part),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: die_with(own),
        cwd=working,
        check=False,
    )
    words = done.stderr.decode(errors="replace")[-WORDS_MAX:].strip()
    if not (part / "manifest.json").exists():
        return {"outcome": "failed", "because": words or f"suiro ended with exit code {done.returncode}"}
    outcome, because = record(part)
    if outcome == "failed":
        return {"outcome": outcome, "because": words or because}
    size = sum(file.stat().st_size for file in part.rglob("*") if file.is_file())
    if size > FOLDER_BYTES_MAX:
        most = FOLDER_BYTES_MAX >> 20
        return {"outcome": "failed", "because": f"its folder has {size >> 20} MiB, and at most {most} MiB are sent: record less"}
    return {"outcome": outcome, "because": because, "tar": pack(part)}


def pack(part: Path) -> bytes:
    """A folder as tar; its tables are compressed already."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(part, arcname=".")
    return packed.getvalue()


def unpack(packed: bytes, part: Path) -> None:
    """Unpacks a part into a new folder. Nothing is written elsewhere, whatever the tar says: it has files and folders alone.

    Raises ResultsError if it has something else. (Filters of `tarfile` are missing in Python 3.11.2, which Debian 12 has.)
    """
    part.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for member in tar:
            path = str(PurePosixPath(member.name))
            if path == ".":
                continue
            place = part.joinpath(*parts(path))
            content = tar.extractfile(member) if member.isreg() else None
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif content is None:
                raise ResultsError(f"the part of a machine holds {path!r}, which is neither a file nor a folder")
            else:
                with place.open("xb") as file:
                    shutil.copyfileobj(content, file)


def keep(part: Path, place: Path) -> None:
    """Puts a finished part in its place; an earlier attempt that is there makes room, and is recorded as `suiro run` does."""
    remember(place, part)
    place.parent.mkdir(exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    os.replace(part, place)


def remember(before: Path, after: Path) -> None:
    """Adds an attempt that was only late to the `attempts` of the one after it."""
    try:
        old, path = read_document(before, document(before)), document(after)
        new = read_document(after, path)
        if not old["only_late"]:
            return
        attempt = {key: old[key] for key in ("started", "duration_s", "invalid_because", "links")}
        new["attempts"] = [*old["attempts"], attempt, *new["attempts"]]
    except (OSError, ValueError, LookupError, TypeError):
        # There was none before, or one of them is damaged, which `suiro merge` reports.
        return
    # Not through a link: reading it would have failed.
    (after / path).write_text(json.dumps(new, indent=2))
