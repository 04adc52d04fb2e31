"""Which window can be computed from which: the relations of the paper's section II, with offsets."""

from __future__ import annotations

from factor_windows.algebra.window import Window


def covers(parent: Window, child: Window) -> bool:
    """Say whether every instance of `child` is a union of instances of `parent` (Paper: Theorem 1).

    A window covers itself, as in the paper's Definition 1.

    >>> from factor_windows.algebra.window import hopping, tumbling
    >>> covers(hopping("8s", "2s"), hopping("10s", "2s"))
    True
    >>> covers(tumbling("4s"), tumbling("10s"))
    False
    """
    step = parent.slide
    return (
        child.clock == parent.clock
        and child.range > parent.range
        and child.slide % step == 0
        and (child.range - parent.range) % step == 0
        and (child.offset - parent.offset) % step == 0
    ) or child == parent


def partitions(parent: Window, child: Window) -> bool:
    """Say whether every instance of `child` is a disjoint union of instances of `parent` (Paper: Theorem 4).

    >>> from factor_windows.algebra.window import hopping, tumbling
    >>> partitions(tumbling("2s"), hopping("10s", "4s"))
    True
    >>> partitions(hopping("8s", "2s"), hopping("10s", "2s"))
    False
    """
    return child == parent or (parent.is_tumbling and covers(parent, child))


def multiplier(parent: Window, child: Window) -> int:
    """Count the instances of a covering `parent` that one instance of `child` reads (Paper: Theorem 3).

    >>> from factor_windows.algebra.window import hopping
    >>> multiplier(hopping("8s", "2s"), hopping("10s", "2s"))
    2
    """
    return 1 + (child.range - parent.range) // parent.slide


def covering_set(parent: Window, child: Window, start: int) -> range:
    """List the starts of the `parent` instances inside the `child` instance at `start` (Paper: Definition 2).

    >>> list(covering_set(Window(range=8, slide=2), Window(range=10, slide=2), start=4))
    [4, 6]
    """
    return range(start, start + child.range - parent.range + 1, parent.slide)


def tiles(parent: Window, child: Window) -> bool:
    """Say whether every instance of `child` consists of instances of `parent`, end to end: a sparse partition.

    The paper requires a tumbling parent. A hopping one works as well: only its instances that follow each other end to
    end are read. If the parent has the child's range, one instance is enough, as long as the child starts less often.

    >>> from factor_windows.algebra.window import hopping
    >>> tiles(hopping("6m", "1m"), hopping("24m", "1m")), tiles(hopping("8s", "2s"), hopping("10s", "2s"))
    (True, False)
    """
    step = parent.slide
    return (
        child.clock == parent.clock
        and child.range % parent.range == 0
        and (parent.range % step == 0 or child.range == parent.range)
        and child.slide % step == 0
        and (child.offset - parent.offset) % step == 0
    )


def fewest(parent: Window, child: Window) -> int:
    """Return the smallest number of instances of a covering `parent` that make up one of `child`: a sparse cover.

    If the parent tiles the child, these are the tiles.

    >>> from factor_windows.algebra.window import hopping
    >>> parent, child = hopping("8s", "2s"), hopping("24s", "2s")
    >>> fewest(parent, child), multiplier(parent, child)
    (3, 9)
    """
    return 1 - (parent.range - child.range) // stride(parent)


def fewest_set(parent: Window, child: Window, start: int) -> tuple[int, ...]:
    """List the starts of the smallest set of `parent` instances that makes up the `child` instance at `start`.

    >>> fewest_set(Window(range=4, slide=2), Window(range=10, slide=2), start=0)
    (0, 4, 6)
    """
    last = child.range - parent.range
    return tuple(start + min(step * stride(parent), last) for step in range(fewest(parent, child)))


def stride(window: Window) -> int:
    """Return the greatest distance between two instances without a gap between them."""
    return window.range // window.slide * window.slide
