"""Started by `suiro sweep`, with what was typed as JSON."""

import json
import sys
from pathlib import Path

from .driver import Request, sweep
from .words import Refused, say


def main() -> int:
    """Exit code 2: it could not begin; 1: a trial failed or is invalid."""
    words = json.loads(sys.argv[1])
    request = Request(**{**words, "out": Path(words["out"])})
    try:
        if request.tune is not None:
            from .tune import tune

            return tune(request)
        return sweep(request)
    except Refused as refused:
        say(f"error: {refused}")
        return 2
    except KeyboardInterrupt:
        say("interrupted\nhint: the same command with --resume goes on")
        return 1
    except OSError as error:
        # A full disk, most often. What was recorded stays.
        say(f"error: {error}\nhint: once that is solved, the same command with --resume goes on")
        return 1
    except ImportError as missing:
        say(f"error: --on {request.on}: {missing}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
