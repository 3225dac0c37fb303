"""Asks a PDP over one `DecideStream`: the questions of all threads and event loops, each with its own answer."""
from __future__ import annotations

import asyncio
import itertools
import json
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format

from . import decision_pb2 as pb

_PATH = "/portcullis.v1.DecisionService/DecideStream"
_CONNECT_S = 2.0
_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.05, 1.0
_QUESTIONS_PER_MESSAGE_MAX = 200
# After so many questions in a row without an answer in time, the stream is given up.
_SILENT_MAX = 5
_OPTIONS = [
    ("grpc.keepalive_time_ms", 3_000),
    ("grpc.keepalive_timeout_ms", 1_500),
    ("grpc.http2.max_pings_without_data", 0),
    # A PDP is inside. An egress proxy would read its answers, or refuse to reach it.
    ("grpc.enable_http_proxy", 0),
    # Else all channels of the process to an address share one connection, also one with a silent peer.
    ("grpc.use_local_subchannel_pool", 1),
]


class DecisionError(Exception):
    """Nothing was decided: treat it as a denial, or answer 503. `code`: `pdp_unavailable`, `overloaded`, or that of the PDP."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Question:
    """`permissions`: pairs of relation and resource. `context`: values of parameters of conditions. `request_id` and
    `client_address`: of your request and of its sender, for the decision log."""

    permissions: Sequence[tuple[str, str]] = ()
    entitlements: Sequence[str] = ()
    context: Mapping[str, Any] | None = None
    request_id: str = ""
    client_address: str = ""


@dataclass(frozen=True)
class Permission:
    """`error`: why it could not be decided; `allowed` is then false."""

    relation: str
    resource: str
    allowed: bool
    error: str | None


@dataclass(frozen=True)
class Entitlement:
    value: Mapping[str, Any]
    version: int


@dataclass(frozen=True)
class Decision:
    """With a token that is not active, nothing is allowed, and `subject` is None."""

    active: bool
    subject: tuple[str, str] | None
    organization: str | None
    permissions: tuple[Permission, ...]
    entitlements: Mapping[str, Entitlement | None]


@dataclass
class _Asked:
    token: str
    message: pb.StreamQuestion
    answer: Future[pb.DecideResponse]
    sent: int = 0
    resent: bool = False


class _Handles:
    """What a stream calls the tokens that it has sent. No handle is used twice, so none ever names another token."""

    _TOKENS_MAX = 1_000  # A PDP keeps more.

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._known: dict[str, int] = {}

    def of(self, token: str, message: pb.DecideStreamRequest) -> int:
        """Tells the PDP the token with this message if it does not know it."""
        known = self._known.get(token)
        if known is not None:
            return known
        if len(self._known) >= self._TOKENS_MAX:
            self._known.clear()
        handle = self._known[token] = next(self._numbers)
        message.tokens.add(handle=handle, token=token)
        return handle

    def forget(self, token: str) -> None:
        self._known.pop(token, None)


class Client:
    """Connects at the first question, so that it may be made before a server forks, and again when a connection is lost.

    `address`: `host:port`, or several, which are tried in turn. `tls`: credentials of gRPC; None is plain text, which a PDP
    accepts on loopback only. `token`: returns the access token of this process, with the scope `decisions:ask`; called for
    each new stream. `deadline`: seconds that an answer may take, with all attempts.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        tls: grpc.ChannelCredentials | None,
        token: Callable[[], str] | None = None,
        deadline: float = 0.5,
        open_max: int = 10_000,
    ) -> None:
        self._addresses = [address] if isinstance(address, str) else list(address)
        if not self._addresses or not deadline > 0:
            raise TypeError("address is not host:port or a list of those, or deadline is not a positive number of seconds")
        self._tls, self._token, self._deadline, self._open_max = tls, token, deadline, open_max
        self._lock = threading.Lock()
        self._open: dict[int, _Asked] = {}
        self._ids = itertools.cycle(range(1, 2**32))
        self._thread: threading.Thread | None = None
        self._outbox: queue.SimpleQueue[int | None] | None = None
        self._call: grpc.Call | None = None
        self._silent = 0
        self._problem = "not connected yet"
        self._closed = threading.Event()

    def decide(self, token: str, question: Question) -> Decision:
        """Raises DecisionError."""
        at, asked = self._ask(token, question)
        try:
            return _read(asked, asked.answer.result(self._deadline))
        except FutureTimeout:
            raise self._late() from None
        finally:
            self._forget(at)

    async def decide_async(self, token: str, question: Question) -> Decision:
        """`decide` for event loops."""
        at, asked = self._ask(token, question)
        try:
            return _read(asked, await asyncio.wait_for(asyncio.wrap_future(asked.answer), self._deadline))
        except asyncio.TimeoutError:
            raise self._late() from None
        finally:
            self._forget(at)

    def can(self, token: str, relation: str, resource: str) -> bool:
        """One check. False also for a token that is not active. Raises DecisionError."""
        return _allowed(self.decide(token, Question([(relation, resource)])))

    async def can_async(self, token: str, relation: str, resource: str) -> bool:
        """`can` for event loops."""
        return _allowed(await self.decide_async(token, Question([(relation, resource)])))

    def close(self) -> None:
        """Ends the connection. Questions that wait are refused."""
        self._closed.set()
        with self._lock:
            waiting, call = list(self._open.values()), self._call
        if call is not None:
            call.cancel()
        for question in waiting:
            _fail(question, "pdp_unavailable", "the client was closed")

    def _ask(self, token: str, question: Question) -> tuple[int, _Asked]:
        if not isinstance(token, str) or token == "":
            raise TypeError("the token is not a text")
        answer: Future[pb.DecideResponse] = Future()
        answer.set_running_or_notify_cancel()  # So that nobody can cancel it while it is answered.
        with self._lock:
            if self._closed.is_set():
                raise DecisionError("pdp_unavailable", "the client was closed")
            if len(self._open) >= self._open_max:
                raise DecisionError("overloaded", f"{self._open_max} questions wait for answers already")
            at = next(self._ids)
            message = pb.StreamQuestion(
                id=at,
                permissions=[pb.PermissionCheck(relation=name, resource=of) for name, of in question.permissions],
                entitlements=question.entitlements,
                context="" if question.context is None else json.dumps(question.context),
                request_id=question.request_id,
                client_address=question.client_address,
            )
            asked = self._open[at] = _Asked(token, message, answer)
            if self._outbox is not None:
                self._outbox.put(at)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="portcullis", daemon=True)
                self._thread.start()
        return at, asked

    def _forget(self, at: int) -> None:
        with self._lock:
            self._open.pop(at, None)

    def _late(self) -> DecisionError:
        with self._lock:
            self._silent += 1
            if self._silent >= _SILENT_MAX and self._call is not None:
                self._call.cancel()
            return DecisionError("pdp_unavailable", f"no PDP answered in time; {self._problem}")

    def _run(self) -> None:
        failures = 0
        for address in itertools.cycle(self._addresses):
            try:
                if self._serve(address):
                    failures = 0
            except Exception as err:  # Whatever it is, the next attempt may work.
                self._lost(err)
            failures += 1
            longest = min(_BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2 ** min(failures, 10))
            if self._closed.wait(longest * random.uniform(0.5, 1)):
                return

    def _serve(self, address: str) -> bool:
        """One connection from its beginning to its end. Whether it answered anything. Raises what ended it."""
        tls, answered = self._tls, False
        metadata = [] if self._token is None else [("authorization", f"Bearer {self._token()}")]
        channel = (
            grpc.insecure_channel(address, _OPTIONS) if tls is None else grpc.secure_channel(address, tls, _OPTIONS)
        )
        with channel:
            try:
                grpc.channel_ready_future(channel).result(_CONNECT_S)
            except grpc.FutureTimeoutError:
                raise ConnectionError(f"{address} did not connect in {_CONNECT_S:.0f} s") from None
            outbox: queue.SimpleQueue[int | None] = queue.SimpleQueue()
            handles = _Handles()
            begin = channel.stream_stream(
                _PATH, pb.DecideStreamRequest.SerializeToString, pb.DecideStreamResponse.FromString
            )
            call = begin(self._messages(outbox, handles), metadata=metadata)
            with self._lock:
                self._outbox, self._call, self._silent, self._problem = outbox, call, 0, f"connected to {address}"
                for at in self._open:
                    outbox.put(at)
            try:
                for message in call:
                    answered = True
                    for answer in message.answers:
                        self._receive(answer, outbox, handles)
                self._lost(None)
            finally:
                outbox.put(None)
                call.cancel()
        return answered

    def _messages(
        self, outbox: queue.SimpleQueue[int | None], handles: _Handles
    ) -> Iterator[pb.DecideStreamRequest]:
        """Whatever waits travels as one message."""
        while (at := outbox.get()) is not None:
            message = pb.DecideStreamRequest()
            while at is not None:
                with self._lock:
                    question = self._open.get(at)
                if question is not None:
                    question.sent += 1
                    message.questions.add().CopyFrom(question.message)
                    message.questions[-1].handle = handles.of(question.token, message)
                if len(message.questions) == _QUESTIONS_PER_MESSAGE_MAX or outbox.empty():
                    break
                at = outbox.get()
            if message.questions:
                yield message
            if at is None:
                return

    def _receive(self, answer: pb.StreamAnswer, outbox: queue.SimpleQueue[int | None], handles: _Handles) -> None:
        with self._lock:
            self._silent = 0
            question = self._open.get(answer.id)
            if question is None:
                return
            if answer.error == "handle_unknown" and not question.resent:
                question.resent = True
                handles.forget(question.token)
                outbox.put(answer.id)
                return
            del self._open[answer.id]
        if answer.HasField("decision"):
            question.answer.set_result(answer.decision)
        else:
            _fail(question, answer.error or "pdp_unavailable", f"the PDP answered {answer.error}")

    def _lost(self, err: Exception | None) -> None:
        """A question only reads, so it is asked once more. At an end in order (no `err`) the PDP has not taken it."""
        reason = "the PDP ended the stream" if err is None else getattr(err, "details", lambda: str(err))()
        overloaded = isinstance(err, grpc.Call) and err.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        with self._lock:
            self._outbox, self._call, self._problem = None, None, f"the last connection ended: {reason}"
            if err is None:
                for question in self._open.values():
                    question.sent = 0
            given_up = [at for at, question in self._open.items() if question.sent > (0 if overloaded else 1)]
            failed = [self._open.pop(at) for at in given_up]
        for question in failed:
            _fail(question, "overloaded" if overloaded else "pdp_unavailable", self._problem)


def _fail(question: _Asked, code: str, message: str) -> None:
    if not question.answer.done():
        question.answer.set_exception(DecisionError(code, message))


def _allowed(decision: Decision) -> bool:
    permission = decision.permissions[0]
    if permission.error is not None:
        raise DecisionError(permission.error, f"the PDP could not decide {permission.relation} of {permission.resource}")
    return permission.allowed


def _read(asked: _Asked, found: pb.DecideResponse) -> Decision:
    checks, keys = asked.message.permissions, asked.message.entitlements
    if not found.active:
        denied = tuple(Permission(check.relation, check.resource, False, None) for check in checks)
        return Decision(False, None, None, denied, {key: None for key in keys})
    results = found.permissions
    if [(check.relation, check.resource) for check in checks] != [(item.relation, item.resource) for item in results]:
        raise DecisionError("pdp_unavailable", "the answer of the PDP does not match the question")
    return Decision(
        active=True,
        subject=(found.subject.type, found.subject.id),
        organization=found.organization or None,
        permissions=tuple(
            Permission(item.relation, item.resource, item.allowed and item.error == "", item.error or None)
            for item in results
        ),
        entitlements={key: _entitlement(found, key) for key in keys},
    )


def _entitlement(found: pb.DecideResponse, key: str) -> Entitlement | None:
    if key not in found.entitlements:
        raise DecisionError("pdp_unavailable", "the answer of the PDP does not match the question")
    result = found.entitlements[key]
    return Entitlement(json_format.MessageToDict(result.value), result.version) if result.HasField("value") else None
