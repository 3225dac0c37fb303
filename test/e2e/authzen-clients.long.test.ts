/**
 * AuthZEN clients that others wrote, from PyPI, ask a real PDP: `decern`, which needs nothing else, and `authzen-policy-backend`,
 * which gets its token from the PDP itself. Skipped where there is no Python, or no PyPI.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { openTestDatabase } from '../support/database.ts'
import { installFromPypi } from '../support/programs/pypi.ts'
import { clientToken } from '../support/sign-in.ts'
import { choosePorts } from './demo-stack.ts'
import { pdpSettings } from './pdp-settings.ts'

const CLIENTS = ['decern==0.6.0', 'authzen-policy-backend==0.1.2', 'httpx==0.28.1', 'pydantic==2.12.0']
const HOST = '127.0.0.1'
const ADMIN_SECRET = 'a-secret-of-the-administrator-of-no-value'
const SECRET = 'a-secret-of-the-client-of-no-value-anywhere'
const MODEL = `model
  schema 1.1
type user
type ai_agent
type record
  relations
    define read: [user]
type mcp_tool
  relations
    define file_read: [ai_agent]
`
const packages = installFromPypi('authzen-clients', { packages: CLIENTS, modules: 'decern, authzen_backend' })

describe.skipIf(packages === null)('an AuthZEN client of others', () => {
  const log = createLog({ service: 'test', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const closing: (() => Promise<unknown>)[] = []
  let issuer: string

  beforeAll(async () => {
    const ports = await choosePorts({})
    const database = await openTestDatabase()
    const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-authzen-'))
    closing.push(() => rm(dataDirectory, { recursive: true }), database.drop)
    issuer = `http://${HOST}:${ports.http}`
    const databaseUrl = database.connectionString
    const settings = pdpSettings({ issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl, dataDirectory })
    await startPdp(settings, { log, shutdown })
    const scope = 'directory:write manifest:write relationships:write clients:write decisions:read'
    const { access_token: admin } = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
    const send = async (method: string, path: string, body: object): Promise<void> => {
      const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
      const answer = await fetch(issuer + path, { method, headers, body: JSON.stringify(body) })
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    }
    await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
    await send('PUT', '/v1/users/ann', {})
    await send('PUT', '/v1/apps/records/manifest', { audiences: [], model: MODEL })
    const write = ['record:1#read@user:ann', 'mcp_tool:file_read#file_read@ai_agent:auth:agent:agentmesh:one']
    await send('POST', '/v1/organizations/acme/relationships', { write })
    const grants = { grant_types: ['client_credentials'], organization: 'acme', scope: 'decisions:read' }
    await send('PUT', '/v1/clients/asking', { ...grants, client_secret: SECRET })
  })
  afterAll(async () => {
    await shutdown.run('test')
    for (const close of closing.reverse()) await close()
  })

  /** What the program prints, as JSON. */
  async function python(program: string): Promise<unknown> {
    const settings = { ISSUER: issuer, TOKEN: await token(), SECRET }
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, PYTHONPATH: packages ?? '', ...settings }
    const { stdout } = await promisify(execFile)('python3', ['-c', program], { env, timeout: 50_000 })
    return JSON.parse(stdout)
  }
  const token = async (): Promise<string> =>
    (await clientToken({ issuer, clientId: 'asking', clientSecret: SECRET, scope: 'decisions:read' })).access_token

  test('decern gets the decision, its reason, and an error for a token that is wrong', async () => {
    const said = await python(`
import json, os
from decern import Client, DecernError
client = Client(os.environ["ISSUER"], token=os.environ["TOKEN"])
def ask(user): return client.evaluate({"type": "user", "id": user}, "read", {"type": "record", "id": "1"}, {"ip": "192.0.2.1"})
ann, bob = ask("ann"), ask("bob")
try:
    Client(os.environ["ISSUER"], token="wrong").evaluate({"type": "user", "id": "ann"}, "read", {"type": "record", "id": "1"})
    wrong = None
except DecernError as error:
    wrong = error.status_code
print(json.dumps([ann.allowed, bob.allowed, sorted(ann.context), wrong]))`)
    expect(said).toEqual([true, false, expect.arrayContaining(['reason_code', 'revision']), 401])
  })

  test('authzen-policy-backend gets its token by client_credentials, and fails closed with a wrong secret', async () => {
    const said = await python(`
import json, os
from authzen_backend import AuthZENBackend, ClientCredentialsAuth
def backend(secret):
    auth = ClientCredentialsAuth(token_endpoint=os.environ["ISSUER"] + "/oauth/token", client_id="asking", client_secret=secret, extra_params={"scope": "decisions:read"})
    return AuthZENBackend(pdp_url=os.environ["ISSUER"] + "/access/v1/evaluation", pdp_application="records", client_credentials=auth, fail_closed=False)
asking = backend(os.environ["SECRET"])
answers = [asking.evaluate({"tool_name": "file_read", "agent_id": agent}) for agent in ("one", "two")]
answers.append(backend("wrong").evaluate({"tool_name": "file_read", "agent_id": "one"}))
print(json.dumps([[answer.allowed, answer.error is not None] for answer in answers]))`)
    expect(said).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ])
  })
})
