# A service behind the sidecar. Whoever gets here may read this invoice; the field says who it is.
# Install: pip install flask
# Start: flask --app flask_app run --port 3000
from flask import Flask, request

app = Flask(__name__)


@app.get("/invoices/<id>")
def invoice(id):
    return f"invoice {id} for {request.headers['X-Auth-Subject']}\n"
