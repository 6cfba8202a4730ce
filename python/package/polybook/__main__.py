"""The command ``polybook``."""

import sys

from ._polybook import _run


def main() -> int:
    return _run(["polybook", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
