"""The paper's own figures, for comparison with ours. Paper: Tables I to IV."""

from __future__ import annotations

from typing import NamedTuple


class Boosts(NamedTuple):
    """Throughput relative to the original plan: mean and maximum of ten sets, without and with factor windows."""

    mean_without: float
    max_without: float
    mean_with: float
    max_with: float


SYNTHETIC_10M = {
    "R-5-tumbling": Boosts(1.21, 1.92, 1.85, 2.54),
    "R-10-tumbling": Boosts(1.34, 1.77, 1.88, 3.38),
    "R-5-hopping": Boosts(1.18, 1.82, 3.26, 4.29),
    "R-10-hopping": Boosts(1.34, 1.71, 3.20, 6.15),
    "S-5-tumbling": Boosts(1.63, 1.67, 4.28, 4.81),
    "S-10-tumbling": Boosts(1.98, 2.05, 7.91, 9.38),
    "S-5-hopping": Boosts(1.34, 1.48, 2.17, 2.81),
    "S-10-hopping": Boosts(1.58, 1.73, 2.92, 3.79),
}
"""Table I."""
REAL_32M = {
    "R-5-tumbling": Boosts(1.19, 1.78, 1.43, 1.91),
    "R-10-tumbling": Boosts(1.30, 1.71, 1.53, 2.86),
    "R-5-hopping": Boosts(1.09, 1.39, 1.54, 2.63),
    "R-10-hopping": Boosts(1.18, 1.39, 1.46, 3.53),
    "S-5-tumbling": Boosts(1.63, 1.67, 4.12, 4.85),
    "S-10-tumbling": Boosts(1.90, 1.97, 7.53, 9.14),
    "S-5-hopping": Boosts(1.12, 1.30, 1.22, 1.77),
    "S-10-hopping": Boosts(1.22, 1.51, 1.45, 2.31),
}
"""Table II."""
SCALABILITY = {
    "R-15-tumbling": Boosts(1.55, 1.96, 2.97, 4.34),
    "R-20-tumbling": Boosts(1.49, 2.29, 2.10, 4.83),
    "R-15-hopping": Boosts(1.55, 1.95, 4.67, 6.59),
    "R-20-hopping": Boosts(1.68, 2.20, 4.23, 7.65),
    "S-15-tumbling": Boosts(2.43, 2.49, 11.29, 13.83),
    "S-20-tumbling": Boosts(2.42, 2.53, 14.28, 16.82),
    "S-15-hopping": Boosts(1.85, 2.09, 3.51, 4.68),
    "S-20-hopping": Boosts(1.91, 2.15, 4.02, 5.32),
}
"""Table III, on Synthetic-10M."""
SYNTHETIC_1M = {
    "R-5-tumbling": Boosts(1.21, 2.01, 1.85, 2.41),
    "R-10-tumbling": Boosts(1.36, 1.72, 1.94, 3.13),
    "R-5-hopping": Boosts(1.19, 1.76, 2.90, 3.78),
    "R-10-hopping": Boosts(1.31, 1.54, 2.94, 5.14),
    "S-5-tumbling": Boosts(1.63, 1.79, 3.82, 4.43),
    "S-10-tumbling": Boosts(1.91, 2.07, 6.27, 7.27),
    "S-5-hopping": Boosts(1.33, 1.51, 2.10, 2.73),
    "S-10-hopping": Boosts(1.54, 1.69, 2.75, 3.65),
}
"""Table IV."""
CORRELATION = 0.94
"""The lowest of the four correlation coefficients."""
