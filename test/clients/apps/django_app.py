import os
from concurrent.futures import ThreadPoolExecutor
import grpc
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from portcullis_client import Client
from portcullis_client.django import DjangoGuard, caller_of

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of no value")
# Made before the server forks.
tls = grpc.ssl_channel_credentials(open(os.environ["PDP_CA"], "rb").read())
pdp = Client(os.environ["PDP"], tls=tls, token=lambda: os.environ["PDP_TOKEN"], deadline=5)
allow = DjangoGuard(pdp, resource=os.environ["RESOURCE"])


@allow("viewer", "invoice:{id}")
def invoice(request, id):
    caller = caller_of(request)
    return HttpResponse(f"invoice {id} for {caller.subject[1]} of {caller.organization}")


@allow("viewer", "file:{folder}-{name}")
def file(request, folder, name):
    return HttpResponse("a file")


@allow()
async def me(request):
    return HttpResponse(caller_of(request).claims["sub"])


def many(request):
    tokens = [request.headers["mine"], request.headers["other"]] * 500
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda token: pdp.can(token, "viewer", "invoice:7"), tokens))
    return HttpResponse(f"{answers.count(True)} of {len(answers)}, each its own: {answers == [True, False] * 500}")


urlpatterns = [
    path("invoices/<str:id>", invoice),
    path("files/<str:folder>/<str:name>", file),
    path("me", me),
    path("many", many),
]
app = get_wsgi_application()
