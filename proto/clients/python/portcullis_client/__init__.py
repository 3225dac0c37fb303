"""Asks a Portcullis PDP about the bearers of access tokens. Guards: `portcullis_client.django` and `portcullis_client.fastapi`."""
from .client import Client, Decision, DecisionError, Entitlement, Permission, Question
from .guard import Caller

__all__ = ["Caller", "Client", "Decision", "DecisionError", "Entitlement", "Permission", "Question"]
