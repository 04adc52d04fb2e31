"""The planted bugs still apply; `python tests/mutations.py` plants them, which takes too long for every change."""

import pytest
from mutations import BUGS, misfits


@pytest.mark.parametrize("bug", BUGS, ids=[bug[0] for bug in BUGS])
def test_a_planted_bug_changes_one_place_and_names_a_test_that_exists(bug):
    _, _, right, wrong, *_ = bug
    assert right != wrong
    assert misfits(*bug) == []


def test_planted_bugs_go_by_names_of_their_own():
    assert sorted({bug[0] for bug in BUGS}) == sorted(bug[0] for bug in BUGS)
