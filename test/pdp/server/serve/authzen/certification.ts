/**
 * The modules of the official AuthZEN runner (openid-certification/conformance-suite, package authzen.scenarios) as requests and
 * expectations of our own, under the names that it gives them.
 */
import type { Json } from '../harness.ts'
import { BAD, expecting, type Module, type Plan, type Rows, TIME, WRITE, without } from './certification-plan.ts'
import { ACTION_SEARCH, RESOURCE_SEARCH, SUBJECT_SEARCH } from './certification-search.ts'
import { question, record, user } from './records.ts'

const READ = { action: { name: 'read' } }
const archived = { ...record('record-2'), properties: { status: 'archived' } }
const active = { ...record('record-1'), properties: { status: 'active' } }
const admin = { ...user('bob'), properties: { role: 'admin' } }
const { subject, action, resource } = question('alice', 'read', 'record-1')
const EVALUATION: Plan = {
  plan: 'evaluation',
  path: 'evaluation',
  body: { subject, action, resource },
  expected: { decision: true },
  rows: [
    ...expecting(BAD, {
      'missing-subject': { action, resource },
      'missing-action': { subject, resource },
      'missing-resource': { subject, action },
      'subject-is-string': { subject: 'alice', action, resource },
      'subject-missing-type': { subject: { id: 'alice' }, action, resource },
      'subject-missing-id': { subject: { type: 'user' }, action, resource },
      'action-missing-name': { subject, action: {}, resource },
      'action-name-is-number': { subject, action: { name: 123 }, resource },
      'resource-missing-type': { subject, action, resource: { id: 'record-1' } },
      'resource-missing-id': { subject, action, resource: { type: 'record' } },
    }),
    ...expecting(
      { decision: true },
      {
        'fixture-request-permit-decision': { subject, action, resource },
        'fixture-request-permit-based-on-subject-properties': { subject: admin, ...WRITE, resource: archived },
        'fixture-request-permit-based-on-action-properties': {
          ...{ subject, resource },
          action: { name: 'delete', properties: { soft: true } },
        },
        'request-with-optional-context': { subject, action, resource, context: TIME },
        'request-with-additional-properties': {
          subject: { ...subject, properties: { department: 'Sales', role: 'manager' } },
          action: { ...action, properties: { method: 'GET' } },
          resource: { ...active, properties: { status: 'active', owner: 'bob' } },
        },
        'unknown-subject-fields-ignored': { subject: { ...subject, mood: { good: true } }, action, resource },
        'unknown-action-fields-ignored': { subject, action: { ...action, mood: 'good' }, resource },
        'unknown-resource-fields-ignored': { subject, action, resource: { ...resource, moods: [1, 2] } },
      },
    ),
    ...expecting(
      { decision: false },
      {
        'fixture-request-deny-decision': question('bob', 'write', 'record-1'),
        'fixture-request-deny-based-on-properties': { subject, ...WRITE, resource: archived },
        'fixture-request-deny-based-on-action-properties': {
          ...{ subject, resource },
          action: { name: 'delete', properties: { soft: false } },
        },
      },
    ),
    [
      'missing-credentials-returns-401',
      { body: { subject, action, resource }, credentials: 'none', expected: { status: [401] } },
    ],
    [
      'invalid-credentials-returns-401',
      { body: { subject, action, resource }, credentials: 'wrong', expected: { status: [401] } },
    ],
  ],
}

const bobs = (names: readonly string[], semantic?: string): Json => ({
  ...{ subject: user('bob'), resource },
  evaluations: names.map((name) => ({ action: { name } })),
  ...(semantic !== undefined && { options: { evaluations_semantic: semantic } }),
})
const BATCH = { subject, action, evaluations: [{ resource }, { resource: record('record-2') }] }

const EVALUATIONS: Plan = {
  plan: 'evaluations',
  path: 'evaluations',
  body: BATCH,
  expected: { decisions: [true, true] },
  rows: [
    ...expecting(
      { decisions: [true, true] },
      {
        'batch-request-with-evaluations-array': BATCH,
        'batch-with-context-inheritance': {
          ...{ subject, action, context: TIME },
          evaluations: [{ resource }, { resource: record('record-2'), context: { source: 'its own' } }],
        },
      },
    ),
    ...expecting(
      { decisions: [true, false] },
      {
        'batch-with-fixture-decisions-validated': bobs(['read', 'write']),
        'batch-with-fully-specified-evaluations': {
          evaluations: [question('alice', 'read', 'record-1'), question('bob', 'write', 'record-1')],
        },
        'batch-with-properties-validated': {
          ...{ subject, ...WRITE },
          evaluations: [{ resource: active }, { resource: archived }],
        },
        'default-semantic-is-execute-all': bobs(['read', 'write']),
        'execute-all-explicit': bobs(['read', 'write'], 'execute_all'),
        'deny-on-first-deny': bobs(['read', 'write', 'read'], 'deny_on_first_deny'),
        'evaluation-level-errors': { subject, action, evaluations: [{ resource }, {}] },
        'per-eval-overrides-default': { ...question('bob', 'write', 'record-1'), evaluations: [READ, {}] },
      },
    ),
    ...expecting(
      { decisions: [false, true] },
      {
        'batch-with-subject-properties-validated': {
          ...WRITE,
          resource: archived,
          evaluations: [{ subject }, { subject: admin }],
        },
        'permit-on-first-permit': bobs(['write', 'read', 'write'], 'permit_on_first_permit'),
      },
    ),
    ...expecting(
      { decision: true },
      {
        'missing-evaluations-array-backward-compat': { subject, action, resource },
        'empty-evaluations-array-backward-compat': { subject, action, resource, evaluations: [] },
      },
    ),
    [
      'missing-subject-returns-decision-false',
      { body: { action, evaluations: [{ resource }] }, expected: { decisions: [false] } },
    ],
    ['unknown-semantic-value', { body: { ...BATCH, options: { evaluations_semantic: 'bogus' } }, expected: BAD }],
    [
      'batch-with-default-value-merging',
      {
        body: {
          ...{ subject, ...WRITE, resource: { type: 'record' } },
          evaluations: [{ resource: without(active, 'type') }, { resource: archived }],
        },
        expected: { decisions: [false, false] },
        deviation:
          'wants members of an entity merged with the default; by sections 7.1.1 of the specification and c-3-2-7 of the certification an entity is replaced whole, so that the first item lacks its type',
      },
    ],
  ],
}

/** What every plan has about its endpoint. */
const common = ({ body, expected }: Plan): Rows => [
  ['accept-content-type-with-charset', { body, contentType: 'application/json; charset=utf-8', expected }],
  ['unknown-top-level-fields-ignored', { body: { ...body, mood: 'good', later: { nested: true } }, expected }],
  ['idempotency', { body, how: 'again', expected }],
  ['x-request-id-echoed', { body, how: 'request-id', expected }],
  ['reject-get-method', { method: 'GET', expected: { status: [400, 404, 405] } }],
  ['reject-put-method', { method: 'PUT', body, expected: { status: [400, 404, 405] } }],
  ['reject-non-json-content-type', { body, contentType: 'text/plain', expected: { status: [400, 415] } }],
  ['reject-malformed-json', { raw: `${JSON.stringify(body).slice(0, -1)}, broken`, expected: BAD }],
  ['reject-top-level-array', { body: [body], expected: BAD }],
  ['reject-empty-body', { raw: '', expected: BAD }],
]

export const PLANS: readonly (readonly [plan: string, modules: readonly Module[]])[] = [
  EVALUATION,
  EVALUATIONS,
  ACTION_SEARCH,
  RESOURCE_SEARCH,
  SUBJECT_SEARCH,
].map((plan) => [
  plan.plan,
  [...plan.rows, ...common(plan)].map(([name, about]) => ({
    ...about,
    plan: plan.plan,
    path: plan.path,
    name: `authzen-pdp-${plan.plan}-${name}`,
  })),
])
