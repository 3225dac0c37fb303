/** The signed metadata of AuthZEN, as a stranger verifies it: with the keys that the issuer publishes. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../pdp/process/log.ts'
import { createShutdown } from '../../pdp/process/shutdown.ts'
import { startPdp } from '../../pdp/runtime/start.ts'
import { openTestDatabase } from '../support/database.ts'
import { choosePorts } from './demo-stack.ts'
import { pdpSettings } from './pdp-settings.ts'

const HOST = '127.0.0.1'
let issuer: string
const log = createLog({ service: 'test', level: 'silent' })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-signed-'))
  closing.push(() => rm(dataDirectory, { recursive: true }), database.drop)
  issuer = `http://${HOST}:${ports.http}`
  const databaseUrl = database.connectionString
  const adminSecret = 'the-secret-of-the-administrator'
  await startPdp(pdpSettings({ issuer, adminSecret, host: HOST, ports, databaseUrl, dataDirectory }), { log, shutdown })
})
afterAll(async () => {
  await shutdown.run('test')
  for (const close of closing.reverse()) await close()
})

const read = async (path: string) => JSON.parse(await (await fetch(new URL(path, issuer))).text())

test('verifies with a published key, says what the plain members say, and nothing else verifies', async () => {
  const { signed_metadata: signed, ...plain } = await read('/.well-known/authzen-configuration')
  const keys = createRemoteJWKSet(new URL((await read('/.well-known/openid-configuration')).jwks_uri))
  const { payload } = await jwtVerify(signed, keys, { issuer, algorithms: ['RS256'] })
  expect(payload).toEqual({ iss: issuer, ...plain })
  expect(plain.policy_decision_point).toBe(issuer)
  expect(decodeProtectedHeader(signed)).toEqual({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) })
  const [header, , signature] = signed.split('.')
  const changed = { ...payload, access_evaluation_endpoint: 'https://evil.example/access/v1/evaluation' }
  const forged = [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.')
  await expect(jwtVerify(forged, keys)).rejects.toThrow('signature verification failed')
})
