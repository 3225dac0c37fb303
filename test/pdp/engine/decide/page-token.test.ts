/** A page token is good for the question that it came from, and for no other. */
import { describe, expect, test } from 'vitest'
import { formatCursor, parseListRequest } from '../../../../pdp/engine/decide/lists/list-request.ts'
import type { ListQuestion } from '../../../../pdp/engine/decide/lists/lists.ts'
import type { ListResourcesRequest, ListSubjectsRequest } from '../../../../pdp/shared/domain/decision.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { tuple } from '../../../support/tuples.ts'

describe('a page token', () => {
  const resources = {
    organization: 'acme',
    subject: user('ann'),
    relation: 'viewer',
    type: 'doc',
    app: 'one',
    pageSize: 5,
  } satisfies ListResourcesRequest
  const subjects = {
    organization: 'acme',
    resource: 'doc:1',
    relation: 'viewer',
    type: 'user',
    subjectRelation: 'member',
    app: 'one',
    pageSize: 5,
  } satisfies ListSubjectsRequest
  const otherResources: { readonly [F in Exclude<keyof ListResourcesRequest, 'pageSize' | 'pageToken'>]: object } = {
    organization: { organization: 'other' },
    subject: { subject: service('ann') },
    relation: { relation: 'editor' },
    type: { type: 'docs' },
    app: { app: null },
    context: { context: { level: 1 } },
    contextualTuples: { contextualTuples: [tuple('doc:3#viewer@user:ann')] },
    withoutTuples: { withoutTuples: [tuple('doc:3#viewer@user:ann')] },
    asOfMs: { asOfMs: 1 },
  }
  const otherSubjects: { readonly [F in Exclude<keyof ListSubjectsRequest, 'pageSize' | 'pageToken'>]: object } = {
    organization: { organization: 'other' },
    resource: { resource: 'doc:2' },
    relation: { relation: 'editor' },
    type: { type: 'users' },
    subjectRelation: { subjectRelation: undefined },
    app: { app: null },
    context: { context: { level: 1 } },
    contextualTuples: { contextualTuples: [tuple('doc:3#viewer@user:ann')] },
    withoutTuples: { withoutTuples: [tuple('doc:3#viewer@user:ann')] },
    asOfMs: { asOfMs: 1 },
  }
  const accepted = (from: ListQuestion, by: ListQuestion): boolean => {
    const pageToken = formatCursor(from, { after: `${by.type}:1`, revision: null })
    try {
      return parseListRequest({ ...by, pageToken }).from !== null
    } catch {
      return false
    }
  }

  test.each(Object.entries(otherResources))('of resources is no token for another %s', (_, other) => {
    const question: ListQuestion = { kind: 'resources', ...resources }
    expect(accepted(question, { ...question, pageSize: 6 })).toBe(true)
    expect(accepted(question, { ...question, ...other })).toBe(false)
  })

  test.each(Object.entries(otherSubjects))('of subjects is no token for another %s', (_, other) => {
    const question: ListQuestion = { kind: 'subjects', ...subjects }
    expect(accepted(question, { ...question, pageSize: 6 })).toBe(true)
    expect(accepted(question, { ...question, ...other })).toBe(false)
  })
})
