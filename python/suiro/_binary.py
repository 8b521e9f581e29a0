"""Where the program is that came with this package."""

import os
import sys
import sysconfig
from pathlib import Path


def find_binary() -> str:
    """The path of the program `suiro`.

    `SUIRO_BINARY` names another one. PATH is not searched: the program must be of the same version as this package.

    Raises FileNotFoundError, with what was searched, if there is none.
    """
    own = os.environ.get("SUIRO_BINARY")
    if own:
        if not Path(own).is_file():
            raise FileNotFoundError(f"SUIRO_BINARY: there is no file {own}")
        return own
    folders = _folders()
    for folder in folders:
        if (folder / "suiro").is_file():
            return str(folder / "suiro")
    searched = ", ".join(map(str, folders))
    raise FileNotFoundError(
        f"the program suiro is not next to this package; searched {searched}\n"
        "hint: install the wheel (pip install suiro-*.whl), or set SUIRO_BINARY to the program"
    )


def _folders() -> list[Path]:
    """Where pip puts programs: of this environment, of its base, next to the package (`--target`, `--prefix`), of the user."""
    package = Path(__file__).resolve().parent
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", vars={"base": sys.base_prefix})),
        package.parent / "bin",
    ]
    # PREFIX/lib/python3.X/site-packages/suiro
    if len(package.parents) > 3:
        folders.append(package.parents[3] / "bin")
    user = sysconfig.get_preferred_scheme("user")
    folders.append(Path(sysconfig.get_path("scripts", scheme=user)))
    return list(dict.fromkeys(folders))
