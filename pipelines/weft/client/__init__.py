"""A typed client of a running service (OPS-5b): it imports `httpx`, `msgspec` and the values of `weft.domain` alone."""

from weft.client.http import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
