"""Numbers of cards and accounts, told from others by their check digits."""

from __future__ import annotations

import re

_CARD = re.compile(r"(?<![\w.])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ -]?)\d{6}\2\d{4,5})(?![\w-])")
# How issuers' numbers begin, and how long they are (ISO/IEC 7812).
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|(?:6011|64[4-9]\d|65\d\d)\d{12,15}|35\d{14,17}"
    r"|3[0689]\d{12}"
)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b", re.IGNORECASE)
_ACCOUNT_LENGTHS = range(15, 35)
_NINE = 9


def has_card(text: str) -> bool:
    """Whether a text holds the number of a payment card.

    Examples:
        >>> has_card("test with 4539 1488 0343 6467"), has_card("order 4539148803436468")
        (True, False)
    """
    numbers = (re.sub(r"\D", "", match.group()) for match in _CARD.finditer(text))
    return any(_ISSUED.fullmatch(number) is not None and _luhn(number) for number in numbers)


def has_account(text: str) -> bool:
    """Whether a text holds the number of a bank account (IBAN).

    Examples:
        >>> has_account("pay DE89 3704 0044 0532 0130 00 today"), has_account("pay DE88 3704 0044 0532 0130 00 today")
        (True, False)
    """
    return any(_is_account(match.group()) for match in _ACCOUNT.finditer(text))


def _luhn(number: str) -> bool:
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(number)))
    return sum(each - _NINE * (each > _NINE) for each in doubled) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether its remainder by 97 is 1, the first four characters behind the rest and letters as numbers (ISO 13616).

    A word that stands behind it may have been taken for its last group.
    """
    groups = re.split(r"[ -]", text.upper())
    while groups[-1].isalpha():
        groups.pop()
    number = "".join(groups)
    if len(number) not in _ACCOUNT_LENGTHS or sum(map(str.isdigit, number)) < len(number) // 2:
        return False
    turned = "".join(str(int(letter, 36)) for letter in number[4:] + number[:4])
    return int(turned) % 97 == 1
