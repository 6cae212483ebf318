"""Two hypothesis profiles: "short" runs with all tests, the same cases each time; "long" is ``make fuzz``, with new ones."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("long", deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))


def cases(*, short: int, long: int) -> settings:
    """Settings of a test with so many cases in each of the profiles."""
    is_long = settings.get_current_profile_name() == "long"
    return settings(settings.get_profile("long" if is_long else "short"), max_examples=long if is_long else short)
