"""`python -m suiro …` is `suiro …`."""

import os
import sys

from ._binary import find_binary


def main() -> None:
    """Becomes the program."""
    try:
        binary = find_binary()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    os.execv(binary, ["suiro", *sys.argv[1:]])


if __name__ == "__main__":
    main()
