/** `scim2-tester`, which others wrote, plays a company's directory against a real PDP. Skipped where there is no Python, or no PyPI. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startPdp } from '../../../../../pdp/server/runtime/start.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../../../../e2e/demo-stack.ts'
import { pdpSettings } from '../../../../e2e/pdp-settings.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { installFromPypi } from '../../../../support/programs/pypi.ts'
import { clientToken } from '../../../../support/sign-in.ts'

const PACKAGES = ['scim2-tester==0.5.2', 'scim2-client[httpx2]==0.13.2', 'scim2-models==0.12.3']
const HOST = '127.0.0.1'
const ADMIN_SECRET = 'a-secret-of-the-administrator-of-no-value'
const SECRET = 'a-secret-of-the-directory-of-no-value-anywhere'
const PROGRAM = `
import json, os, httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server
http = httpx2.Client(base_url=os.environ["SCIM"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]}, timeout=20)
results = check_server(SyncSCIMClient(http))
print(json.dumps([[one.status.name, one.title, str(one.reason).splitlines()[0]] for one in results]))`
/**
 * What it takes for an error: who is removed from `active` or `roles` keeps both, because a member always has them; and the
 * name of a member, which is read-only, was not sent.
 */
const ON_PURPOSE = [
  ['check_remove_attribute', "PATCH modify() did not remove attribute 'active'"],
  ['check_remove_attribute', "PATCH modify() did not remove attribute 'roles'"],
  ['check_add_attribute', "PATCH modify() returned unexpected value for 'members'."],
  ['check_replace_attribute', "PATCH modify() returned unexpected value for 'members'."],
]
const packages = installFromPypi('scim-tester', { packages: PACKAGES, modules: 'scim2_tester, httpx2' })

describe.skipIf(packages === null)('the directory of others', () => {
  const log = createLog({ service: 'test', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const closing: (() => Promise<unknown>)[] = []
  let issuer: string

  beforeAll(async () => {
    const ports = await choosePorts({})
    const database = await openTestDatabase()
    const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-scim-'))
    closing.push(() => rm(dataDirectory, { recursive: true }), database.drop)
    issuer = `http://${HOST}:${ports.http}`
    const databaseUrl = database.connectionString
    const settings = pdpSettings({ issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl, dataDirectory })
    await startPdp(settings, { log, shutdown })
    const scope = 'directory:write clients:write scim'
    const { access_token: admin } = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
    for (const [path, body] of [
      ['/v1/organizations/acme', { name: 'Acme' }],
      [
        '/v1/clients/directory',
        { organization: 'acme', grant_types: ['client_credentials'], scope: 'scim', client_secret: SECRET },
      ],
    ] as const) {
      const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
      const answer = await fetch(issuer + path, { method: 'PUT', headers, body: JSON.stringify(body) })
      if (!answer.ok) throw new Error(`PUT ${path}: ${answer.status} ${await answer.text()}`)
    }
  })
  afterAll(async () => {
    await shutdown.run('test')
    for (const close of closing.reverse()) await close()
  })

  test('makes, finds, changes and deletes users and groups, and complains of nothing but what is so on purpose', async () => {
    const { access_token: TOKEN } = await clientToken({
      issuer,
      clientId: 'directory',
      clientSecret: SECRET,
      scope: 'scim',
    })
    const { PATH, HOME } = process.env
    const env = { PATH, HOME, PYTHONPATH: packages ?? '', SCIM: `${issuer}/scim/v2`, TOKEN }
    const { stdout } = await promisify(execFile)('python3', ['-c', PROGRAM], { env, timeout: 100_000 })
    const results: readonly (readonly [status: string, title: string, reason: string])[] = JSON.parse(stdout)
    const complaints = results.filter(([status]) => !['SUCCESS', 'SKIPPED', 'ACCEPTABLE'].includes(status))
    expect(complaints.map(([, title, reason]) => [title, reason])).toEqual(ON_PURPOSE)
    expect(results.length - complaints.length).toBeGreaterThan(100)
  }, 120_000)
})
