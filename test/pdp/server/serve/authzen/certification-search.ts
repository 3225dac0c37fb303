/** The plans of the official AuthZEN runner for searches; `certification.ts` says what they are. */
import { ACTIONS, BAD, expecting, type Plan, READERS, RECORDS, TIME, WRITE, without } from './certification-plan.ts'
import { question, record, user } from './records.ts'

const { subject, action, resource } = question('alice', 'read', 'record-1')
const archived = { ...record('record-2'), properties: { status: 'archived' } }
const admin = { ...user('bob'), properties: { role: 'admin' } }

export const ACTION_SEARCH: Plan = {
  plan: 'action-search',
  path: 'search/action',
  body: { subject, resource },
  expected: ACTIONS,
  rows: [
    ...expecting(BAD, {
      'missing-subject': { resource },
      'missing-resource': { subject },
      'subject-is-string': { subject: 'alice', resource },
      'subject-missing-type': { subject: { id: 'alice' }, resource },
      'subject-missing-id': { subject: { type: 'user' }, resource },
      'resource-missing-type': { subject, resource: { id: 'record-1' } },
      'resource-missing-id': { subject, resource: { type: 'record' } },
    }),
    ...expecting(ACTIONS, {
      'valid-action-search-request-with-non-empty-results': { subject, resource },
      'action-search-with-context': { subject, resource, context: TIME },
      'extra-action-ignored': { subject, action, resource },
    }),
    ...expecting(
      { results: [{ name: 'write' }] },
      { 'action-search-with-properties': { subject: admin, resource: archived } },
    ),
    ...expecting({ results: [] }, { 'unknown-entity-identifier': { subject: user('nonexistent-user'), resource } }),
  ],
}

export const RESOURCE_SEARCH: Plan = {
  plan: 'resource-search',
  path: 'search/resource',
  body: { subject, action, resource: { type: 'record' } },
  expected: RECORDS,
  rows: [
    ...expecting(BAD, {
      'missing-subject': { action, resource: { type: 'record' } },
      'missing-action': { subject, resource: { type: 'record' } },
      'missing-resource': { subject, action },
      'subject-missing-id': { subject: { type: 'user' }, action, resource: { type: 'record' } },
      'action-missing-name': { subject, action: {}, resource: { type: 'record' } },
      'resource-missing-type': { subject, action, resource: {} },
    }),
    ...expecting(RECORDS, {
      'valid-resource-search-request-with-non-empty-results': { subject, action, resource: { type: 'record' } },
      'resource-search-with-resource-id-omitted': { subject, action, resource: { type: 'record' } },
      'extra-resource-id-ignored': { subject, action, resource: record('a-stray-id') },
    }),
    ...expecting(
      { results: [record('record-2')] },
      {
        'resource-search-with-subject-properties': { subject: admin, ...WRITE, resource: { type: 'record' } },
      },
    ),
  ],
}

const READERS_OF = { subject: { type: 'user' }, action, resource }
export const SUBJECT_SEARCH: Plan = {
  plan: 'subject-search',
  path: 'search/subject',
  body: READERS_OF,
  expected: READERS,
  rows: [
    ...expecting(BAD, {
      'missing-action': without(READERS_OF, 'action'),
      'missing-resource': without(READERS_OF, 'resource'),
      'subject-missing-type': { ...READERS_OF, subject: {} },
      'action-is-string': { ...READERS_OF, action: 'read' },
      'action-missing-name': { ...READERS_OF, action: {} },
      'resource-missing-type': { ...READERS_OF, resource: { id: 'record-1' } },
      'resource-missing-id': { ...READERS_OF, resource: { type: 'record' } },
    }),
    ...expecting(READERS, {
      'valid-subject-search-request-with-non-empty-results': READERS_OF,
      'subject-search-with-subject-id-omitted': READERS_OF,
      'subject-search-with-context': { ...READERS_OF, context: TIME },
      'extra-subject-id-ignored': { ...READERS_OF, subject: user('a-stray-id') },
      'unknown-page-fields-ignored': { ...READERS_OF, page: { limit: 10, mood: 'good' } },
    }),
    ['request-with-page-limit', { body: { ...READERS_OF, page: { limit: 1 } }, how: 'pages', expected: READERS }],
    ...expecting(
      { results: [user('bob')] },
      {
        'subject-search-with-resource-properties': { subject: { type: 'user' }, ...WRITE, resource: archived },
      },
    ),
    ...expecting({ results: [] }, { 'unknown-entity-type': { ...READERS_OF, subject: { type: 'spaceship' } } }),
  ],
}
