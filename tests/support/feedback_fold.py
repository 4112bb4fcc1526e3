"""An independent reading of a feedback log, from the specification alone: none of weft's code, only `json` and dicts.

Without `times` it serves logs whose times are plausible, lie within a few hours and before their records', so that
windows and clocks never come into play. With them it reads record timestamps, too, and keeps a partition's clock: the
largest plausible record time, moved by at most a step per record. An event counts at its own time, but never after the
clock; what lies more than a window before it is late.

Evidence of one credited result, of weight w, shown with signal values s in [0, 1] and a score (LRN-4), where it was
shown alone:
    mass = round(w · 10⁶); agreed = round(w · s · 10⁶) if good, round(w · (1 − s) · 10⁶) if bad
    signal.<name>.<good|bad>: "for" += agreed, "against" += mass − agreed
    product.<name>[.<other>].<good|bad>, of the domain alone, for every pair in the order that weft tells signals in,
        a signal with itself, and one alone: "for" += round(w · s · t · 10⁶), "against" += the rest of the mass
Where several were shown (LRN-22), a bad one leaves none of these lines, and a good one leaves them twice: as a good
outcome with s = ½ + a, and as a bad one with s = ½ − a/(n − 1), n results telling that signal and at least 2, both cut
to [0, 1]; a is its value less the page's mean, but what alone is first by score has c times the page's covariance of
½ + a, cut to [0, 1], with the score, c = min(slope, (best score − mean)/variance). The product of both is the page's
mean of (½ + a)·(½ + b), each cut to [0, 1], with the values themselves:
    where precedent, a number p in [0, 1], was told of one or more of them, its order was left
        open by the least of their 2·min(p, 1 − p), a half telling nothing. That multiplies w in all lines above, before
        anything is rounded. In the lines below, w stays as it is
    where a result at a rank that is looked at with probability p weighs min(1/p, clip) times a click's or skip's weight
    examination of a shown result: "<rank>/<bin>/<bins>.shown" += 10⁶, ".score" += round(score · 10⁶); of a click
        that is not surplus ".clicked" += 10⁶
    relevance: "<bin>/<bins>.<good|bad>" += mass
Usage of a content is kept under who says something, and the first 16 digits of the question's hash (LRN-18):
    of a verdict on this very result "verdict:<good|bad>:<ms>:<percent>" += mass, with the day and the millisecond since
        when that is the speaker's word: a new one begins where the sign changes, or on a later day, at its own time or
        a millisecond after the word before; the score in percent of the best one on its page
    of every other outcome "positive" or "negative" += mass
    of a correction "verdict:<good|bad>:<ms>:-" += 10⁶ under the hash, or else the URI, that it names; nothing else
    where the question's text is known, for each such event "question:<text>" += 10⁶, of no content and nobody; on the
        day of the word, where it is one
What is said of lessons is use, as `lesson_fold` says.
Who opens all results of a page, two or more, or of four and more all but one, or four within two seconds, leaves
nothing by it: what was noted of it is subtracted, and what the allowance gave for it is given back, unless the session
began again since. What they open there later leaves nothing.
A principal's day has an allowance of evidence about weights, and one of each type of report, of each source by itself;
what is reported leaves a mass under who did. Outside of sessions an allowance is drawn on event by
event, and what comes after it was used up is surplus. Of what all sessions that started and completed, or fell silent,
draw on one, as large a share of each mass counts, rounded down, as was left beside that; the rest is surplus, and of
clicks nothing.
The first few principals have an allowance of their own at once. Later ones share one of every day before the one from
which on they have a history: the day after they first spoke, by the partition's clock, or the last one that somebody
waits for, where that is later; and the day after that one where as many have theirs from it on as had theirs before.
What was retrieved, included or referenced counts under that name in usage, too. The first inclusion says which results
are in the context, further ones add to these, and what is said to be left out is in it no more; outcomes of the whole
answer are shared by what is in it then. What was retrieved and never shown is bad in usage alone. Reports are one
observation each, under the scope they name, in bins of the base settings: 4 per doubling of an age, 20 of confidence, a
turn each; what is examined in 8 of score and 8 of lead, down to rank 10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support.feedback_clock import Clock, Timeless
from tests.support.feedback_pages import order_uncertainty, sides_of
from tests.support.feedback_reports import REPORTS, about_of, event_of
from tests.support.feedback_words import ask, fingerprint, hash_of, is_verdict, last_word, spoken
from tests.support.folded_evidence import Folded, Overlay, Piece, SessionLifecycle
from tests.support.lesson_fold import TYPES, lesson_uses

MICRO = 1_000_000
USES = {"retrieval": ("retrieved", False), "inclusion": ("included", True), "reference": ("referenced", True)}
DAY_MS = 86_400_000
MERGED = {"complete", "expired"}
SIGNALS = ("vector", "lexical", "graph", "cross_validation", "freshness", "trust")


def fold_log(
    partitions: Iterable[Sequence[bytes | None]],
    *,
    weights: dict[str, Any],
    times: Mapping[str, float] | None = None,
    timestamps: Sequence[Sequence[int]] = (),
) -> Folded:
    """Read every partition from its start: values in the order of their offsets.

    Args:
        times: The section `feedback.time` of the settings, for logs whose times are not plausible.
        timestamps: Of the records of each partition, with `times`.
    """
    folded = Folded()
    for number, values in enumerate(partitions):
        clock = None if times is None else Clock(times, timestamps[number])
        _Reader(folded, weights, clock).read(values)
    return folded


class _Reader:
    def __init__(self, folded: Folded, weights: dict[str, Any], clock: Clock | None) -> None:
        self.folded = folded
        self.weights = weights
        self.clock = clock or Timeless()
        self.seen: dict[str, int] = {}
        self.shown: dict[tuple[str, str], dict[str, Any]] = {}
        self.early: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self.lifecycles: dict[str, SessionLifecycle] = {}
        self.forgotten: list[SessionLifecycle] = []
        self.drawn: dict[tuple[str, int, str], int] = defaultdict(int)
        daily = {"": weights.get("principal_daily", 10**12), **weights.get("reports_daily", {})}
        self.daily = {allowance: granted * MICRO for allowance, granted in daily.items()}
        self.since: dict[str, int] = {}
        self.newcomers = weights.get("newcomers", float("inf"))
        self.number = 0

    def read(self, values: Sequence[bytes | None]) -> None:
        for self.number, value in enumerate(values):
            event = event_of(value)
            self.clock.advance(self.number, event["principal"] if event else "")
            self.folded.fates[self.fate(event)] += 1
        merged: dict[tuple[str, int, str], Piece] = {}
        for life in [*self.forgotten, *self.lifecycles.values()]:
            self.expire(life)
            life.settled.add_to(self.folded)
            for of, piece in life.settled_pieces.items():
                piece.add_to(merged.setdefault(of, Piece()))
        for of, piece in merged.items():
            left = max(0, round(self.granted(of[2])) - self.drawn[of])
            piece.share(left).add_to(self.folded)

    def fate(self, event: dict[str, Any] | None) -> str:
        at = event and self.clock.at(event["ts"])
        if event is None or at is None:
            return "dead_lettered"
        if at < self.clock.horizon():
            return "late"
        if self.seen.get(event["event_id"], float("-inf")) >= self.clock.horizon() and event["event_id"] in self.seen:
            return "duplicate"
        fate = self.apply({**event, "at": at})
        if fate == "applied":
            self.meet(event["principal"], at)
            self.seen[event["event_id"]] = at
        return fate

    def apply(self, event: dict[str, Any]) -> str:
        self.hear(event["session_id"])
        if event["type"] == "session":
            return self.turn(event["session_id"], event["phase"], event["principal"])
        if event["type"] in TYPES:
            for key in lesson_uses(event):
                self.place(event["session_id"]).usage[key] += MICRO
            return "applied"
        if event["type"] in REPORTS:
            self.report(event)
            return "applied"
        if event["query_id"] is None:
            self.correct(event, hash_of(event["question"]), event["question"])
            return "applied"
        return self.answer(event)

    def answer(self, event: dict[str, Any]) -> str:
        query = (event["session_id"], event["query_id"])
        shown = self.shown.get(query)
        if event["type"] == "impression":
            if shown and shown["at"] >= self.clock.horizon():
                return "dead_lettered"
            self.shown[query] = {**event, "chosen": [], "words": {}, "opened": defaultdict(dict), "swept": set()}
            for result in event["results"]:
                self.examine(event, result)
            for one in self.early.pop(query, []):
                if one["at"] >= self.clock.horizon():
                    self.credit(one, self.shown[query])
        elif shown is None or shown["at"] < self.clock.horizon(windows=2):
            self.early[query].append(event)
        elif shown["at"] < self.clock.horizon():
            return "late"
        else:
            return self.credit(event, shown)
        return "applied"

    def hear(self, session: str) -> None:
        life = self.lifecycles.get(session)
        if life is None:
            return
        self.expire(life)
        if self.clock.older(life.heard, "session_remembered_s"):
            self.forgotten.append(self.lifecycles.pop(session))
        life.heard = self.clock.now

    def granted(self, allowance: str) -> float:
        return self.daily.get(allowance.partition(".")[0], 10**18)

    def expire(self, life: SessionLifecycle) -> None:
        if life.isolated and any(
            self.clock.older(life.heard, what) for what in (life.patience, "session_remembered_s")
        ):
            life.settle()
            life.end("expired")

    def turn(self, session: str, phase: str, principal: str) -> str:
        life = self.lifecycles.get(session)
        if life is not None and life.principal != principal:
            return "dead_lettered"
        if phase in {"start", "resume"}:
            life = self.lifecycles.setdefault(session, SessionLifecycle(self.clock.now, principal))
            life.lives += not life.isolated
            life.phase = "active"
        elif life is not None and phase == "unlearn":
            life.unlearn()
            life.end(phase)
        elif life is not None and life.isolated:
            if phase == "suspend":
                life.phase = "suspended"
                return "applied"
            if phase == "complete":
                life.settle()
            life.end(phase)
        return "applied"

    def place(self, session: str) -> Overlay:
        """Where a session's evidence goes: shared, its own, or nowhere."""
        life = self.lifecycles.get(session)
        if life is None:
            return self.folded
        if life.phase in MERGED:
            return life.settled
        return life.overlay if life.isolated else Overlay()

    def credit(self, event: dict[str, Any], impression: dict[str, Any]) -> str:
        self.meet(event["principal"], event["at"])
        if event["type"] == "correction":
            self.correct(event, impression["query_hash"], impression.get("question", ""))
            return "applied"
        named = [result for result in impression["results"] if result["content_hash"] == event.get("content_hash")]
        if event["type"] == "selection":
            self.choose(event, impression, named[0])
            return "applied"
        if event["type"] in USES:
            self.use(event, impression)
            return "applied"
        if event["type"] == "success":
            event = {**event, "signal": self.weights["success"] / self.weights["explicit"]}
        weight = abs(event["signal"]) * self.weights["explicit"]
        judged = named
        if not named:
            judged = [result for result in impression["results"] if result["included"]]
            if not judged:
                return "applied"
            weight = weight / len(judged)
        if weight > 0:
            self.add_all(event, impression, [(result, event["signal"] > 0, weight) for result in judged])
        return "applied"

    def use(self, event: dict[str, Any], impression: dict[str, Any]) -> None:
        weight, good = USES[event["type"]]
        match = event.get("match", 1.0)
        shown = {result["content_hash"]: result for result in impression["results"]}
        unseen = [name for name in dict.fromkeys(event["content_hashes"]) if name not in shown]
        named = [shown[name] for name in dict.fromkeys(event["content_hashes"]) if name in shown]
        self.add_all(event, impression, [(result, good, match * self.weights[weight]) for result in named])
        usage, who = self.place(event["session_id"]).usage, fingerprint(event["principal"])
        for result in named:
            usage[event["at"] // DAY_MS, result["content_hash"], event["type"], who, ""] += round(match * MICRO)
        for name in unseen:
            usage[event["at"] // DAY_MS, name, "retrieval", who, ""] += MICRO
            lost = round(self.weights["retrieved"] * MICRO)
            usage[event["at"] // DAY_MS, name, "negative", who, (impression.get("query_hash") or "")[:16]] += lost
        if event["type"] == "inclusion":
            for result in impression["results"]:
                result["included"] &= impression.get("named", False)
            impression["named"] = True
        for result in named if event["type"] != "reference" else ():
            result["included"] = event["type"] == "inclusion"

    def meet(self, principal: str, at: int) -> None:
        """Decide once from which day on a principal has a history."""
        if principal in self.since:
            return
        days = list(self.since.values())
        if len(days) < self.newcomers:
            self.since[principal] = 0
            return
        day = max([(self.clock.now or at) // DAY_MS + 1, *days])
        earlier = sum(each < day for each in days)
        self.since[principal] = day + (days.count(day) >= max(self.newcomers, earlier))

    def correct(self, event: dict[str, Any], hash_: str, text: str) -> None:
        verdict = "verdict:" + ("good" if event.get("right", True) else "bad")
        content = event.get("content_hash") or event["uri"]
        spoken(self.place(event["session_id"]), event, (verdict, content, event["at"], "-"), MICRO, (hash_, text))

    def report(self, event: dict[str, Any]) -> None:
        self.meet(event["principal"], event["at"])
        scope = (event.get("domain", "general"), event.get("model", "*"), event.get("agent", "*"), "*")
        of = (event["principal"], event["at"] // DAY_MS, ".".join([event["type"], *about_of(event)]))
        for place, beside in self.draw(event["session_id"], of, MICRO):
            for parameter, bin_, mass in REPORTS[event["type"]](event):
                place.counts[event["at"] // DAY_MS, *scope, beside + parameter, bin_] += mass
            who = (scope[0], "*", "*", "*", f"{beside}speaker", fingerprint(event["principal"]))
            place.counts[event["at"] // DAY_MS, *who] += MICRO

    def choose(self, event: dict[str, Any], impression: dict[str, Any], result: dict[str, Any]) -> None:
        mine, who = impression["opened"][event["principal"]], event["principal"]
        if who in impression["swept"] or result["content_hash"] in mine:
            return
        life = self.lifecycles.get(event["session_id"])
        living = (id(life), life and life.lives)
        if opens_all([*(at for at, *_ in mine.values()), event["at"]], len(impression["results"])):
            for _, lived, noted in impression["opened"].pop(who, {}).values():
                self.take_back(noted, impression, still_there=lived == living)
            impression["swept"].add(who)
            return
        mine[result["content_hash"]] = (event["at"], living, None)
        if result["rank"] in impression["chosen"]:
            return
        passed = [other for other in impression["results"] if other["rank"] < result["rank"]]
        passed = [other for other in passed if other["rank"] > max(impression["chosen"], default=0)]
        skipped = [(other, False, self.weights["skipped"] * self.inverse(other)) for other in passed]
        chosen = (result, True, self.weights["selected"] * self.inverse(result))
        beside = ""
        for place, beside in self.add_all(event, impression, [chosen, *skipped]):
            if not beside:
                self.examine(impression, result, place)
        impression["chosen"].append(result["rank"])
        mine[result["content_hash"]] = (event["at"], living, (event, [chosen, *skipped], beside))

    def take_back(self, noted: tuple[Any, ...] | None, impression: dict[str, Any], *, still_there: bool) -> None:
        """Have a choice never been made: what it left is subtracted, and others may choose what it chose."""
        if noted is None:
            return
        event, found, beside = noted
        impression["chosen"].remove(found[0][0]["rank"])
        if not still_there:
            return
        left = Overlay()
        for credit in found:
            self.add(event, impression, credit, left, beside)
        ask(left, event["at"] // DAY_MS, (impression["query_hash"], impression.get("question", "")))
        if not beside:
            self.examine(impression, found[0][0], left)
        said = sum(round(weight * MICRO) for _, _, weight in found)
        for place, _ in self.draw(event["session_id"], (event["principal"], event["at"] // DAY_MS, ""), -said):
            Overlay.add_to(left, place, -1)

    def inverse(self, result: dict[str, Any]) -> float:
        looked = result.get("examination", 1.0)
        return min(1.0 / looked, self.weights["inverse_clip"]) if looked else self.weights["inverse_clip"]

    def examine(self, impression: dict[str, Any], result: dict[str, Any], clicked: Overlay | None = None) -> None:
        others = [each["score"] for each in impression["results"] if each["rank"] != result["rank"]]
        if result["rank"] > 10 or not others:
            return
        lead = result["score"] - max(others)
        leaf = (impression["at"] // DAY_MS, result["domain"], impression["model"], impression["agent"], "*")
        bins, leads = 8, 8
        root = abs(lead) ** 0.5 * (1 if lead >= 0 else -1)
        cell = f"{result['rank']:02d}/{min(int(result['score'] * bins), bins - 1):02d}/{bins}"
        cell += f"/{min(int((1 + root) / 2 * leads), leads - 1):02d}/{leads}"
        shown = {"shown": MICRO, "score": round(result["score"] * MICRO), "lead": round((1 + lead) / 2 * MICRO)}
        place = self.place(impression["session_id"]) if clicked is None else clicked
        masses = shown if clicked is None else {"clicked": MICRO}
        for kind, mass in masses.items():
            place.counts[*leaf, "examination", f"{cell}.{kind}"] += mass

    def add_all(
        self, event: dict[str, Any], impression: dict[str, Any], found: Sequence[tuple[dict[str, Any], bool, float]]
    ) -> list[tuple[Overlay, str]]:
        """What one piece of feedback says, in full or beside, by what its principal has said that day (LRN-3)."""
        said = sum(round(weight * MICRO) for _, _, weight in found)
        of = event["principal"], event["at"] // DAY_MS, ""
        places = self.draw(event["session_id"], of, said) if found else []
        asked = impression["query_hash"], impression.get("question", "")
        word = last_word(event, impression, *found[0][:2]) if places and is_verdict(event) else 0
        for place, beside in places:
            for result, good, weight in found:
                self.add(event, impression, (result, good, weight), place, beside)
                if is_verdict(event):
                    held = f"verdict:{'good' if good else 'bad'}", result["content_hash"], word
                    share = result["score"] / max(each["score"] for each in impression["results"])
                    spoken(place, event, (*held, str(round(share * 100))), round(weight * MICRO), asked)
            if not is_verdict(event):
                ask(place, event["at"] // DAY_MS, asked)
        return places

    def draw(self, session: str, of: tuple[str, int, str], micro: int) -> list[tuple[Overlay, str]]:
        """Draw on an allowance; where what is said goes, and what stands before a parameter's name there."""
        life = self.lifecycles.get(session)
        principal, day, name = of
        of = (principal if self.since.get(principal, 0) <= day else "all who are new", day, name)
        if life is None:
            within = self.drawn[of] < self.granted(of[2])
            self.drawn[of] += micro
            return [(self.folded, "" if within else "surplus.")]
        if not life.isolated and life.phase not in MERGED:
            return [(Overlay(), "")]
        piece = (life.pieces if life.isolated else life.settled_pieces).setdefault(of, Piece())
        piece.micro += micro
        return [(piece, "")]

    def add(
        self,
        event: dict[str, Any],
        impression: dict[str, Any],
        credit: tuple[dict[str, Any], bool, float],
        place: Overlay,
        beside: str,
    ) -> None:
        result, good, weight = credit
        day, kind, bins = event["at"] // DAY_MS, "good" if good else "bad", 20
        leaf = (day, result["domain"], impression["model"], impression["agent"], "*")
        mass, counts = round(weight * MICRO), place.counts
        by, domain = weight * order_uncertainty(impression), (day, result["domain"], "*", "*", "*")
        told = [name for name in SIGNALS if name in result["signals"]]
        for side, values, product in sides_of(result, good, impression, self.weights["choice_slope"]):
            for name, value in values.items():
                agreed = round(by * (value if side == "good" else 1.0 - value) * MICRO)
                counts[*leaf, f"{beside}signal.{name}.{side}", "for"] += agreed
                counts[*leaf, f"{beside}signal.{name}.{side}", "against"] += round(by * MICRO) - agreed
            for at, name in enumerate(told):
                for other in (*told[at:], ""):
                    of_pair = product(name, other)
                    parameter = f"{beside}product.{name}{other and '.'}{other}.{side}"
                    counts[*domain, parameter, "for"] += round(by * MICRO * of_pair)
                    counts[*domain, parameter, "against"] += round(by * MICRO) - round(by * MICRO * of_pair)
        counts[*leaf, f"{beside}relevance", f"{min(int(result['score'] * bins), bins - 1):02d}/{bins}.{kind}"] += mass
        if not is_verdict(event):
            who, asked = fingerprint(event["principal"]), impression["query_hash"][:16]
            place.usage[day, result["content_hash"], "positive" if good else "negative", who, asked] += mass


def opens_all(times: Sequence[int], shown: int) -> bool:
    """Whether results of a page that were opened at these times say nothing about its order."""
    ordered = sorted(times)
    if len(ordered) > 1 and len(ordered) >= (shown if shown < 4 else shown - 1):
        return True
    return any(ordered[at + 3] - ordered[at] <= 2_000 for at in range(len(ordered) - 3))
