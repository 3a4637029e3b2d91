from hypothesis import given
from hypothesis import strategies as st

from hub.core import ids


@given(st.integers(1, 50))
def test_ids_sort_in_the_order_in_which_they_were_made(count):
    made = [ids.new_id("trl") for _ in range(count)]

    assert made == sorted(set(made))


def test_an_id_says_what_it_names_and_fits_its_column():
    made = ids.new_id("apr")

    assert made.startswith("apr_")
    assert len(made) == 26 <= ids.id_field("apr").max_length
    assert made[4:].isalnum()
    assert made == made.lower()


@given(st.integers(0, 2**40), st.integers(0, 2**60 - 1), st.integers(0, 2**40))
def test_an_id_follows_the_last_one_whatever_the_clock_says(then, random, now):
    following = ids.following((then, random), milliseconds=now)

    assert following > (then, random)
    assert following[1] < 2**60
