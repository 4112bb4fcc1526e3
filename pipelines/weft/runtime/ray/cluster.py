"""The one module that starts or joins Ray: a laptop, a cluster and a submitted job differ by configuration alone."""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import ray
from ray._private.grpc_utils import init_grpc_channel
from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR
from ray._private.services import canonicalize_bootstrap_address
from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]
from ray.exceptions import RayError

from weft.domain.errors import WeftError
from weft.runtime.settings import ClusterSettings
from weft.runtime.storage.errors import advice_on

log = logging.getLogger(__name__)

_CLIENT = "ray://"
_LOCAL = "local"
_CHECK_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_ALIVE = {grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
_SILENT = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}
_TOKEN_FILE = Path("~/.ray/auth_token")
_TOKEN_LOG = logging.getLogger("ray._private.authentication.authentication_token_setup")
_HANDLED = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_REASON_CHARACTERS = 600  # kept of what a worker says of its failure
_SIGACTION_BYTES = 512  # more than any platform's struct sigaction (152 on 64-bit Linux)


def connect(settings: ClusterSettings) -> None:
    """Join the cluster that RAY_ADDRESS or `settings.address` names, or start a local one; once per process."""
    if ray.is_initialized():
        return
    named = os.environ.get("RAY_ADDRESS")
    address, source = (named, "RAY_ADDRESS") if named else (settings.address, "cluster.address")
    # Ray's core warns of its own actors' arguments at every pipeline; what fails reaches us as an exception. That this
    # is set it says once, in a line of its own on stderr, which no setting of its keeps away: better than one a pool.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # SIGTERM while it starts would print a native stack; faults of workers are told by Python's own handler.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING, "configure_logging": False}
    with preserving_signal_handlers():
        try:
            if address != _LOCAL:
                require_head(address, source, within_s=settings.join_timeout_s)
            _initialise(address, settings, common)
        except UnicodeEncodeError as error:  # it tells its head the command line
            raise WeftError(
                "expected arguments in UTF-8, all that Ray takes, found others: name such a path by a link to it"
            ) from error
        except (WeftError, OSError):
            raise
        except SystemExit as end:
            if end.code == signal.SIGTERM:  # Ray's own handler, while it starts
                raise KeyboardInterrupt from end
            raise
        except Exception as error:  # Ray raises no less general one where it does not start in time
            doing = "start" if address == _LOCAL else f"be joined at {address}, which {source} names"
            raise WeftError(f"expected Ray to {doing}, found: {end_of(error)}: {_advice_on(error)}") from error
    _make_private(_TOKEN_FILE.expanduser())


def starts_its_own(settings: ClusterSettings) -> bool:
    """Whether `connect` would start a cluster, and is not done with that."""
    return settings.address == _LOCAL and not os.environ.get("RAY_ADDRESS") and not ray.is_initialized()


def _initialise(address: str, settings: ClusterSettings, common: Mapping[str, Any]) -> None:
    if address == _LOCAL:
        # A cluster that Ray starts for this process turns token authentication on and makes the token itself.
        local: dict[str, Any] = {"num_cpus": settings.cpus or None, "object_store_memory": settings.object_store_bytes}
        with _at_level(logging.ERROR, _TOKEN_LOG):
            ray.init(address=_LOCAL, include_dashboard=False, **local, **common)
    else:
        _take_token(address)
        ray.init(address=address, runtime_env=_submitted_sources(), **common)


def _submitted_sources() -> dict[str, Any] | None:
    """For the workers of a submitted job: the sources that it came with, before a weft that is installed there.

    Workers of a cluster that runs already have the environment that it was started in, not this process's. Ray merges
    variables by name, and refuses one that the job states itself.
    """
    stated = json.loads(os.environ.get(RAY_JOB_CONFIG_JSON_ENV_VAR, "null"))
    sources = os.environ.get("PYTHONPATH")
    if stated is None or sources is None or "PYTHONPATH" in (stated.get("runtime_env") or {}).get("env_vars", {}):
        return None
    return {"env_vars": {"PYTHONPATH": sources}}


def require_head(address: str, source: str, *, within_s: float) -> None:
    """Check that a Ray head answers at an address within some seconds: Ray itself waits minutes, and then exits."""
    expected = f"expected a Ray cluster at {address}, which {source} names"
    client = address.startswith(_CLIENT)
    if not client and "://" in address:
        raise WeftError(f"{expected}, found the URL of something else: give the host:port of its head, or 'auto'")
    try:
        head = address.removeprefix(_CLIENT) if client else canonicalize_bootstrap_address(address)
    except (OSError, ValueError) as error:
        raise WeftError(f"{expected}, found: {error}: start one (ray start --head), or correct {source}") from error
    status = _status_of(head, within_s)
    if status not in (_ALIVE | {grpc.StatusCode.UNIMPLEMENTED} if client else _ALIVE):
        what = f"no answer within {within_s:g} s" if status in _SILENT else f"something else there ({status.value[1]})"
        raise WeftError(f"{expected}, found {what}: start it, or correct {source}; 'local' needs none")


def _status_of(head: str, within_s: float) -> grpc.StatusCode:
    with init_grpc_channel(head, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(_CHECK_ALIVE)(b"", timeout=within_s, wait_for_ready=True)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def _advice_on(error: BaseException) -> str:
    if any(word in str(error).lower() for word in ("timed out", "timeout", "did not start")):
        return "run again when the machine is less busy"
    if "memory" in str(error).lower():
        return "give the machine more memory, or run fewer workers side by side (ingest.pools)"
    return advice_on(error, otherwise="look at Ray's logs, in /tmp/ray/session_latest/logs of its head")


def _take_token(address: str) -> None:
    """Show the cluster this user's token: Ray, which reads it when it is imported, has to read it again."""
    if "RAY_AUTH_MODE" in os.environ:
        return
    if AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        os.environ["RAY_AUTH_MODE"] = "token"
        Config.initialize("")
    else:
        log.warning(
            "joining Ray at %s without a token: whoever reaches it may run anything there; `ray get-auth-token "
            "--generate` makes one, RAY_AUTH_MODE=disabled says that none is wanted",
            address,
        )


@contextlib.contextmanager
def _at_level(level: int, log: logging.Logger) -> Iterator[None]:
    """Within a block, let a log hold messages of a level and above."""
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)


@contextlib.contextmanager
def preserving_signal_handlers() -> Iterator[None]:
    """Put back, at the end of a block, the handlers of faults, and a program's own of SIGTERM, that it began with.

    Ray replaces them when it starts. A Java machine in the same process lives by its handler of SIGSEGV, which it
    raises on purpose, and a job's own handler of SIGTERM would never be asked.
    """
    libc = ctypes.CDLL(None)
    own = signal.getsignal(signal.SIGTERM)
    actions = {number: ctypes.create_string_buffer(_SIGACTION_BYTES) for number in _HANDLED}
    for number, action in actions.items():
        libc.sigaction(int(number), None, action)
    try:
        yield
    finally:
        for number, action in actions.items():
            libc.sigaction(int(number), action, None)
        if callable(own) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, own)


def disconnect() -> None:
    """Leave the cluster; a local one ends with it."""
    ray.shutdown()


def start_actor(worker: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Start a plain class as an actor: `options` are Ray's own (`name`, `num_cpus`, `max_restarts` …)."""
    return ray.remote(worker).options(**options).remote(*arguments)


def _make_private(token: Path) -> None:
    # Ray creates the file readable by everyone; whoever reads it controls the cluster.
    with contextlib.suppress(FileNotFoundError):
        token.chmod(0o600)


def remote_cause(error: BaseException, passed: type[Exception] | tuple[type[Exception], ...]) -> BaseException:
    """What was raised inside a worker, out of the wrappers that Ray puts around it."""
    inner: BaseException | None = error
    while inner is not None:
        # Ray makes its wrapper an instance of what it wraps, too.
        if isinstance(inner, passed) and not isinstance(inner, RayError):
            return inner
        inner = getattr(inner, "cause", None) or inner.__cause__
    return WeftError(f"expected every worker to finish, found that one failed: {end_of(error)}: {_advice_on(error)}")


def end_of(error: BaseException) -> str:
    """The end of what an error says: that of a remote traceback names the cause."""
    return " ".join(str(error).split())[-_REASON_CHARACTERS:]
