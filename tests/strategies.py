"""Hypothesis strategies: small windows in bare units of time, window sets, events."""

from hypothesis import strategies as st

from factor_windows import Window


@st.composite
def windows(draw, longest=24, tumbling=False, whole=False):
    """Any window with a short range; `whole` keeps the range a multiple of the slide, as the paper does."""
    slide = draw(st.integers(1, longest))
    if tumbling:
        length = slide
    elif whole:
        length = slide * draw(st.integers(1, max(1, longest // slide)))
    else:
        length = draw(st.integers(slide, longest))
    return Window(range=length, slide=slide, offset=draw(st.integers(0, slide - 1)))


@st.composite
def multiples(draw, window, most=4):
    """A window that the given tumbling one partitions."""
    slide = window.slide * draw(st.integers(1, most))
    length = slide * draw(st.integers(1, most))
    return Window(range=length, slide=slide, offset=window.offset)


def window_sets(most=6, **options):
    return st.lists(windows(**options), min_size=1, max_size=most, unique=True)


def events(longest=60):
    value = st.one_of(st.none(), st.integers(-50, 50))
    return st.lists(
        st.fixed_dictionaries(
            {
                "t": st.one_of(st.none(), st.integers(-longest, longest), st.integers(0, 10)),
                "k": st.sampled_from(["a", "b", None]),
                "v": value,
                "w": value,
                "ok": st.sampled_from([True, False, None]),
            }
        ),
        max_size=30,
    )
