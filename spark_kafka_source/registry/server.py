"""One url of a schema registry: its connection, which threads share in turn, and redirections."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.net import Deadline, Peer, RequestTimeoutError
from spark_kafka_source.net.http_connection import HttpAnswer, HttpConnection, HttpRequest
from spark_kafka_source.registry.config import RegistryConfig
from spark_kafka_source.registry.errors import RegistryError
from spark_kafka_source.registry.refusals import CORE
from spark_kafka_source.registry.url import URL_OPTION, RegistryUrl

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
MOST_BYTES = 4 << 20
"""The most bytes of an answer. A registry keeps a schema in a Kafka record: 1 MiB by default."""
MOST_REDIRECTIONS = 5

_PEER = Peer(
    "registry",
    f"Use a name that it has in '{URL_OPTION}'",
    f"Give its port with TLS, or a url of http, in '{URL_OPTION}'",
)
_REDIRECTIONS = frozenset({301, 302, 307, 308})


@dataclass(frozen=True, slots=True)
class Question:
    """Request to a registry. `path` follows the path of the url; `what` names it in texts."""

    what: str
    path: str
    body: bytes | None = None
    is_of_id: bool = False
    """Whether it asks for a schema by its id."""
    of_core: bool = False
    """Whether the path is one of Apicurio's own API, which is beside the one in the url."""

    def target(self, base: str = "") -> str:
        """Return the whole path, if the path of the url is `base`."""
        if self.of_core:
            return base.partition("/apis/")[0] + CORE + self.path
        return base + self.path

    @property
    def method(self) -> str:
        """POST for a request with a body, else GET."""
        return "GET" if self.body is None else "POST"


class RegistryServer:
    """Connection to one url, with the credentials for it."""

    def __init__(self, url: RegistryUrl, config: RegistryConfig) -> None:
        self.url = url
        tls = config.tls if url.has_tls else None
        self._connection = HttpConnection(url.address, tls, _PEER, most_bytes=MOST_BYTES)
        self._turn = threading.Lock()
        self._is_to_close = False
        self._authorization = config.authorization(url)

    @property
    def where(self) -> str:
        """The address for texts, and the proxy's if one was used."""
        return self._connection.where

    def ask(self, question: Question, deadline: Deadline) -> HttpAnswer:
        """Return the answer, after redirections on the same server.

        Raises as `HttpConnection.ask` does, and `RegistryError` for an answer that is too long and
        for a redirection to another server.
        """
        if not self._turn.acquire(timeout=deadline.remaining_seconds()):
            text = f"{self.url.address}: other threads used the connection all the time"
            raise RequestTimeoutError(text)
        try:
            return self._follow(question, deadline)
        except ProtocolError as error:
            raise RegistryError(f"{error}, asked for {question.what}") from error
        finally:
            self._turn.release()
            if self._is_to_close:
                self.close()

    def close(self) -> None:
        """Close the connection. A thread that waits for an answer stops waiting.

        A later question opens the connection again.
        """
        self._is_to_close = True
        if self._turn.acquire(blocking=False):
            self._is_to_close = False
            self._connection.close()
            self._turn.release()
        else:
            self._connection.interrupt()

    def _follow(self, question: Question, deadline: Deadline) -> HttpAnswer:
        target = question.target(self.url.path)
        for _ in range(MOST_REDIRECTIONS + 1):
            request = HttpRequest(question.method, target, self._headers(), question.body)
            answer = self._connection.ask(request, deadline)
            if answer.status not in _REDIRECTIONS:
                return answer
            target = self._redirected(answer.headers.get("location", ""))
        text = f"{self.url.address}: more than {MOST_REDIRECTIONS} redirections. Check"
        raise RegistryError(f"{text} '{URL_OPTION}'")

    def _redirected(self, location: str) -> str:
        target = self.url.target_at_same_place(location)
        if target is None:
            raise RegistryError(
                f"{self.url.address}: it redirects to another server, which is not followed. "
                f"Give the final address in '{URL_OPTION}'"
            )
        return target

    def _headers(self) -> Mapping[str, str]:
        headers = {
            "Accept": f"{CONTENT_TYPE}, application/json",
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "spark-kafka-source",
        }
        if self._authorization:
            headers["Authorization"] = self._authorization.reveal()
        return headers
