"""Asks the PDP whether a request may pass: what the guard of each framework calls. What is unclear is refused."""
from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .client import Client, Decision, DecisionError, Question

# RFC 9110 section 11.2: a token68, after one or more spaces.
_CREDENTIALS = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +([A-Za-z0-9._~+/-]+=*))?")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}([^{]?)")
_FAILURE = (503, "No decision was possible")
_ANSWERS: Mapping[str, tuple[int, str]] = {
    "request_invalid": (400, "The request is malformed"),
    "token_missing": (401, "An access token is required"),
    "token_invalid": (401, "The access token is not valid"),
    "permission_denied": (403, "The subject does not have this permission"),
}


@dataclass(frozen=True)
class Caller:
    """The sender of a request that was allowed. `claims`: those of the access token."""

    subject: tuple[str, str]
    organization: str | None
    claims: Mapping[str, Any]


class Denied(Exception):
    """Why a request is denied, and the answer to it: problem details (RFC 9457)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
        self.status, title = _ANSWERS.get(code, _FAILURE)
        self.headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
        if self.status == 401:
            self.headers["www-authenticate"] = "Bearer" if code == "token_missing" else 'Bearer error="invalid_token"'
        if self.status == 503:
            self.headers["retry-after"] = "1"
        problem = {"type": f"urn:portcullis:problem:{code}", "title": title, "code": code, "status": self.status}
        self.body = json.dumps(problem).encode()


class Guard:
    """`resource`: what tokens must name as their audience (RFC 8707). The PDP verifies them, and knows their issuers."""

    def __init__(self, client: Client, *, resource: str) -> None:
        self._client, self._resource = client, resource

    def admit(self, authorization: Sequence[str], check: Sequence[str], parameters: Mapping[str, Any]) -> Caller:
        """`check`: a relation and a resource with `{name}` for path parameters, or nothing: any valid token will do.
        Raises Denied."""
        token, claims, question = self._read(authorization, check, parameters)
        try:
            return _conclude(self._client.decide(token, question), claims)
        except DecisionError as err:
            raise Denied(err.code) from err

    async def admit_async(
        self, authorization: Sequence[str], check: Sequence[str], parameters: Mapping[str, Any]
    ) -> Caller:
        token, claims, question = self._read(authorization, check, parameters)
        try:
            return _conclude(await self._client.decide_async(token, question), claims)
        except DecisionError as err:
            raise Denied(err.code) from err

    def _read(
        self, authorization: Sequence[str], check: Sequence[str], parameters: Mapping[str, Any]
    ) -> tuple[str, Mapping[str, Any], Question]:
        token = _bearer(authorization)
        claims = _claims(token)
        audience = claims.get("aud")
        if self._resource not in (audience if isinstance(audience, list) else [audience]):
            raise Denied("token_invalid")
        # Without the proof of its key, a stolen token would be good.
        if "cnf" in claims:
            raise Denied("token_invalid")
        permissions = [(check[0], fill(check[1], parameters))] if check else []
        return token, claims, Question(permissions)


def check_of(check: Sequence[str]) -> Sequence[str]:
    """Raises TypeError for arguments of a guard that cannot be."""
    if len(check) not in (0, 2) or (check and "}{" in check[1]):
        raise TypeError("a guard takes a relation and a resource whose placeholders do not touch, or nothing")
    return check


def _conclude(decision: Decision, claims: Mapping[str, Any]) -> Caller:
    if not decision.active or decision.subject is None:
        raise Denied("token_invalid")
    for permission in decision.permissions:
        if permission.error is not None:
            raise Denied(permission.error)
        if permission.allowed is not True:
            raise Denied("permission_denied")
    return Caller(decision.subject, decision.organization, claims)


def _bearer(fields: Sequence[str]) -> str:
    if not fields:
        raise Denied("token_missing")
    if len(fields) > 1:
        raise Denied("request_invalid")
    match = _CREDENTIALS.match(fields[0])
    scheme = match.group(1).lower() if match else ""
    if match is None or scheme not in ("bearer", "dpop"):
        raise Denied("token_missing")
    if re.fullmatch(r"\S+ *", fields[0]):
        raise Denied("request_invalid")
    # A proof is verified by the sidecar and by the guards of Node.js, not here.
    if scheme == "dpop" or match.group(2) is None or match.end() != len(fields[0]):
        raise Denied("token_invalid")
    return match.group(2)


def _claims(token: str) -> Mapping[str, Any]:
    """Not verified here: they count once the PDP has said that this very token is active."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, IndexError, RecursionError):
        claims = None
    if len(parts) != 3 or not isinstance(claims, dict):
        raise Denied("token_invalid")
    return claims


def fill(template: str, parameters: Mapping[str, Any]) -> str:
    """Raises Denied for values that make no resource, TypeError for a parameter that the route lacks."""

    def value_of(match: re.Match[str]) -> str:
        name, end = match.groups()
        value = parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, (str, int, uuid.UUID)):
            raise TypeError(f"the route has no single path parameter {{{name}}}")
        # Otherwise two different pairs of values could give the same id for `{a}/{b}`.
        if end != "" and end in str(value):
            raise Denied("request_invalid")
        return f"{value}{end}"

    return _PLACEHOLDER.sub(value_of, template)
