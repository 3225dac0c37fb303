"""A guard for routes of FastAPI."""
from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, HTTPException, Request, Response

from .client import Client
from .guard import Caller, Denied, Guard, check_of


class _Refused(HTTPException):
    """Without the handler below, FastAPI's own still answers with this status."""

    def __init__(self, denied: Denied) -> None:
        super().__init__(denied.status, detail=denied.code, headers=denied.headers)
        self.body = denied.body


async def _answer(_: Request, err: Exception) -> Response:
    assert isinstance(err, _Refused)
    return Response(err.body, err.status_code, err.headers)


class FastApiGuard:
    """`caller: Annotated[Caller, Depends(guard("viewer", "invoice:{id}"))]` lets only callers in who may."""

    def __init__(self, app: FastAPI, client: Client, *, resource: str) -> None:
        self._guard = Guard(client, resource=resource)
        app.add_exception_handler(_Refused, _answer)

    def __call__(self, *check: str) -> Callable[[Request], Awaitable[Caller]]:
        check_of(check)

        async def caller(request: Request) -> Caller:
            try:
                return await self._guard.admit_async(
                    request.headers.getlist("authorization"), check, request.path_params
                )
            except Denied as denied:
                raise _Refused(denied) from denied

        return caller
