/** The answer of the sidecar itself, at the data port and for gateways: a page for people, else a problem document. */
import { withTimeout } from '../../pdp/shared/base/with-timeout.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { corsFields, PUBLIC_CORS } from '../http/cors.ts'
import { isGrpc } from '../http/grpc.ts'
import type { Decided, ExchangeRules } from './decide-exchange.ts'
import type { Denial } from './denial.ts'
import { type DenialAnswer, describeDenial, describeGrpcDenial, OWN_STATUS } from './denial-response.ts'
import { LATE, type OwnAnswer, type Permit } from './enforce.ts'

/** `leftMs`: a page that takes longer is left out, in milliseconds; null: there is no limit. */
export async function answerAlone(
  outcome: Denial | OwnAnswer,
  decided: Decided<ExchangeRules>,
  leftMs: number | null,
): Promise<DenialAnswer> {
  const { browser, requestId, rules } = decided
  if (outcome.kind === 'probe') return probeAnswer(requestId, rules.ready())
  if (outcome.kind === 'keys') return keysAnswer(requestId, rules.assertionKeys ?? '{"keys":[]}')
  if (outcome.kind === 'options' || outcome.kind === 'metadata') return bareAnswer(outcome, requestId, rules)
  const page = await pageFor(outcome, decided, leftMs)
  if (outcome.kind === 'sign_in') return page ?? describeDenial('overloaded', {}, { requestId, metadataUrl: null })
  if (page === null || browser === null) return problemFor(outcome, decided)
  return { ...page, fields: [...page.fields, ...browser.fields()] }
}

/** A slow issuer must not delay the answer: after its time limit a gateway would see an error, and might let the request pass. */
function pageFor(
  outcome: Denial | Extract<OwnAnswer, { kind: 'sign_in' }>,
  { browser, requestId }: Decided<ExchangeRules>,
  leftMs: number | null,
): Promise<DenialAnswer | null> | null {
  if (browser === null && outcome.kind === 'sign_in') throw new TypeError('a sign-in without its settings')
  if (browser === null) return null
  const page: Promise<DenialAnswer | null> =
    outcome.kind === 'sign_in' ? browser.page(outcome.request, requestId) : browser.answer(outcome, requestId)
  return leftMs === null ? page : withTimeout(page, leftMs, () => new Error(LATE)).catch(() => null)
}

/** The problem document, or the gRPC status if the call came to the data port. Gateways turn a document into a gRPC status themselves. */
function problemFor(
  { code, members, route }: Pick<Denial, 'code' | 'members' | 'route'>,
  { client, requestId, browser, rules, isHeld }: Decided<ExchangeRules>,
): DenialAnswer {
  const context = { requestId, metadataUrl: rules.metadata?.url ?? null, nonce: rules.proofNonce() }
  const describe = !isHeld && client.version === '2' && isGrpc(client.raw) ? describeGrpcDenial : describeDenial
  // A gateway could not forward an answer of MCP with status 200 as a denial.
  const answer = describe(code, isHeld ? { ...members, rpc: undefined } : members, context)
  const cors = corsFields(route === null ? rules.enforcing.cors : route.cors, client.raw)
  return { ...answer, fields: [...answer.fields, ...cors, ...(browser?.fields() ?? NO_FIELDS)] }
}

function bareAnswer(
  own: Extract<OwnAnswer, { kind: 'options' | 'metadata' }>,
  requestId: string,
  { metadata }: ExchangeRules,
): DenialAnswer {
  const id = ['x-request-id', requestId]
  if (own.kind === 'options')
    return { status: OWN_STATUS.options, fields: ['allow', own.allow.join(', '), ...own.fields, ...id], body: '' }
  const fields = ['content-type', 'application/json', ...corsFields(PUBLIC_CORS, []), ...id]
  return { status: OWN_STATUS.metadata, fields, body: metadata?.body ?? '' }
}

/** The answer to a load balancer's probe. It has no reason; the admin port gives the reason. */
function probeAnswer(requestId: string, ready: boolean): DenialAnswer {
  const body = ready ? 'ok\n' : 'not ready\n'
  const fields = ['content-type', 'text/plain', 'cache-control', 'no-store', 'x-request-id', requestId]
  return { status: ready ? OWN_STATUS.ready : OWN_STATUS.notReady, fields, body }
}

/** The key set for services, which caches keep for 60 seconds. A verifier asks again for a key that its copy lacks. */
function keysAnswer(requestId: string, body: string): DenialAnswer {
  const fields = ['content-type', 'application/jwk-set+json', 'cache-control', 'max-age=60', 'x-request-id', requestId]
  return { status: OWN_STATUS.metadata, fields, body }
}

/** The nonce for the next proof, in the response to a request with a valid proof (RFC 9449 section 8.2). Names and values alternate. */
export function nextNonce(
  { request, identity }: Permit,
  { proofNonce }: Pick<ExchangeRules, 'proofNonce'>,
): readonly string[] {
  const nonce = identity !== null && request.proofs.length > 0 ? proofNonce() : null
  return nonce === null ? NO_FIELDS : ['dpop-nonce', nonce]
}

/** CORS fields for a page of another origin, if the service does not answer CORS itself. Names and values alternate. */
export const sharedFields = ({ cors }: Permit['route'], { raw }: Pick<ClientRequest, 'raw'>): readonly string[] =>
  cors?.passesPreflights === true ? NO_FIELDS : corsFields(cors, raw)

const NO_FIELDS: readonly string[] = []
