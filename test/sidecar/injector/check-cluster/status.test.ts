/** `status`, with a program in the place of kubectl that knows two Pods. */
import { createHash } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, expect, test } from 'vitest'
import { readStatus } from '../../../../sidecar/injector/check-cluster/status.ts'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import { type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { createMetrics } from '../../../../sidecar/runtime/metrics.ts'
import { runCli } from '../../../support/peers/sidecar-cli.ts'
import { CONFIG, podWith } from '../pod/pods.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-status-'))
afterAll(() => rmSync(folder, { recursive: true }))
const FILE = 'portcullis: v1\n'
const HASH = createHash('sha256').update(FILE).digest('hex')

async function metricsOf({ hash = HASH, ok = true, refused = false }): Promise<string> {
  const registry = new Registry()
  const metrics = createMetrics(registry)
  metrics.loaded({ ok: true, hash, atSeconds: 1_700_000_000 })
  if (!ok) metrics.loaded({ ok: false, hash: '', atSeconds: 0 })
  const line = {
    event: 'decision',
    request_id: 'r',
    method: 'GET',
    http_version: '1.1',
    client_address: '',
    route: null,
  } as const
  const decided = (decision: 'allow' | 'deny', reason: string): void =>
    metrics.decided('GET /a/{id}', { ...line, subject: null, decision, reason, duration_ms: 1 })
  if (refused) decided('deny', 'permission_denied')
  decided('allow', 'permitted')
  return registry.metrics()
}

function pod(name: string): JsonObject {
  const bare = podWith({})
  const injection = inject(bare, { config: CONFIG, mode: 'enabled' })
  const made = injection.verdict === 'inject' ? applyPatch(bare, injection.operations) : bare
  return { ...made, kind: 'Pod', metadata: { ...objectAt(made.metadata, ''), name, namespace: 'shop' } }
}

type Asked = { readonly data?: JsonObject; readonly words?: readonly string[] }
type Texts = { readonly [name: string]: string | null }

async function status(pods: Texts, { data = { 'http.yaml': FILE }, words = ['status'] }: Asked = {}) {
  const map = { kind: 'ConfigMap', metadata: { name: 'invoices-routes', namespace: 'shop' }, data }
  writeFileSync(join(folder, 'objects'), JSON.stringify({ items: [...Object.keys(pods).map(pod), map] }))
  for (const [name, text] of Object.entries(pods)) if (text !== null) writeFileSync(join(folder, name), text)
  const kubectl = join(folder, 'kubectl')
  const script = [
    '#!/bin/sh',
    'if [ "$2" = --raw ]; then exec cat "$FOLDER/$(echo "$3" | cut -d: -f2)"; fi',
    'exec cat "$FOLDER/objects"',
  ]
  writeFileSync(kubectl, script.join('\n').replaceAll('$FOLDER', folder))
  chmodSync(kubectl, 0o755)
  return runCli([...words, '-n', 'shop', '--kubectl', kubectl])
}

test('names the file of each sidecar, since when it is in force, and the last refusal', async () => {
  const { status: code, stdout } = await status({ one: await metricsOf({}), two: await metricsOf({ refused: true }) })
  const since = `${HASH.slice(0, 12)} since 2023-11-14T22:13:20.000Z  as in its ConfigMap`
  expect(stdout).toMatch(new RegExp(`^one  http.yaml  ${since}  no refusal$`, 'm'))
  expect(stdout).toMatch(
    new RegExp(`^two  http.yaml  ${since}  last refusal permission_denied of GET /a/\\{id\\} at 20`, 'm'),
  )
  expect(code).toBe(0)
})

test.each<[string, { [name: string]: string | null }, RegExp]>([
  [
    'has an older file',
    { one: await metricsOf({ hash: 'f'.repeat(64) }) },
    /^one {2}http.yaml {2}ffffffffffff since .*its ConfigMap has [0-9a-f]{12}, /,
  ],
  ['has rejected a file', { one: await metricsOf({ ok: false }) }, /a later file is not valid/],
  [
    'is no sidecar',
    { one: 'up 1\n' },
    /^one {2}http.yaml {2}could not be read: its metrics are not those of a sidecar/,
  ],
  ['does not answer', { three: null }, /^three {2}http.yaml {2}could not be read: .*failed/],
])('exits with 1 where a sidecar %s', async (_name, pods, text) => {
  const { status: code, stdout } = await status(pods)
  expect([code, stdout]).toEqual([1, expect.stringMatching(text)])
})

test('is shown by check-cluster for one namespace, beside its findings and without a word to them', async () => {
  const pods = { one: await metricsOf({}), three: null }
  const { stdout } = await status(pods, { words: ['check-cluster'] })
  expect(stdout).toMatch(
    new RegExp(`findings\nstatus  one  http.yaml  ${HASH.slice(0, 12)} since .*as in its ConfigMap`),
  )
  expect(stdout).toMatch(/^status {2}three {2}http.yaml {2}could not be read: /m)
  const json = JSON.parse((await status(pods, { words: ['check-cluster', '--json'] })).stdout)
  expect(json.status).toHaveLength(2)
  expect(json.findings.map(({ object }: { object: string }) => object)).not.toContain('Pod/three  http.yaml')
})

test('says that nobody has a sidecar', async () => {
  expect(await status({})).toMatchObject({ status: 0, stdout: 'no Pod of shop has a sidecar\n' })
})

test.each(['', 'portcullis_sidecar_config_info 1', 'portcullis_sidecar_config_info{hash="a"} x'])(
  'takes %j for no metrics of a sidecar',
  (text) => {
    expect(() => readStatus(text)).toThrow()
  },
)
