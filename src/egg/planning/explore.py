"""A fixed share of the attempts ignores the priors, so that a wrong prior can be found out."""

from __future__ import annotations

from collections.abc import Sequence

from egg.schema.base import content_hash
from egg.schema.plan import Option
from egg.schema.run import Attempt, Config


def explores(config: Config, index: int) -> bool:
    """Returns True where the attempt at `index` explores: every 1/explore_share-th one, shifted by the seed."""
    if config.explore_share <= 0:
        return False
    period = max(round(1 / config.explore_share), 1)
    return index > 0 and (index + 1 + config.seed) % period == 0


def least_evidence(options: Sequence[Option], attempts: Sequence[Attempt], seed: int) -> Option | None:
    """Returns the option whose principle was tried least in this run, or None without options.

    Ties are drawn by a hash of the seed, the number of attempts and the option's id.
    """
    tried = [principle for a in attempts for principle in a.plan.principle_ids]

    def rank(option: Option) -> tuple[int, str]:
        return tried.count(option.principle_id), content_hash(str(seed), str(len(attempts)), option.id)

    return min(options, key=rank, default=None)
