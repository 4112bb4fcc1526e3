"""LES-6: keys, tokens and personal data are recognised by their form; talk about them is not."""

from __future__ import annotations

import time

import pytest

from tests.support.lessons import labelled, lines_of
from weft.lessons.sensitive import sensitive_parts, without_sensitive

SECRETS = [
    "AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-AbCdEf1234567890abcd",
    "sk-proj-abcdefGHIJ1234567890",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy",
    "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "Authorization: Bearer abc123def456ghi789",
    "-----BEGIN RSA PRIVATE KEY-----",
    "password: hunter2!",
    "PASSWORD=correct-horse-9",
    "curl -u bob:letmein1 example.org",
    "postgres://app:s3cr3t@db.internal/shop",
    "api_key: 9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "hf_AbCdEfGhIjKlMnOpQrStUvWx",
    "npm_AbCdEf1234567890AbCdEf1234567890AbCd",
    "write to ada@example.org",
    "ada.lovelace (at) example dot org",
    "grace [at] navy [dot] mil",
    "call +49 170 1234567",
    "call (415) 555-2671",
    "call 415-555-2671",
    "ring 0170 1234567",
    "+1 415 555 2671",
    "dckr_pat_AbCdEf123456789",
    "d41d8cd98f00b204e9800998ecf8427e",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
    "Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==",
    "Set-Cookie: sid=s%3Aab12.def; Path=/",
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "https://hooks.slack.com/services/T0AB1CD2E/B0FG3HI4J/aBcDeFgHiJkLmNoPqRsTuVwX",
    "https://discord.com/api/webhooks/123456789012345678/AbCdEfGhIjKlMnOpQrStUvWxYzAbCd",
    "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
    "sq0atp-abcdefghijklmnopqrstuv",
    "ATATT3xFfGF0abcdefghijklmnopqrstuvwx",
]
HARMLESS = [
    "Never commit secrets to the repository",
    "Rotate API keys every 90 days",
    "Hash passwords with bcrypt before storing them",
    "The token is refreshed every hour",
    "Set the timeout to 30000 milliseconds",
    "Use --password-file rather than --password",
    "Keep secrets in the vault, tokens in the session",
    "Use UUIDs such as 123e4567-e89b-12d3-a456-426614174000 as keys",
    "Use ISO dates: 2026-11-25T18:40:48",
    "Bump numpy from 1.26.4 to 2.0.1",
    "Decorate it with @pytest.fixture",
    "Install @types/node in packages/web",
    "Clone git@host and run make",
    "Listen on 127.0.0.1:8080",
    "Run PYTHONPATH=. pytest tests/unit/lessons/test_a_very_long_name_of_a_module.py",
    "Limit the batch to 1,000,000 rows and 10,000 tokens",
    "Use `src/components/CheckoutButtonWithPrice2.tsx` as a model",
    "The authorization is checked by the gateway",
    "Error 1064 at line 2011 of 40000",
    "Keep lines under 120 characters, names under 40",
    "mkdir -p build2/out",
    "TOKEN=$GITHUB_TOKEN is read by the client",
    "Use a token bucket for rate limiting",
    "Run pytest -p no:cacheprovider",
    "Pin images by sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Revert commit 9fceb02d0ae598e95dc970b74767f19372d61af8 first",
    "Expect the checksum 3f786850e387550fdab836ed7e6dc881de23001b",
    "Set PASSWORD_MIN_LENGTH=12 and TOKEN_TTL=3600",
    "Run docker run -u 1000:1000",
    "Use Authorization: Basic only over TLS",
    "Set-Cookie: names of sessions need HttpOnly",
    "Post to hooks.slack.com after each deployment",
    "password=None means no login",
    "Connect with postgres://user:${PASSWORD}@host/db",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_must_not_be_stored_is_recognised_and_not_repeated(text: str) -> None:
    """LES-6: whatever stands around it; what is reported names the kind alone."""
    assert sensitive_parts(f"From now on use this, always: {text} (as agreed).")
    assert all(kind.islower() or kind == "e-mail address" for kind in sensitive_parts(text))


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_secrets_is_none(text: str) -> None:
    """LES-6: lessons about secrets are lessons."""
    assert sensitive_parts(text) == ()


def test_no_labelled_lesson_is_taken_for_a_secret() -> None:
    """LES-6."""
    pairs = [*labelled("pairs", held_out=True), *labelled("pairs", held_out=False)]
    assert [pair for pair in pairs if sensitive_parts(f"{pair['left']}. {pair['right']}.")] == []


def test_passwords_in_talk_are_recognised_by_their_form_in_any_language() -> None:
    """LES-6: letters, digits and signs without a blank, tokens in webhooks; three in four, and hardly what looks so."""
    every = lines_of("secrets_in_talk")
    holding = [each["text"] for each in every if each["secret"]]
    without = [each["text"] for each in every if not each["secret"]]
    assert len(holding) == len(without) == 80
    assert sum(bool(sensitive_parts(each)) for each in holding) >= 60
    assert sum(bool(sensitive_parts(each)) for each in without) <= 4


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Never as admin with Tr0ub4dor&3-x.", "Never as admin with …."),
        ("le mot de passe du portail c'est Chouette+Lilas8", "le mot de passe du portail c'est …"),
        ("Post it to https://chat.example/hook/T0FAKE/9xYzFaKeToKeN now", "Post it to … now"),
        ("Pass encoding='utf-8' to open() and use C++20.", "Pass encoding='utf-8' to open() and use C++20."),
    ],
)
def test_a_secret_is_left_out_and_the_rest_stays(text: str, left: str) -> None:
    """LES-6."""
    assert without_sensitive(text) == left


def test_most_labelled_secrets_are_refused_and_what_looks_like_them_is_not() -> None:
    """LES-6: a word in the place of a key ("API_TOKEN=lighthouse") has no form, and is missed, as short keys are."""
    every = lines_of("secrets")
    refused = [bool(sensitive_parts(each["text"])) for each in every]
    secret = [each["secret"] for each in every]
    missed = sum(is_one and not is_refused for is_one, is_refused in zip(secret, refused, strict=True))
    alarms = sum(is_refused and not is_one for is_one, is_refused in zip(secret, refused, strict=True))
    assert missed <= 12
    assert alarms <= 2


@pytest.mark.parametrize("card", ["4539 1488 0343 6467", "5555-5555-5555-4444", "378282246310005"])
def test_cards_are_told_by_their_check_digit(card: str) -> None:
    """LES-6: with another last digit it is the number of something else."""
    other = f"{card[:-1]}{(int(card[-1]) + 1) % 10}"
    assert "card number" in sensitive_parts(f"pay with {card}")
    assert "card number" not in sensitive_parts(f"order {other}")


@pytest.mark.parametrize("account", ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "CH9300762011623852957"])
def test_accounts_are_told_by_their_check_digits(account: str) -> None:
    """LES-6: any other two digits behind the country are those of no account."""
    assert "account number" in sensitive_parts(f"pay {account} monthly")
    others = [f"{account[:2]}{check:02d}{account[4:]}" for check in range(2, 99) if f"{check:02d}" != account[2:4]]
    assert not any("account number" in sensitive_parts(other) for other in others)


@pytest.mark.parametrize("piece", ["(ab", "ab,", "'ab", "ab-", "https://hook/a1/"])
def test_a_long_line_without_a_blank_takes_no_longer_than_its_length(piece: str) -> None:
    """LES-6: transcripts hold minified scripts; four times as much may take eight times as long, not sixteen."""

    def seconds(count: int) -> float:
        text = piece * count
        began = time.process_time()
        for _ in range(3):
            sensitive_parts(text)
        return time.process_time() - began

    seconds(100)
    assert seconds(8_000) <= 8 * max(seconds(2_000), 0.001)
