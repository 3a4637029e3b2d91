import pytest

from trials.rules.student import inside, t_quantile

# Printed tables, t for 97.5 %.
TABLE = {
    1: 12.7062,
    2: 4.3027,
    3: 3.1824,
    4: 2.7764,
    5: 2.5706,
    6: 2.4469,
    7: 2.3646,
    8: 2.3060,
    9: 2.2622,
    10: 2.2281,
    15: 2.1314,
    20: 2.0860,
    30: 2.0423,
    60: 2.0003,
    120: 1.9799,
}


@pytest.mark.parametrize(("n", "t"), TABLE.items())
def test_the_quantile_is_that_of_the_printed_tables(n, t):
    assert t_quantile(n) == pytest.approx(t, abs=5e-5)


def test_with_many_degrees_of_freedom_it_is_the_normal_quantile():
    assert t_quantile(100_000) == pytest.approx(1.95996, abs=5e-5)


@pytest.mark.parametrize("n", range(1, 60))
def test_the_quantile_falls_as_degrees_grow_and_holds_95_percent(n):
    assert t_quantile(n) > t_quantile(n + 1)
    assert inside(t_quantile(n), n) == pytest.approx(0.95, abs=1e-10)


def test_no_degrees_of_freedom_have_no_quantile():
    with pytest.raises(ValueError, match="at least one"):
        t_quantile(0)
