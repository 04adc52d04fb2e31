"""Divisors of a length of time, without a loop over its units."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """List the divisors of a positive number, largest first.

    >>> divisors(12)
    (12, 6, 4, 3, 2, 1)
    """
    found = [1]
    for prime, power in _factored(number).items():
        found = [divisor * prime**times for divisor in found for times in range(power + 1)]
    return tuple(sorted(found, reverse=True))


def _factored(number: int) -> dict[int, int]:
    """Split a number into primes: small ones by trial, the rest by Pollard's rho method."""
    powers: dict[int, int] = {}
    waiting = [number]
    while waiting:
        part = waiting.pop()
        prime = next((small for small in _SMALL_PRIMES if part % small == 0), part)
        if part == 1:
            continue
        if prime == part and not _is_prime(part):
            divisor = _some_divisor(part)
            waiting += [divisor, part // divisor]
        else:
            powers[prime] = powers.get(prime, 0) + 1
            waiting.append(part // prime)
    return powers


def _is_prime(number: int) -> bool:
    """Decide by the Miller-Rabin test, which with these witnesses is exact below 3.3e24."""
    if number in _SMALL_PRIMES:
        return True
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in _SMALL_PRIMES:
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _some_divisor(number: int) -> int:
    """Find a divisor of a composite number without small prime factors (Pollard 1975)."""
    step = 1
    while True:
        slow = fast = 2
        divisor = 1
        while divisor == 1:
            slow = (slow * slow + step) % number
            fast = (fast * fast + step) % number
            fast = (fast * fast + step) % number
            divisor = gcd(slow - fast, number)
        if divisor != number:
            return divisor
        step += 1
