/** The streams of a receiver: created, read, changed, replaced and deleted (SSF 1.0 section 8.1.1). */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import {
  configurationOf,
  SSF_PATHS,
  type StreamBody,
  SUBJECT_FORMATS,
} from '../../../signals/transmitter/configuration.ts'
import { type JsonSchema, text } from '../http/schemas.ts'
import { addManagementRoute, done, found, ok } from '../management/route.ts'
import { COMMON, NO_STREAM, open, receiverOf, type SignalDeps, STREAM_ID, URI_TEXT } from './receivers.ts'

const REQUESTED: { readonly [name: string]: JsonSchema } = {
  delivery: {
    ...open(
      {
        method: { ...URI_TEXT, description: 'urn:ietf:rfc:8935 for push, urn:ietf:rfc:8936 for poll.' },
        endpoint_url: { type: 'string', maxLength: 2_048, description: 'For push. Redirects are not followed.' },
        authorization_header: {
          ...text('^[\\x20-\\x7e]{1,4096}$', '1 to 4096 ASCII characters, none of them a control character'),
          description: 'Sent with each push. Stored encrypted and never returned.',
        },
      },
      ['method'],
    ),
    description: 'Without it the receiver polls.',
  },
  events_requested: { type: 'array', maxItems: 100, items: URI_TEXT, description: 'Unknown types are ignored.' },
  description: { type: 'string', minLength: 1, maxLength: 1_024 },
  subject_format: {
    type: 'string',
    enum: SUBJECT_FORMATS,
    description: '`complex`: user, session and tenant; `iss_sub`: the user alone. Default: `complex`.',
  },
}
const CREATED = open(REQUESTED, [])
const CHANGED = open({ stream_id: STREAM_ID, ...REQUESTED }, ['stream_id'])
const CONFIGURATION = open(
  {
    stream_id: STREAM_ID,
    iss: URI_TEXT,
    aud: URI_TEXT,
    events_supported: { type: 'array', items: URI_TEXT },
    events_delivered: { type: 'array', items: URI_TEXT },
    min_verification_interval: { type: 'integer', description: 'Seconds.' },
    ...REQUESTED,
  },
  ['stream_id', 'iss', 'aud', 'events_supported', 'events_delivered', 'delivery'],
)

export function addStreams(app: FastifyInstance, deps: SignalDeps): void {
  const { transmitter } = deps
  const common = { ...COMMON, scope: 'ssf.manage', path: SSF_PATHS.stream } as const
  addManagementRoute<{ params: never; body: StreamBody }>(app, deps, {
    ...common,
    method: 'POST',
    operation: 'createStream',
    summary: 'Creates a stream of security events. It begins with the next event.',
    body: CREATED,
    answer: CONFIGURATION,
    creates: true,
    locks: () => [DIRECTORY],
    async handle({ at, caller, body }) {
      const stream = await at.streams.create(receiverOf(caller), body)
      return { status: 'created', body: configurationOf(deps.issuer, stream) }
    },
  })
  addManagementRoute<{ params: never; query: { stream_id?: string } }>(app, deps, {
    ...common,
    method: 'GET',
    operation: 'getStreams',
    summary: 'One stream of the caller; without `stream_id` a list of all.',
    query: { stream_id: STREAM_ID },
    answer: { anyOf: [CONFIGURATION, { type: 'array', items: CONFIGURATION }] },
    async handle({ caller, query }) {
      const receiver = receiverOf(caller)
      if (query.stream_id !== undefined)
        return ok(configurationOf(deps.issuer, found(await transmitter.stream(receiver, query.stream_id), NO_STREAM)))
      return ok((await transmitter.streams(receiver)).map((stream) => configurationOf(deps.issuer, stream)))
    },
  })
  for (const method of ['PATCH', 'PUT'] as const)
    addManagementRoute<{ params: never; body: StreamBody & { stream_id: string } }>(app, deps, {
      ...common,
      method,
      operation: method === 'PUT' ? 'replaceStream' : 'updateStream',
      summary:
        method === 'PUT'
          ? 'Replaces what the receiver supplies: what is absent is deleted.'
          : 'Changes what the receiver supplies: what is absent stays.',
      body: CHANGED,
      answer: CONFIGURATION,
      creates: false,
      locks: () => [DIRECTORY],
      async handle({ at, caller, body }) {
        const change = { body, replace: method === 'PUT' }
        const stream = found(await at.streams.update(receiverOf(caller), body.stream_id, change), NO_STREAM)
        return ok(configurationOf(deps.issuer, stream))
      },
    })
  addManagementRoute<{ params: never; query: { stream_id: string } }>(app, deps, {
    ...common,
    method: 'DELETE',
    operation: 'deleteStream',
    summary: 'Deletes a stream, with what it holds.',
    query: { stream_id: STREAM_ID },
    queryRequired: ['stream_id'],
    answer: null,
    locks: () => [DIRECTORY],
    handle: async ({ at, caller, query }) =>
      done(await at.streams.remove(receiverOf(caller), query.stream_id), NO_STREAM),
  })
}
