"""Questions how code works, in people's words, each with the symbol that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TREES = Path(__file__).parent / "code_trees"

QUESTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "go_auth": (
        ("how does the auth validation work?", "User.Validate"),
        ("how is a wrong token told from a right one?", "User.Validate"),
        ("where is it decided that a token has expired?", "expired"),
        ("what happens when a request comes without a valid user?", "Require"),
        ("how does a handler get at the user who sent the request?", "FromContext"),
        ("how are new tokens made?", "NewToken"),
        ("where is it decided whether somebody has failed too often?", "Throttle.Blocked"),
        ("what happens when somebody pastes the word Bearer in front of the token?", "normalize"),
        ("where is it decided whether somebody has a role?", "User.Can"),
        ("how is a failed attempt remembered?", "Throttle.Fail"),
    ),
    "python_jobs": (
        ("what happens when a job fails?", "Worker._failed"),
        ("how does the wait before a retry grow?", "Backoff.delay"),
        ("where is it decided which job comes next?", "MemoryQueue.take"),
        ("how does a job that shall run later become due?", "MemoryQueue._promote"),
        ("how does a function become responsible for jobs of a name?", "Worker.handles"),
        ("how are jobs that come again every hour put into the queue?", "enqueue_due"),
        ("what happens when an interval has no unit?", "parse_interval"),
        ("what happens when a worker is told to stop?", "Worker.stop"),
        ("what does the worker do while nothing is due?", "Worker.run"),
        ("where does a new job go when it is put into the queue?", "MemoryQueue.push"),
    ),
    "typescript_cart": (
        ("how is the total of the cart computed?", "Cart.total"),
        ("what happens when a customer wants more than there is in stock?", "Cart.add"),
        ("how does a discount lower the price?", "applyDiscount"),
        ("where is it decided whether shipping is free?", "shippingFor"),
        ("how does the cart come back after a reload?", "Cart.restore"),
        ("what happens when the kept draft is too old?", "BrowserDrafts.load"),
        ("how is a code that a customer typed checked?", "parseCode"),
        ("where is it decided that a discount is no longer valid?", "isExpired"),
        ("how does something leave the cart?", "Cart.remove"),
        ("how is the cart written to the browser?", "BrowserDrafts.save"),
    ),
    "java_billing": (
        ("how does the price fall with the quantity?", "TieredPrice.priceOf"),
        ("where is it decided which reminder a customer gets?", "Dunning.stepFor"),
        ("what happens when an invoice is to be sent a reminder on a Sunday?", "Dunning.send"),
        ("how are amounts rounded to cents?", "Rounding.toCents"),
        ("what happens when somebody pays too much?", "Invoice.pay"),
        ("how is the total of an invoice with tax computed?", "Invoice.total"),
        ("where is it decided that an invoice is overdue?", "Invoice.isOverdue"),
        ("what happens when the same usage event is delivered twice?", "UsageMeter.record"),
        ("how does the counter of a customer begin anew at the end of the month?", "UsageMeter.closeMonth"),
        ("how is another amount put on an invoice?", "Invoice.add"),
    ),
    "rust_cache": (
        ("how does the cache make room for a new value?", "Cache.make_room"),
        ("what happens when an entry is too old?", "Cache.get"),
        ("where is it decided which entry goes first?", "LeastRecent.victim"),
        ("what happens when a value is larger than the whole cache?", "Cache.put"),
        ("how does a save survive a crash?", "save"),
        ("what happens when two threads ask for the same value at once?", "Flights.once"),
        ("how is a cache file read back after a restart?", "load"),
        ("how does the cache tell that an entry is stale?", "Cache.is_stale"),
        ("how is it noted that an entry was used just now?", "LeastRecent.touched"),
        ("how is an entry taken out and its bytes given back?", "Cache.remove"),
    ),
    "cpp_route": (
        ("how does the search for the shortest way work?", "Planner::shortest"),
        ("how is it estimated how far it still is to the goal?", "Planner::remaining"),
        ("how is the path put together once the goal is reached?", "Planner::unwind"),
        ("how does the hour of the day change how long a road takes?", "TrafficCosts::seconds"),
        ("what happens when drivers report a jam?", "TrafficCosts::report_jam"),
        ("how is the nearest road to a position found?", "snap_to_road"),
        ("what happens to points of a track while one stands still?", "thin_track"),
        ("what happens when a road is closed?", "Planner::shortest"),
        ("where is it decided which node is looked at next?", "Planner::shortest"),
        ("what happens when all roads are too far away from the position?", "snap_to_road"),
    ),
    "go_ledger": (
        ("how does a transfer between two accounts work?", "Book.Transfer"),
        ("where is it decided whether an account has enough money?", "Book.check"),
        ("how does recovery after a crash work?", "Book.Recover"),
        ("what happens when the last line of the journal is torn?", "FileJournal.Each"),
        ("how is an entry written to the file?", "FileJournal.Append"),
        ("how is interest computed?", "Accrue"),
        ("how are all balances exported?", "Book.WriteCSV"),
        ("what happens when a transfer is sent twice?", "Book.Transfer"),
        ("how are cents written as a number?", "cents"),
        ("how do the balances change once a transfer is accepted?", "Book.apply"),
    ),
}
"""By tree."""
