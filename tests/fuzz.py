"""A standing search for differences: `python tests/fuzz.py --minutes 5` looks at fresh cases, `fuzzing/` is how.

One seed is one session with settings of its own, one data set and a few queries; docs/testing.md says what is drawn.
A fixed part of it is in the tests (test_fuzz.py).
"""

import sys

from fuzzing.main import main

if __name__ == "__main__":
    sys.exit(main())
