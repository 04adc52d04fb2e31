"""Divisors of a length of time, without a step for every unit of it."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """List the divisors of a positive number, the greatest first.

    >>> divisors(12)
    (12, 6, 4, 3, 2, 1)
    """
    found = [1]
    prime = 2
    while prime * prime <= number:
        powers = [1]
        while number % prime == 0:
            number //= prime
            powers.append(powers[-1] * prime)
        found = [divisor * power for divisor in found for power in powers]
        prime += 1 if prime == 2 else 2
    if number > 1:
        found += [divisor * number for divisor in found]
    return tuple(sorted(found, reverse=True))
