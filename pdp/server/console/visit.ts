/** One request of a signed-in person: identity, rights, and the management API with these rights. */
import type { FastifyRequest } from 'fastify'
import { cookieOf } from '../../identity/oauth/own-cookies.ts'
import { holdsScope } from '../../identity/oauth/scopes.ts'
import type { ConsoleIdentity, ConsoleSession } from '../../identity/people/sign-in/console-sessions.ts'
import type { Html } from '../../shared/base/html.ts'
import { isId } from '../../shared/domain/names.ts'
import type { Branding } from '../../shared/pages/brand.ts'
import type { Log } from '../../shared/process/log.ts'
import { authorizePerson, type People, scopesEverywhere, scopesWithin } from '../serve/authentication/people.ts'
import type { DecisionArchive } from '../serve/decisions/decision-archive.ts'
import type { DecisionRing } from '../serve/decisions/decision-ring.ts'
import type { RouteReports } from '../serve/grpc/route-reports.ts'
import { RequestProblem, type RequestProblemCode, STATUS, SUCCESS } from '../serve/http/status.ts'
import type { ManagementDeps } from '../serve/management/deps.ts'
import { type SentForm, sentForm } from './kept-form.ts'
import type { OwnServer } from './own-server.ts'
import type { Place } from './sections/table.ts'
import { type Reading, zoneIn } from './sections/times.ts'

/** The oldest sign-in that a write accepts. */
export const FRESH_MS = 900_000
const ORGANIZATIONS_MAX = 50
/** How often a change is tried again when other writes come first. */
const CHANGE_ATTEMPTS_MAX = 3

export type ConsoleDeps = {
  readonly issuer: string
  /** The brand, as on the pages of the identity service. */
  readonly branding: Branding
  readonly identity: ConsoleIdentity
  readonly people: People
  readonly management: Pick<ManagementDeps, 'store' | 'directory' | 'pdp'>
  readonly decisions: DecisionRing
  /** The archive of decisions of all PDPs; null: none is kept. */
  readonly archive: Pick<DecisionArchive, 'denied' | 'ranked' | 'perMinute'> | null
  readonly routes: Pick<RouteReports, 'all'>
  readonly log: Log
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}
/** The answer of a screen: a page, a file to save, or another page to go to. */
export type View =
  | { readonly title: string; readonly body: Html; readonly status?: number }
  | { readonly file: string; readonly type: string; readonly text: string }
  | { readonly goTo: string }

export type ConsoleVisit = Place & {
  readonly deps: ConsoleDeps
  readonly path: string
  readonly person: { readonly id: string; readonly name: string }
  /** The id under which the log records the person's writes. */
  readonly requestId: string
  readonly session: ConsoleSession
  /** The token that every form that writes contains. */
  readonly csrf: string
  /** The organization that the screen is about; null: the person may look into none. */
  readonly organization: string | null
  /** The organization does not exist. Only people with rights everywhere learn this. */
  readonly isOrganizationMissing: boolean
  readonly organizations: readonly { readonly id: string; readonly name: string }[]
  /** A parameter of the URL; empty: there is none. */
  query(name: string): string
  /** A field of the form that was sent. */
  form(name: string): string
  readonly sent: SentForm
  /** The present time and the person's zone, to read times that the person writes. */
  readonly reading: Reading
  /** Whether the person has the management scope here: in the organization, or everywhere. */
  may(scope: string): boolean
  mayEverywhere(scope: string): boolean
  /** Whether the person has the scope in another organization than the one in view. */
  mayWithin(scope: string, organization: string): Promise<boolean>
  /** The sign-in is recent and as strong as the person can make it, so writes are allowed. */
  readonly isFresh: boolean
  /** Calls the management API with the person's own rights. Throws RequestProblem. */
  api<T>(method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: object): Promise<T>
  /** Writes what `change` makes of the stored state, if not null; never overwrites a change made meanwhile. Throws RequestProblem. */
  change<T>(path: string, change: (stored: T) => object | null): Promise<void>
  /** Requires a scope for what is no call of the management API. Throws RequestProblem. */
  requireScope(scope: string): Promise<void>
}

export async function openVisit(
  call: OwnServer,
  deps: ConsoleDeps,
  of: { readonly request: FastifyRequest; readonly session: ConsoleSession; readonly csrf: string },
): Promise<ConsoleVisit> {
  const { request, session, csrf } = of
  const { management, people } = deps
  const query = (name: string): string => one(request.query, name)
  const user = await management.directory.user(session.user)
  const wide = await scopesEverywhere(management, session.user)
  const organizations = await organizationsOf(deps, session.user, wide)
  const asked = query('org')
  const organization = asked === '' ? (organizations[0]?.id ?? null) : asked
  const here = organization === null ? new Set<string>() : await scopesWithin(management, session.user, organization)
  const mayBeMissing = asked !== '' && wide.size > 0 && !organizations.some(({ id }) => id === asked)
  const person = { user: session.user, requestId: request.id }
  const isRecent = deps.clock() - session.signedInMs <= FRESH_MS
  const isFresh = isRecent && (session.acr === 'mfa' || !(await deps.identity.hasSecondFactor(session.user)))
  return {
    deps,
    path: request.url.split('?', 1)[0] ?? '',
    url: request.method === 'GET' ? request.url : null,
    tables: new Map(),
    person: { id: session.user, name: user?.name ?? user?.email ?? session.user },
    requestId: request.id,
    session,
    csrf,
    organization,
    isOrganizationMissing: mayBeMissing && (!isId(asked) || (await management.pdp.ancestors(asked)) === null),
    organizations,
    query,
    form: (name) => one(request.body, name),
    sent: sentForm(request.url, request.body),
    reading: { nowMs: deps.clock(), zone: zoneIn(cookieOf(request, ZONE_COOKIE)) },
    may: (scope) => holdsScope(wide, scope) || holdsScope(here, scope),
    mayEverywhere: (scope) => holdsScope(wide, scope),
    mayWithin: async (scope, at) =>
      holdsScope(wide, scope) || holdsScope(await scopesWithin(management, session.user, at), scope),
    isFresh,
    ...managementAs(person, { call, people }),
    async requireScope(scope) {
      await authorizePerson(management, person, { scope, organization })
    },
  }
}

function managementAs(
  person: { readonly user: string; readonly requestId: string },
  { call, people }: { readonly call: OwnServer; readonly people: People },
): Pick<ConsoleVisit, 'api' | 'change'> {
  const send = <T>(
    method: string,
    path: string,
    { body, tag = null }: { readonly body?: object | undefined; readonly tag?: string | null } = {},
  ): Promise<{ readonly value: T; readonly tag: string | null }> =>
    people.as(person, async (authorization) => {
      const headers = { authorization, 'x-request-id': person.requestId, ...(tag !== null && { 'if-match': tag }) }
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await call({ method, path, headers: { ...headers, ...type }, ...sent })
      const value = answer.text === '' ? null : JSON.parse(answer.text)
      if (answer.status <= SUCCESS.empty) return { value, tag: answer.tag }
      throw problemIn(value)
    })
  return {
    api: async <T>(method: string, path: string, body?: object) => (await send<T>(method, path, { body })).value,
    async change<T>(path: string, change: (stored: T) => object | null) {
      for (let attempt = 1; ; attempt++) {
        const { value, tag } = await send<T>('GET', path)
        const body = change(value)
        try {
          if (body !== null) await send('PUT', path, { body, tag })
          return
        } catch (err) {
          const isOvertaken = err instanceof RequestProblem && err.code === 'precondition_failed'
          if (!isOvertaken || attempt === CHANGE_ATTEMPTS_MAX) throw err
        }
      }
    },
  }
}

/** The cookie with the reader's time zone, which a script or the person chose. */
export const ZONE_COOKIE = 'portcullis_zone'

/** The first value of a parameter that was given several times. */
function one(values: unknown, name: string): string {
  if (typeof values !== 'object' || values === null || !Object.hasOwn(values, name)) return ''
  const found: unknown = [Object.entries(values).find(([key]) => key === name)?.[1]].flat()[0]
  return typeof found === 'string' ? found : ''
}

/** The problem in an answer of the API. */
function problemIn(value: {
  code: RequestProblemCode
  detail?: string
  errors?: readonly {
    readonly pointer?: string
    readonly parameter?: string
    readonly line?: number
    readonly column?: number
    readonly detail: string
  }[]
}): RequestProblem {
  const code = Object.hasOwn(STATUS, value.code) ? value.code : 'internal'
  if (value.errors?.some(({ parameter }) => parameter === 'page_token'))
    return new RequestProblem(
      code,
      'This address names a page that the list does not have. Open the list from its beginning.',
    )
  const issues = (value.errors ?? []).map(({ pointer, parameter, line, column, detail }) => ({
    place: pointer ?? parameter ?? (line === undefined ? '' : `line ${line}, column ${column ?? 1}`),
    message: detail,
  }))
  return new RequestProblem(code, value.detail ?? 'the call was refused', { issues })
}

/** Organizations that the person may choose: all with an environment-wide role, else those with a membership or a role. */
async function organizationsOf(
  { management }: ConsoleDeps,
  user: string,
  wide: ReadonlySet<string>,
): Promise<ConsoleVisit['organizations']> {
  const { store, directory } = management
  if (wide.size > 0) return store.organizations({}, { after: null, countMax: ORGANIZATIONS_MAX })
  const memberships = await directory.activeMemberships(user)
  const grants = await store.roleGrants({ subject: `user:${user}` }, { after: null, countMax: ORGANIZATIONS_MAX })
  const named = new Map(memberships.map(({ organization }) => [organization.id, organization.name]))
  for (const { log } of grants) if (!log.startsWith('#') && !named.has(log)) named.set(log, log)
  const held: { id: string; name: string }[] = []
  for (const [id, name] of [...named].slice(0, ORGANIZATIONS_MAX)) {
    if ((await scopesWithin(management, user, id)).size > 0) held.push({ id, name })
  }
  return held
}
