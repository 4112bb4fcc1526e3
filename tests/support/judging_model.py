"""A model behind an endpoint that grades passages, as OpenAI-style chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextmanager
def a_model(*answers: str) -> Iterator[tuple[str, list[dict]]]:
    """An endpoint that gives these answers in turn, and what it was asked."""
    seen: list[dict] = []
    rest = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(
                json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                | {"authorization": self.headers["Authorization"]}
            )
            said = rest.pop(0) if rest else "nothing"
            body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
