import asyncio, os
from typing import Annotated
import grpc
from fastapi import Depends, FastAPI, Header
from portcullis_client import Caller, Client
from portcullis_client.fastapi import FastApiGuard

app = FastAPI()
tls = grpc.ssl_channel_credentials(open(os.environ["PDP_CA"], "rb").read())
pdp = Client(os.environ["PDP"], tls=tls, token=lambda: os.environ["PDP_TOKEN"], deadline=5)
allow = FastApiGuard(app, pdp, resource=os.environ["RESOURCE"])


@app.get("/invoices/{id}")
async def invoice(id: str, caller: Annotated[Caller, Depends(allow("viewer", "invoice:{id}"))]):
    return f"invoice {id} for {caller.subject[1]} of {caller.organization}"


@app.get("/files/{folder}/{name}", dependencies=[Depends(allow("viewer", "file:{folder}-{name}"))])
async def file(folder: str, name: str):
    return "a file"


@app.get("/me")
async def me(caller: Annotated[Caller, Depends(allow())]):
    return caller.claims["sub"]


@app.get("/many")
async def many(mine: Annotated[str, Header()], other: Annotated[str, Header()]):
    asked = [pdp.can_async(token, "viewer", "invoice:7") for token in [mine, other] * 500]
    answers = await asyncio.gather(*asked)
    return f"{answers.count(True)} of {len(answers)}, each its own: {answers == [True, False] * 500}"
