"""Limits on threads that several users share."""

import pytest

from condshap.runtime.threads import SharedLimit


def test_a_shared_limit_is_set_by_all_and_lifted_by_the_last():
    threads = [8]

    def change():
        before, threads[0] = threads[0], 1
        return before

    limit = SharedLimit(change, restore=lambda before: threads.__setitem__(0, before))
    with limit.held():
        with limit.held():
            assert threads == [1]
        assert threads == [1]
    assert threads == [8]
    with pytest.raises(ZeroDivisionError), limit.held():
        raise ZeroDivisionError
    assert threads == [8]
