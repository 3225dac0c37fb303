/** Writes the answer to Envoy. A denial is always a denied response and no error, since Envoy may be configured to let errors pass. */
import { create } from '@bufbuild/protobuf'
import {
  type CheckResponse,
  CheckResponseSchema,
  type HeaderValueOption,
  HeaderValueOptionSchema,
} from '../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import type { Permit } from '../enforce/enforce.ts'
import { answerFields } from '../http/door-fields.ts'
import { type HeaderRules, pairsOf } from '../http/fields.ts'
import { PARTIAL_FIELD } from './check-request.ts'
import { FRAMING_FIELDS, type ownFields, unwantedFields } from './service-fields.ts'

const OK = 0
const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16
const UNAUTHENTICATED_STATUS = 401

/** `toClient`: fields to add to the service's response, names and values alternating. */
export function allowing(
  permit: Permit,
  about: {
    readonly own: ReturnType<typeof ownFields>
    readonly rules: HeaderRules
    /** The client's fields that the service gets with another value; empty: the service does not get the field. */
    readonly rewritten: readonly (readonly [name: string, value: string])[]
    readonly toClient: readonly string[]
  },
): CheckResponse {
  const { rules, rewritten, toClient } = about
  const own = [...about.own, ...rewritten.filter(([, value]) => value !== '')]
  const set = new Set(own.map(([name]) => name))
  const emptied = rewritten.filter(([, value]) => value === '').map(([name]) => name)
  // Envoy removes exact names only, so this lists each spelling in the request, and each identity field that we do not set. It also lists
  // Envoy's own field about a partial body: Envoy hides the client's copy from us and would forward it.
  const unwanted = [
    ...unwantedFields(permit, rules),
    ...answerFields(rules.identity),
    PARTIAL_FIELD,
    ...emptied,
  ].filter((name) => !set.has(name))
  return create(CheckResponseSchema, {
    status: { code: OK },
    httpResponse: {
      case: 'okResponse',
      value: {
        headers: own.map(([name, value]) => option(name, Buffer.from(value, 'latin1').toString(), false)),
        headersToRemove: [...new Set(unwanted)],
        responseHeadersToAdd: options(toClient, isAppended),
      },
    },
  })
}

export function denying({ status, fields, body }: DenialAnswer): CheckResponse {
  return create(CheckResponseSchema, {
    status: { code: status === UNAUTHENTICATED_STATUS ? UNAUTHENTICATED : PERMISSION_DENIED },
    httpResponse: {
      case: 'deniedResponse',
      // In a denial, Envoy sends all fields that are "set", even several of one name, but drops "appended" fields.
      value: { status: { code: status }, headers: options(fields, () => false), body },
    },
  })
}

/** True for fields to append. If set, a cookie or `Vary` would replace those of the service, and those of ours that came before. */
const isAppended = (name: string): boolean => name === 'set-cookie' || name === 'vary'

/** The fields without framing, which Envoy sets itself. */
const options = (fields: readonly string[], appends: (name: string) => boolean): HeaderValueOption[] =>
  pairsOf(fields)
    .filter(([name]) => !FRAMING_FIELDS.has(name))
    .map(([name, value]) => option(name, value, appends(name)))

const option = (key: string, value: string, append: boolean): HeaderValueOption =>
  create(HeaderValueOptionSchema, { header: { key, value }, append })
