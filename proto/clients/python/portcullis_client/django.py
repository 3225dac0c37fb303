"""A guard for views of Django, sync and async."""
from __future__ import annotations

import functools
from asyncio import iscoroutinefunction
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from .client import Client
from .guard import Caller, Denied, Guard, check_of

View = Callable[..., Any]


class DjangoGuard:
    """`@guard("viewer", "invoice:{id}")` lets only callers into a view who may; `caller_of(request)` says who it is."""

    def __init__(self, client: Client, *, resource: str) -> None:
        self._guard = Guard(client, resource=resource)

    def __call__(self, *check: str) -> Callable[[View], View]:
        check_of(check)

        def guarded(view: View) -> View:
            @functools.wraps(view)
            def let_in(request: HttpRequest, *args: Any, **parameters: Any) -> Any:
                try:
                    request._portcullis_caller = self._guard.admit(_fields(request), check, parameters)
                except Denied as denied:
                    return _answer(denied)
                return view(request, *args, **parameters)

            @functools.wraps(view)
            async def let_in_async(request: HttpRequest, *args: Any, **parameters: Any) -> Any:
                try:
                    request._portcullis_caller = await self._guard.admit_async(_fields(request), check, parameters)
                except Denied as denied:
                    return _answer(denied)
                return await view(request, *args, **parameters)

            return let_in_async if iscoroutinefunction(view) else let_in

        return guarded


def caller_of(request: HttpRequest) -> Caller:
    """Raises TypeError for a request that no guard allowed."""
    caller = getattr(request, "_portcullis_caller", None)
    if not isinstance(caller, Caller):
        raise TypeError("no guard allowed this request")
    return caller


def _fields(request: HttpRequest) -> list[str]:
    """Servers join repeated fields by commas, which no token holds."""
    return [request.META["HTTP_AUTHORIZATION"]] if "HTTP_AUTHORIZATION" in request.META else []


def _answer(denied: Denied) -> HttpResponse:
    return HttpResponse(denied.body, status=denied.status, headers=denied.headers)
