/** Findings for operators: missing values of questions, late streams, issuers that do not answer, an old signing key. */
import { type Html, html } from '../../shared/base/html.ts'
import type { DecisionRing } from '../serve/decisions/decision-ring.ts'
import { shellWord } from './answer-texts.ts'
import { address, instant, link, name } from './parts.ts'
import type { ConsoleVisit } from './visit.ts'

export type Finding = { readonly what: Html; readonly todo: Html }
type Stream = {
  readonly stream_id: string
  readonly client_id: string
  readonly status: string
  readonly lag_seconds: number
  readonly last_error: string | null
}
/** The same time as in the alert PortcullisSignalsLate. */
const LAG_SECONDS = 600
const KEY_AGE_DAYS = 365
const DAY_MS = 86_400_000

/** Streams whose receivers do not take their events. */
export async function ofStreams(visit: ConsoleVisit): Promise<readonly Finding[]> {
  if (!visit.mayEverywhere('streams:read')) return []
  const { items } = await visit.api<{ readonly items: readonly Stream[] }>('GET', '/v1/streams')
  return items.flatMap(({ stream_id: stream, client_id: client, status, lag_seconds: lag, last_error: error }) => {
    const isLate = status === 'enabled' && lag > LAG_SECONDS
    if (!isLate && status !== 'paused') return []
    const why = error === null ? '' : `: ${error}`
    const what = isLate
      ? html`Security events wait for ${name(client)} since ${String(Math.round(lag / 60))} minutes${why}`
      : html`The stream of ${name(client)} is paused${why}`
    return [
      { what, todo: link(address('streams', { org: visit.organization, stream }), 'See what its receiver answers') },
    ]
  })
}

/** Values that questions did not bring: grants with a condition on them cannot count. */
export function ofConditions({
  deps,
  organization: org,
  may,
}: Pick<ConsoleVisit, 'organization' | 'may'> & {
  readonly deps: { readonly decisions: Pick<DecisionRing, 'latest'> }
}): readonly Finding[] {
  if (org === null || !may('decisions:read')) return []
  const found = new Map<string, Finding>()
  for (const { organization, route, permissions } of deps.decisions.latest()) {
    if (organization !== org) continue
    for (const { resource, missingContext = [] } of permissions)
      for (const key of missingContext) {
        const type = resource.slice(0, resource.indexOf(':'))
        const asker = route === null ? 'An application' : html`Route ${name(route)}`
        found.set(JSON.stringify([route, key, type]), {
          what: html`${asker} sends no ${name(key)}, which grants on ${name(type)} need`,
          todo: link(address('decisions', { org, ...(route !== null && { route }) }), 'See its questions'),
        })
      }
  }
  return [...found.values()]
}

/** Findings of the identity service. */
export async function ofIdentity(visit: ConsoleVisit): Promise<readonly Finding[]> {
  if (!visit.mayEverywhere('issuers:read')) return []
  const { signingKeyMadeMs, unreachableIssuers, silentIssuers } = await visit.deps.identity.state()
  const ageDays = Math.floor((visit.deps.clock() - signingKeyMadeMs) / DAY_MS)
  const key =
    ageDays > KEY_AGE_DAYS
      ? [
          {
            what: html`The key that signs tokens was made ${String(ageDays)} days ago`,
            todo: html`<code>portcullis-pdp keys rotate</code>`,
          },
        ]
      : []
  return [
    ...key,
    ...unreachableIssuers.map(({ issuer, sinceMs }) => ({
      what: html`The trusted issuer ${name(issuer)} does not answer since ${instant(sinceMs)}: its tokens are refused with 503`,
      todo: html`<code>portcullis issuer show ${shellWord(issuer)}</code>`,
    })),
    ...silentIssuers.map(({ issuer, error }) => ({
      what: html`The transmitter of ${name(issuer)} is silent${error === null ? '' : html`: ${name(error)}`}`,
      todo: html`<code>portcullis issuer show ${shellWord(issuer)}</code>`,
    })),
  ]
}
