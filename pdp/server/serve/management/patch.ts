/** Adds a PATCH beside a PUT: a JSON Merge Patch (RFC 7396) changes members, and the result is written as a PUT would write it. */
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue, storageIssue } from '../../../shared/domain/json.ts'
import { type JsonSchema, object } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, type Call, type ManagementRoute, type Shape } from './route.ts'

type Patch<S extends Shape> = {
  readonly summary: string
  /** Shows the stored state in the form of an answer; default: as it is. */
  shown?(stored: NonNullable<S['stored']>): object
  /** Completes the body of the PUT, if one member depends on another. */
  settled?(merged: JsonObject, from: { readonly patch: JsonObject; readonly before: JsonObject }): JsonObject
}
type Patched<S extends Shape> = {
  readonly body: S['body']
  readonly params: S['params']
  readonly stored: NonNullable<S['stored']>
  readonly prepared: { readonly body: S['body']; readonly prepared: S['prepared'] }
}
export type PutRoute<S extends Shape> = ManagementRoute<S> &
  Required<Pick<ManagementRoute<S>, 'body' | 'state' | 'locks'>>

export function addPutAndPatch<S extends Shape>(
  app: FastifyInstance,
  deps: ManagementDeps,
  route: PutRoute<S>,
  patch: Patch<S>,
): void {
  addManagementRoute<S>(app, deps, route)
  const whole = async (call: Call<S>): Promise<S['body']> => {
    // A body that is too deeply nested to be stored is not merged.
    const issue = storageIssue(call.body as JsonObject)
    if (issue !== null) throw new RequestProblem('request_invalid', `the body ${issue}`)
    const stored = await route.state(call)
    if (stored === null) throw new RequestProblem('not_found', 'there is nothing to change: create it with PUT')
    const before = writable(patch.shown?.(stored) ?? stored, route.body)
    const merged = mergePatch(before, call.body as JsonObject) as JsonObject
    const body = patch.settled?.(merged, { patch: call.body as JsonObject, before }) ?? merged
    call.requireForm(route.body, body)
    return body
  }
  const { prepare: slow, ...quick } = route
  const prepare =
    slow &&
    (async (call: Call<Patched<S>>) => {
      const body = await whole(call)
      return { body, prepared: await slow({ ...call, body }) }
    })
  addManagementRoute<Patched<S>>(app, deps, {
    ...quick,
    method: 'PATCH',
    operation: route.operation.replace(/^put/, 'patch'),
    summary: `${patch.summary} A JSON Merge Patch (RFC 7396): what it does not name stays, and null takes a member away. The rules are those of PUT.`,
    bodies: ['json', 'merge'],
    body: partial(route.body),
    creates: false,
    ...(prepare === undefined ? {} : { prepare }),
    async handle(call, before) {
      const body = await whole(call)
      // The slow work of `prepare` was done for another body.
      if (prepare !== undefined && !isDeepStrictEqual(body, before.body))
        throw new RequestProblem('conflict', 'another request changed it at the same time; send this request again')
      return route.handle({ ...call, body, patch: call.body as JsonObject }, before?.prepared)
    },
  })
}

/** The body for a PUT that changes nothing. */
function writable(shown: object, { properties }: JsonSchema): JsonObject {
  return Object.fromEntries(
    Object.entries(shown).filter(([name, value]) => value !== null && Object.hasOwn(Object(properties), name)),
  )
}

/** Applies a merge patch (RFC 7396 section 2). */
function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch
  const merged = new Map(isJsonObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), value))
  }
  return Object.fromEntries(merged)
}

/** The patch's schema: no member is required, and removable ones may be null. A secret is never shown, so it can only be replaced. */
function partial(schema: JsonSchema): JsonSchema {
  const members = Object.entries(schema.properties as { readonly [name: string]: JsonSchema })
  return object(
    Object.fromEntries(
      members.map(([name, member]) => [name, member.writeOnly === true ? member : orNull(member)] as const),
    ),
  )
}

function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values, description, properties } = schema
  // Parts of an object are validated after the merge.
  if (properties !== undefined || type === 'object' || (Array.isArray(type) && type.includes('object')))
    return {
      type: [...new Set([type, 'object', 'null'].flat())],
      ...(description === undefined ? {} : { description }),
    }
  if (type === undefined) return { anyOf: [schema, { type: 'null' }] }
  return {
    ...schema,
    type: [...new Set([type, 'null'].flat())],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
  }
}
