"""Every check of scim2-tester against a server: SCIM_URL, SCIM_TOKEN. Prints one line of JSON for each."""
import json
import os

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

http = Client(base_url=os.environ["SCIM_URL"], headers={"Authorization": f"Bearer {os.environ['SCIM_TOKEN']}"}, timeout=60)
client = SyncSCIMClient(http)
for result in check_server(client, raise_exceptions=False):
    print(json.dumps({"status": result.status.name, "title": result.title, "reason": result.reason}, default=str))
