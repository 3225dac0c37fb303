from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Subject(_message.Message):
    __slots__ = ("type", "id", "relation")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    type: str
    id: str
    relation: str
    def __init__(self, type: _Optional[str] = ..., id: _Optional[str] = ..., relation: _Optional[str] = ...) -> None: ...

class ContextualTuple(_message.Message):
    __slots__ = ("object", "relation", "subject", "condition", "condition_context")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    object: str
    relation: str
    subject: str
    condition: str
    condition_context: str
    def __init__(self, object: _Optional[str] = ..., relation: _Optional[str] = ..., subject: _Optional[str] = ..., condition: _Optional[str] = ..., condition_context: _Optional[str] = ...) -> None: ...

class PermissionCheck(_message.Message):
    __slots__ = ("relation", "resource", "any")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ANY_FIELD_NUMBER: _ClassVar[int]
    relation: str
    resource: str
    any: bool
    def __init__(self, relation: _Optional[str] = ..., resource: _Optional[str] = ..., any: bool = ...) -> None: ...

class DecideRequest(_message.Message):
    __slots__ = ("token", "permissions", "entitlements", "subject", "explain", "contextual_tuples", "context", "request_id", "client_address", "route")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    ENTITLEMENTS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_TUPLES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    token: str
    permissions: _containers.RepeatedCompositeFieldContainer[PermissionCheck]
    entitlements: _containers.RepeatedScalarFieldContainer[str]
    subject: Subject
    explain: bool
    contextual_tuples: _containers.RepeatedCompositeFieldContainer[ContextualTuple]
    context: str
    request_id: str
    client_address: str
    route: str
    def __init__(self, token: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[PermissionCheck, _Mapping]]] = ..., entitlements: _Optional[_Iterable[str]] = ..., subject: _Optional[_Union[Subject, _Mapping]] = ..., explain: bool = ..., contextual_tuples: _Optional[_Iterable[_Union[ContextualTuple, _Mapping]]] = ..., context: _Optional[str] = ..., request_id: _Optional[str] = ..., client_address: _Optional[str] = ..., route: _Optional[str] = ...) -> None: ...

class PermissionResult(_message.Message):
    __slots__ = ("relation", "resource", "allowed", "error", "reason", "reason_code", "missing_context")
    RELATION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_CODE_FIELD_NUMBER: _ClassVar[int]
    MISSING_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    relation: str
    resource: str
    allowed: bool
    error: str
    reason: Reason
    reason_code: str
    missing_context: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, relation: _Optional[str] = ..., resource: _Optional[str] = ..., allowed: bool = ..., error: _Optional[str] = ..., reason: _Optional[_Union[Reason, _Mapping]] = ..., reason_code: _Optional[str] = ..., missing_context: _Optional[_Iterable[str]] = ...) -> None: ...

class Reason(_message.Message):
    __slots__ = ("code", "path", "missing", "details", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    path: _containers.RepeatedCompositeFieldContainer[ReasonStep]
    missing: _containers.RepeatedScalarFieldContainer[str]
    details: _containers.RepeatedScalarFieldContainer[str]
    message: str
    def __init__(self, code: _Optional[str] = ..., path: _Optional[_Iterable[_Union[ReasonStep, _Mapping]]] = ..., missing: _Optional[_Iterable[str]] = ..., details: _Optional[_Iterable[str]] = ..., message: _Optional[str] = ...) -> None: ...

class ReasonStep(_message.Message):
    __slots__ = ("tuple", "member", "rule", "role_grant")
    TUPLE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ROLE_GRANT_FIELD_NUMBER: _ClassVar[int]
    tuple: str
    member: str
    rule: str
    role_grant: str
    def __init__(self, tuple: _Optional[str] = ..., member: _Optional[str] = ..., rule: _Optional[str] = ..., role_grant: _Optional[str] = ...) -> None: ...

class EntitlementResult(_message.Message):
    __slots__ = ("value", "version")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    value: _struct_pb2.Struct
    version: int
    def __init__(self, value: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class DecideResponse(_message.Message):
    __slots__ = ("active", "subject", "organization", "permissions", "entitlements", "decision_id", "revision", "valid_until_ms", "acr", "auth_time")
    class EntitlementsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: EntitlementResult
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[EntitlementResult, _Mapping]] = ...) -> None: ...
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    ENTITLEMENTS_FIELD_NUMBER: _ClassVar[int]
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    ACR_FIELD_NUMBER: _ClassVar[int]
    AUTH_TIME_FIELD_NUMBER: _ClassVar[int]
    active: bool
    subject: Subject
    organization: str
    permissions: _containers.RepeatedCompositeFieldContainer[PermissionResult]
    entitlements: _containers.MessageMap[str, EntitlementResult]
    decision_id: str
    revision: str
    valid_until_ms: float
    acr: str
    auth_time: int
    def __init__(self, active: bool = ..., subject: _Optional[_Union[Subject, _Mapping]] = ..., organization: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[PermissionResult, _Mapping]]] = ..., entitlements: _Optional[_Mapping[str, EntitlementResult]] = ..., decision_id: _Optional[str] = ..., revision: _Optional[str] = ..., valid_until_ms: _Optional[float] = ..., acr: _Optional[str] = ..., auth_time: _Optional[int] = ...) -> None: ...

class DecideStreamRequest(_message.Message):
    __slots__ = ("tokens", "questions", "cancel")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[TokenHandle]
    questions: _containers.RepeatedCompositeFieldContainer[StreamQuestion]
    cancel: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, tokens: _Optional[_Iterable[_Union[TokenHandle, _Mapping]]] = ..., questions: _Optional[_Iterable[_Union[StreamQuestion, _Mapping]]] = ..., cancel: _Optional[_Iterable[int]] = ...) -> None: ...

class TokenHandle(_message.Message):
    __slots__ = ("handle", "token")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    handle: int
    token: str
    def __init__(self, handle: _Optional[int] = ..., token: _Optional[str] = ...) -> None: ...

class StreamQuestion(_message.Message):
    __slots__ = ("id", "handle", "permissions", "entitlements", "watched", "context", "request_id", "traceparent", "client_address", "route", "guest")
    ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    ENTITLEMENTS_FIELD_NUMBER: _ClassVar[int]
    WATCHED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    GUEST_FIELD_NUMBER: _ClassVar[int]
    id: int
    handle: int
    permissions: _containers.RepeatedCompositeFieldContainer[PermissionCheck]
    entitlements: _containers.RepeatedScalarFieldContainer[str]
    watched: bool
    context: str
    request_id: str
    traceparent: str
    client_address: str
    route: str
    guest: str
    def __init__(self, id: _Optional[int] = ..., handle: _Optional[int] = ..., permissions: _Optional[_Iterable[_Union[PermissionCheck, _Mapping]]] = ..., entitlements: _Optional[_Iterable[str]] = ..., watched: bool = ..., context: _Optional[str] = ..., request_id: _Optional[str] = ..., traceparent: _Optional[str] = ..., client_address: _Optional[str] = ..., route: _Optional[str] = ..., guest: _Optional[str] = ...) -> None: ...

class DecideStreamResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[StreamAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[StreamAnswer, _Mapping]]] = ...) -> None: ...

class StreamAnswer(_message.Message):
    __slots__ = ("id", "decision", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: int
    decision: DecideResponse
    error: str
    def __init__(self, id: _Optional[int] = ..., decision: _Optional[_Union[DecideResponse, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...
