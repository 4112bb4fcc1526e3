"""FBK-3: decoding many records at once says of each what decoding it alone says."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.feedback_events import explicit, impression, records, session
from weft.domain.errors import InvalidEventError
from weft.feedback.events.codec import decode, decode_all

EVENTS = [record.value or b"" for record in records([impression(), explicit(), session()])]
WHOLE = EVENTS[0]
EVENTS += [WHOLE.replace(b'"schema":2', b'"schema":7')]
HALVES = (WHOLE[:-1] + b',"x":{}', b'{"x":' + WHOLE + b"}", WHOLE[:-1] + b',"x":', b'{"a":1}}', b'"}', b'{"')
PARTS = (*EVENTS, *HALVES, b"", b" ", b"\n", b"{", b"}", b"{}", b",", b"\xff", b"\x00", b"NaN", b"1", b"[", b"]")
MOST = 4 * len(WHOLE)

values = st.one_of(st.none(), st.sampled_from(EVENTS), st.lists(st.sampled_from(PARTS), max_size=4).map(b"".join))


def told(found: object) -> object:
    return (found.reason, str(found)) if isinstance(found, InvalidEventError) else found


def alone(value: bytes | None) -> object:
    try:
        return decode(value, max_bytes=MOST)
    except InvalidEventError as error:
        return told(error)


@given(st.lists(values, max_size=8))
@example([WHOLE + WHOLE, b""])
@example([WHOLE + WHOLE, b" "])
@example([WHOLE + b"\n" + WHOLE, WHOLE])
@example([WHOLE + WHOLE, WHOLE[:-1] + b',"x":', WHOLE + b"}"])
@example([WHOLE + WHOLE, WHOLE[:-1] + b',"x":{}', b'{"y":1}}'])
@example([WHOLE + WHOLE, WHOLE[:-1] + b',"x":"}', b'{"}'])
def test_no_record_speaks_for_another(batch: list[bytes | None]) -> None:
    """FBK-3: two events in one record, or one in two, are wrong, whatever stands beside them."""
    assert [told(found) for found in decode_all(batch, max_bytes=MOST)] == [alone(value) for value in batch]
