"""The command ``polybook``."""

import os
import sys

from ._polybook import _run


def main() -> int:
    stdout_was_closed = os.name == "posix" and sys.stdout is None
    if stdout_was_closed:
        # Each write to a pipe that nobody reads fails. Otherwise, the data would be lost unnoticed.
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
    return _run(["polybook", *sys.argv[1:]], stdout_was_closed)


if __name__ == "__main__":
    sys.exit(main())
