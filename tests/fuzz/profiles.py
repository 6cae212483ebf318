"""Two hypothesis profiles: "short" runs with all tests, the same cases each time; "long" is ``make fuzz``, with new ones."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))


def is_long() -> bool:
    """Whether this is ``make fuzz``."""
    return settings.get_current_profile_name() == "long"


def cases(*, short: int, long: int) -> settings:
    """Settings of a test with so many cases in each of the profiles."""
    name, n = ("long", long) if is_long() else ("short", short)
    return settings(settings.get_profile(name), max_examples=n)
