/** Decides a request that waits in a gateway as if it had come to the data port, and tells the gateway what to do. */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { type Closing, type Decided, decideExchange, type ExchangeRules } from '../enforce/decide-exchange.ts'
import { type DenialAnswer, type DenialMembers, describeDenial } from '../enforce/denial-response.ts'
import type { Permit } from '../enforce/enforce.ts'
import { answerAlone, sharedFields } from '../enforce/own-answer.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import { type HeaderNames, type HeaderRules, valuesOf } from '../http/fields.ts'
import { RequestError } from '../request/errors.ts'
import type { Origin } from '../request/origin.ts'
import { isUntyped, readBody } from '../routes/json-body.ts'

/** The route file's rules in force when a gateway asks, with parts of the process. */
export type DoorRules = ExchangeRules & {
  readonly forwarding: { readonly rules: HeaderRules; readonly headers: HeaderNames; readonly publicPort: number }
}
/** Returns the rules in force now; they stay usable until `closing` closes. */
export type EnterDoor = (closing: Closing) => DoorRules
/** The request that a gateway holds, as the gateway describes it. */
export type HeldRequest = { readonly client: ClientRequest; readonly origin: Origin }
export type DoorQuestion = HeldRequest & {
  readonly door: DoorProfile
  /** True if the gateway sends bodies: else no check can read a body or its absence. */
  readonly holdsBody: boolean
  /** The time in milliseconds by which the gateway must have an answer. */
  readonly withinMs: number
  /** The reason for which a permitted request may not pass this gateway; null: it may. */
  readonly objection: (permit: Permit, rules: DoorRules) => string | null
}
export type DoorOutcome =
  | {
      readonly kind: 'allow'
      readonly permit: Permit
      /** The rules that permitted the request; they also decide which fields the service may get. */
      readonly rules: DoorRules
      readonly origin: Origin
      readonly requestId: string
      /** Fields to add to the service's response, names and values alternating. */
      readonly toClient: readonly string[]
      /** The client's fields that the service gets with another value; empty: not at all. */
      readonly rewritten: readonly (readonly [name: string, value: string])[]
    }
  /** The answer that the client gets instead of the service's. */
  | { readonly kind: 'answer'; readonly answer: DenialAnswer }

/** Never rejects. Allows only with a Permit. */
export async function evaluateHeld(asked: DoorQuestion, enter: EnterDoor): Promise<DoorOutcome> {
  const { client, door, holdsBody, origin, withinMs, objection } = asked
  const closing = openQuestion()
  const rules = enter(closing)
  try {
    return await decideExchange<DoorRules, DoorOutcome>(
      {
        client,
        door,
        upgrade: false,
        closing,
        originBy: () => origin,
        async readBody(seen, request, limited) {
          // A door without bodies cannot see whether there is one; a request without media type seldom has one, so none is assumed.
          if (!holdsBody && limited.need === 'absence' && isUntyped(request)) return NO_BODY
          if (!holdsBody) throw new RequestError('media_type_unsupported', UNSEEN, `${UNSEEN}; ${SEEN}`)
          return readBody(seen, request, limited)
        },
        latest: () => enter(closing),
        withinMs,
        objection,
      },
      rules,
      {
        answer: (decided) => answerGateway(decided, asked),
        fail: (requestId) => ({ kind: 'answer', answer: failure('internal', requestId) }),
      },
    )
  } finally {
    closing.end()
  }
}

/** An exchange that ends with the answer to the gateway: the service's response does not pass the door. */
function openQuestion(): Closing & { readonly end: () => void } {
  const listeners: (() => void)[] = []
  const add = (_event: 'close', listener: () => void): number => listeners.push(listener)
  const question = {
    destroyed: false,
    on: add,
    once: add,
    end() {
      question.destroyed = true
      for (const listener of listeners) listener()
    },
  }
  return question
}

async function answerGateway(decided: Decided<DoorRules>, asked: DoorQuestion): Promise<DoorOutcome> {
  const { outcome, rules, origin, requestId, browser, durationMs } = decided
  if (outcome.kind === 'permit') {
    const toClient = [...sharedFields(outcome.route, asked.client), ...(browser?.fields() ?? [])]
    return {
      kind: 'allow',
      permit: outcome,
      rules,
      origin,
      requestId,
      toClient,
      rewritten: rewrittenFields(outcome, asked),
    }
  }
  if (outcome.kind === 'denial' && outcome.code === 'internal')
    return { kind: 'answer', answer: failure('internal', requestId) }
  return { kind: 'answer', answer: await answerAlone(outcome, decided, asked.withinMs - durationMs) }
}

const NO_BODY = Buffer.alloc(0)
const UNSEEN = 'This route takes no typed body here, because the gateway does not send the body'
const SEEN = 'to let it pass unread, set body: keep'

/** Fields that the gateway must change: it would forward the sidecar's cookies, and lacks the token of a session. */
function rewrittenFields({ request, route }: Permit, { client }: DoorQuestion): readonly (readonly [string, string])[] {
  const names = [...(route.forwardToken ? ['cookie', 'authorization'] : ['cookie']), ...(route.tokenFrom?.header ?? [])]
  return names.flatMap((name) => {
    const value = valuesOf(request.raw, name).join('; ')
    return value === valuesOf(client.raw, name).join('; ') ? [] : [[name, value] as const]
  })
}

/** An error of our own is 503 for gateways, so that they neither let the request pass nor blame the service. */
export function failure(code: ProblemCode, requestId: string, members: DenialMembers = {}): DenialAnswer {
  const answer = describeDenial(code, members, { requestId, metadataUrl: null })
  if (answer.status === UNAVAILABLE) return answer
  // The problem document contains the status, too.
  const body = JSON.stringify({ ...JSON.parse(answer.body), status: UNAVAILABLE })
  const fields = answer.fields.map((value, at) =>
    answer.fields[at - 1] === 'content-length' && at % 2 === 1 ? String(Buffer.byteLength(body)) : value,
  )
  return { status: UNAVAILABLE, fields, body }
}

const UNAVAILABLE = 503
