/** The chart's alerts and dashboard ask for what the programs export, and the runbook explains each alert. */
import { spawnSync } from 'node:child_process'
import { accessSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import { watchServers } from '../../pdp/server/runtime/failover.ts'
import { countAnswers, hookOutcomes, requestMetrics } from '../../pdp/server/runtime/metrics.ts'
import { receivedSignals, streamMetrics } from '../../pdp/server/runtime/received-signals.ts'
import { signalMetrics } from '../../pdp/server/runtime/signals.ts'
import { stateMetrics, timedStore } from '../../pdp/server/runtime/state-metrics.ts'
import { createAdmission } from '../../pdp/server/serve/authentication/admission.ts'
import type { AnswerQuestion } from '../../pdp/server/serve/decisions/answer.ts'
import { observeAnswers } from '../../pdp/server/serve/decisions/observed-answers.ts'
import { createBudgets } from '../../pdp/server/serve/grpc/budgets.ts'
import { PROBLEM_TITLES } from '../../pdp/shared/base/problems.ts'
import { createRegistry } from '../../pdp/shared/process/admin-listener.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { streamStates } from '../../pdp/signals/receiver/streams.ts'
import { createMetrics } from '../../sidecar/runtime/metrics.ts'
import { openTestDatabase } from '../support/database.ts'

const ALERTS_FILE = 'charts/portcullis/alerts/portcullis.yaml'
const ALERTS_TESTS = 'test/charts/alerts.promtool.yaml'
type Rule = {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly [name: string]: string }
}
const RULES: readonly Rule[] = parse(readFileSync(ALERTS_FILE, 'utf8')).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
)
const DASHBOARD: {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
} = JSON.parse(readFileSync('charts/portcullis/dashboards/portcullis.json', 'utf8'))
const RUNBOOK = readFileSync('docs/runbook.md', 'utf8')

const pdp = createRegistry()
const sidecar = new Registry()
const ends: (() => Promise<unknown>)[] = []
let decide: AnswerQuestion
let store: ReturnType<typeof timedStore>
beforeAll(async () => {
  createMetrics(sidecar)
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  ends.push(opened.close, database.drop)
  store = timedStore(opened.store, pdp)
  const admission = createAdmission({ clock: () => performance.now() })
  const nobody = () => Promise.reject(new Error('not asked for'))
  const clocks = { clock: () => 0, monotonic: () => 0 }
  decide = observeAnswers(nobody, [countAnswers(pdp, admission)], clocks)
  hookOutcomes(pdp)
  watchServers({ registry: pdp, log: createLog({ service: 'test', level: 'silent' }) })
  requestMetrics(pdp)
  receivedSignals(pdp)
  streamMetrics(pdp, () => streamStates(opened.sql))
  signalMetrics(pdp, opened.sql)
  const parts = { sql: opened.sql, connections: opened.connections, budgets: createBudgets() }
  stateMetrics(pdp, { ...parts, certificateEndMs: () => 86_400_000 })
})
afterAll(async () => {
  for (const end of ends) await end()
})

/** Names of the metrics with their labels. */
function exported(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const registry of [pdp, sidecar])
    for (const metric of registry.getMetricsAsArray()) {
      const labels: readonly string[] = Reflect.get(metric, 'labelNames') ?? []
      found.set(metric.name, labels)
      for (const end of ['_bucket', '_sum', '_count']) found.set(metric.name + end, [...labels, 'le'])
    }
  // The injector makes its metrics when it listens.
  const injector = readFileSync('sidecar/injector/start.ts', 'utf8')
  for (const [, name = ''] of injector.matchAll(/name: '(portcullis_injector_\w+)'/g))
    found.set(name, ['mode', 'verdict', 'reason'])
  return found
}
/** Set by Prometheus when it scrapes. */
const SCRAPED = ['instance', 'pod', 'job', 'namespace', 'workload']
const KEYWORDS = new Set(['by', 'on', 'ignoring', 'group_left', 'and', 'or', 'le'])

/** What an expression asks for and nobody exports. */
function unknownIn(expr: string): readonly string[] {
  const metrics = exported()
  const bare = expr.replace(/"[^"]*"/g, '""')
  const names = [...bare.matchAll(/\b([a-z]+_[a-z0-9_]*)\b(?!\s*\()/g)].map(([, name = '']) => name)
  const unknown = names.filter((name) => !metrics.has(name) && !KEYWORDS.has(name))
  const used = names.filter((name) => metrics.has(name)).flatMap((name) => [...(metrics.get(name) ?? [])])
  const labels = [
    ...[...bare.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) => [...inside.matchAll(/(\w+)\s*[=!]/g)]),
    ...[...bare.matchAll(/\b(?:by|on|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, inside = '']) => [
      ...inside.matchAll(/(\w+)/g),
    ]),
  ].map(([, label = '']) => label)
  return [...unknown, ...labels.filter((label) => !used.includes(label) && !SCRAPED.includes(label))]
}

describe('the alerts', () => {
  test.each(RULES.map((rule) => [rule.alert, rule] as const))('%s asks for what is exported', (_, { expr }) => {
    expect(unknownIn(expr)).toEqual([])
  })

  test('name outcomes that exist', () => {
    const outcomes = RULES.flatMap(({ expr }) =>
      [...expr.matchAll(/outcome=~"([^"]+)"/g)].flatMap(([, text = '']) => text.split('|')),
    )
    expect(outcomes.length).toBeGreaterThan(5)
    for (const outcome of outcomes)
      expect(
        Object.keys(PROBLEM_TITLES).some((code) => new RegExp(`^${outcome}$`).test(code)),
        outcome,
      ).toBe(true)
  })

  test('have a section in the runbook each, to which they lead, and the runbook has no other', () => {
    const sections = [...RUNBOOK.matchAll(/^## (Portcullis\w+)$/gm)].map(([, name]) => name)
    expect(sections.toSorted()).toEqual(RULES.map(({ alert }) => alert).toSorted())
    for (const { alert, annotations, labels } of RULES) {
      expect(annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`)
      expect([annotations.summary, annotations.description]).toEqual([expect.any(String), expect.any(String)])
      expect(['critical', 'warning', 'info']).toContain(labels.severity)
      const section = RUNBOOK.split(`## ${alert}\n`)[1]?.split('\n## ')[0] ?? ''
      for (const part of ['*Means:*', '*Look:*', '*Do:*']) expect(section, alert).toContain(part)
    }
  })

  test('would be noticed if a name changed', () => {
    expect(unknownIn('sum by (root) (rate(portcullis_sidecar_request_total{decison="deny"}[5m]))')).toEqual([
      'portcullis_sidecar_request_total',
      'decison',
      'root',
    ])
  })
})

test('the dashboard and the runbook ask for what is exported', () => {
  expect(DASHBOARD.panels.length).toBeGreaterThan(15)
  for (const { title, targets } of DASHBOARD.panels)
    for (const { expr } of targets) expect(unknownIn(expr), title).toEqual([])
  const named = [...RUNBOOK.matchAll(/\b(portcullis_(?:sidecar|store|question|table|database)\w+)\b/g)].map(
    ([, name = '']) => name,
  )
  expect(named.filter((name) => !exported().has(name))).toEqual([])
})

describe('the metrics of the PDP', () => {
  test('say the size of each table, the connections, budgets and the end of the certificate', async () => {
    await store.vector(['#environment'])
    const text = await pdp.metrics()
    for (const line of [
      /^portcullis_database_up 1$/m,
      /^portcullis_table_bytes\{table="outbox"\} [1-9]\d+$/m,
      /^portcullis_table_rows\{table="change_log"\} \d+$/m,
      /^portcullis_log_revision\{log="#tokens"\} 0$/m,
      /^portcullis_master_key_rotating 0$/m,
      /^portcullis_outbox_oldest_timestamp_seconds 0$/m,
      /^portcullis_database_connections\{pool="reads",state="idle"\} \d+$/m,
      /^portcullis_grpc_budget_used_ratio\{kind="streams"\} 0$/m,
      /^portcullis_certificate_not_after_seconds 86400$/m,
      /^portcullis_store_duration_seconds_count\{operation="vector",outcome="ok"\} 1$/m,
    ])
      expect(text).toMatch(line)
  })

  test('count a question that fails by its problem code', async () => {
    const question = { permissions: [], entitlements: ['seats'], subject: null, explain: false }
    await expect(decide({ active: false }, question)).rejects.toThrow('not asked for')
    expect(await pdp.metrics()).toMatch(
      /^portcullis_question_duration_seconds_count\{asks="entitlements",outcome="internal"\} 1$/m,
    )
  })
})

/** Prometheus's own tool. `go get` and `go build` of github.com/prometheus/prometheus/cmd/promtool@v0.305.0 in an empty module make it. */
function promtool(): string | null {
  const folders = [
    join(homedir(), '.cache', 'portcullis-promtool'),
    join(homedir(), 'go', 'bin'),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  const isThere = (path: string): boolean => {
    try {
      accessSync(path)
      return true
    } catch {
      return false
    }
  }
  return folders.map((folder) => join(folder, 'promtool')).find(isThere) ?? null
}

test.skipIf(promtool() === null)(
  'promtool reads the alerts, and each fires when it must (skipped without promtool)',
  () => {
    for (const words of [
      ['check', 'rules', ALERTS_FILE],
      ['test', 'rules', ALERTS_TESTS],
    ]) {
      const { status, stdout, stderr } = spawnSync(promtool() ?? '', words, { encoding: 'utf8' })
      expect([status, stdout, stderr]).toEqual([0, expect.any(String), expect.any(String)])
    }
  },
)
