/** Subject, resource and action search, in pages. A search returns exactly what an evaluation would allow. */
import type { AskedSubject, Decision, ListPage, Pdp } from '../../../shared/domain/decision.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { isType } from '../../../shared/domain/names.ts'
import { formatPageToken, parsePageToken, shortDigest } from '../../../shared/domain/page-token.ts'
import { withoutTokens } from '../../../shared/domain/revision.ts'
import { isBearer } from '../../../shared/domain/subjects.ts'
import type { ActiveToken } from '../authentication/credentials.ts'
import { RequestProblem } from '../http/status.ts'
import { type Asker, type CallerDeps, isSame, organizationOf, setsContext, subjectOf } from './caller.ts'
import {
  type Entity,
  objectAt,
  objectOf,
  readAction,
  readContext,
  readEntity,
  readType,
  relationOf,
} from './entities.ts'
import { formatPage, type PageRequest, readPage, strangeToken } from './pages.ts'

export type SearchDeps = CallerDeps & { readonly pdp: Pdp }
/** `page` comes first in the answer: readers of a stream need it before the results. */
export type SearchResponse = {
  readonly page: { readonly next_token: string; readonly count: number }
  readonly context?: JsonObject
  readonly results: readonly ({ readonly type: string; readonly id: string } | { readonly name: string })[]
}
type SearchIn = {
  readonly organization: string | null
  readonly context: { readonly context?: JsonObject }
  readonly page: PageRequest
}

const CHECKS_PER_QUESTION = 256
const NOTHING: SearchResponse = { page: { next_token: '', count: 0 }, results: [] }

/** The subjects of a type that may do the action on the resource. Only a service may ask. Throws RequestProblem and PdpError. */
export async function searchSubjects(deps: SearchDeps, asker: Asker, body: unknown): Promise<SearchResponse> {
  const { token } = asker
  const request = objectAt(body, '')
  const type = readType(request.subject, '/subject')
  const action = readAction(request.action, '/action')
  const resource = readEntity(request.resource, '/resource')
  const question = ['subject', type, action, resource.type, resource.id]
  const { organization, context, page } = await scopeOf(asker, { request, question })
  if (token.subject.type !== 'service')
    throw new RequestProblem('permission_denied', 'only a client_credentials token may search for subjects')
  const name = objectOf(resource)
  const relation = relationOf(action, resource.type)
  if (organization === null || !isType(type) || relation === null || name === null) return NOTHING
  return listed(page, (at) =>
    deps.pdp.listSubjects({ ...at, ...context, organization, type, relation, resource: name, app: token.app }),
  )
}

/** The resources of a type on which the subject may do the action. Throws RequestProblem and PdpError. */
export async function searchResources(deps: SearchDeps, asker: Asker, body: unknown): Promise<SearchResponse> {
  const { token } = asker
  const request = objectAt(body, '')
  const entity = readEntity(request.subject, '/subject')
  const action = readAction(request.action, '/action')
  const type = readType(request.resource, '/resource')
  const question = ['resource', entity.type, entity.id, action, type]
  const { organization, context, page } = await scopeOf(asker, { request, question })
  const subject = await knownSubject(deps, { token, entity, organization })
  // Refused: a list uses only stored groups, so with a token's groups and a "but not" it could show what an evaluation denies.
  if (token.memberships !== undefined)
    throw new RequestProblem(
      'permission_denied',
      'a token that names groups may not search for resources: evaluate them',
    )
  const relation = relationOf(action, type)
  if (organization === null || subject === null || !isType(type) || relation === null) return NOTHING
  return listed(page, async (at) => {
    const found = await deps.pdp.listResources({
      ...at,
      ...context,
      organization,
      subject,
      type,
      relation,
      app: token.app,
    })
    if (!isSame(subject, token.subject) || token.actors.length === 0) return found
    // The list was made for the person alone, so each item is checked again with the clients that act for the person.
    const { actors, audiences, app } = token
    const asking = { ...context, organization, subject, actors, scopes: [...token.scopes], audiences, app }
    const kept = await Promise.all(
      found.items.map(async (resource) => {
        const { permissions } = await deps.pdp.decide({ ...asking, permissions: [{ relation, resource }] })
        return permissions[0]?.allowed === true
      }),
    )
    return { ...found, items: found.items.filter((_, at) => kept[at] === true) }
  })
}

/** The relations, or permission keys, that the subject has on the resource. Throws RequestProblem and PdpError. */
export async function searchActions(deps: SearchDeps, asker: Asker, body: unknown): Promise<SearchResponse> {
  const { token } = asker
  const request = objectAt(body, '')
  const entity = readEntity(request.subject, '/subject')
  const resource = readEntity(request.resource, '/resource')
  const question = ['action', entity.type, entity.id, resource.type, resource.id]
  const { organization, context, page } = await scopeOf(asker, { request, question })
  const subject = await knownSubject(deps, { token, entity, organization })
  const name = objectOf(resource)
  if (organization === null || subject === null || name === null) return NOTHING
  const from = page.after === null ? null : parsePageToken(ACTIONS, page.after)
  if (from === undefined) throw strangeToken()
  if (page.limit === 0) return emptyPage(page)
  const known = await deps.pdp.relations(organization, resource.type)
  const names = known.filter((relation) => from === null || relation > from.after)
  if (names.length === 0) return NOTHING
  const answers = await decideAll(deps.pdp, { token, context, organization, subject, resource: name, names })
  const after = await deps.pdp.relations(organization, resource.type)
  const allowed = answers.flatMap(({ permissions }) => permissions.filter((p) => p.allowed).map((p) => p.relation))
  const shown = allowed.slice(0, page.limit)
  const [revision = '', ...others] = new Set(answers.map((answer) => withoutTokens(answer.revision)))
  const digest = shortDigest(revision)
  // A model that was replaced during the search has other relations.
  const isOne = others.length === 0 && JSON.stringify(known) === JSON.stringify(after)
  const consistent = isOne && (from === null || from.revision === digest)
  const last = shown.at(-1)
  const more = last !== undefined && allowed.length > shown.length
  return {
    page: {
      next_token: more
        ? formatPage(page, formatPageToken(ACTIONS, { after: last, revision: consistent ? digest : null }))
        : '',
      count: shown.length,
    },
    context: { revision, consistent },
    results: shown.map((relation) => ({ name: relation })),
  }
}

/** The kind of this search in page tokens. Other searches use the tokens of their lists. */
const ACTIONS = ['actions'] as const
const emptyPage = (page: PageRequest): SearchResponse => ({
  page: { next_token: formatPage(page, page.after), count: 0 },
  results: [],
})

async function scopeOf(
  asker: Asker,
  { request, question }: { request: JsonObject; question: readonly string[] },
): Promise<SearchIn> {
  const { token } = asker
  const { organization: named, parameters } = readContext(request)
  const organization = await organizationOf(asker, named)
  const asked = JSON.stringify([token.clientId, token.subject, organization, question, parameters])
  const context = setsContext(token) && Object.keys(parameters).length > 0 ? { context: parameters } : {}
  return { organization, context, page: readPage(request.page, shortDigest(asked)) }
}

/** The subject; null: it does not exist and so has nothing, not even what `user:*` has. */
async function knownSubject(
  deps: SearchDeps,
  { token, entity, organization }: { token: ActiveToken; entity: Entity; organization: string | null },
): Promise<AskedSubject | null> {
  if (organization === null) return null
  const subject = await subjectOf(deps, token, entity)
  // The bearer of a valid token exists, although an external issuer's user is not in our directory.
  if (subject === null || !isBearer(subject) || isSame(subject, token.subject)) return subject
  return (await deps.directory.exists(subject, organization)) ? subject : null
}

/** Converts pages of our own lists to pages of AuthZEN. */
async function listed(
  page: PageRequest,
  read: (at: { pageSize: number; pageToken: string | null }) => Promise<ListPage>,
): Promise<SearchResponse> {
  if (page.limit === 0) return emptyPage(page)
  const found = await readList(read, page)
  // `user:*` is no entity, so the context's member `public` tells that it was found.
  const isPublic = found.items.some((item) => item.endsWith(':*'))
  const results = found.items.filter((item) => !item.endsWith(':*')).map(entityOf)
  const next = found.nextPageToken === null ? '' : formatPage(page, found.nextPageToken)
  return {
    page: { next_token: next, count: results.length },
    context: {
      revision: found.revision,
      consistent: found.revisionUnchanged,
      ...(isPublic ? { public: true } : {}),
      ...(found.complete ? {} : { complete: false }),
    },
    results,
  }
}

async function readList(
  read: (at: { pageSize: number; pageToken: string | null }) => Promise<ListPage>,
  page: PageRequest,
): Promise<ListPage> {
  try {
    return await read({ pageSize: page.limit, pageToken: page.after })
  } catch (err) {
    if (err instanceof PdpError && err.issues.some(({ place }) => place === '/pageToken')) throw strangeToken(err)
    throw err
  }
}

function entityOf(item: string): Entity {
  const colon = item.indexOf(':')
  return { type: item.slice(0, colon), id: item.slice(colon + 1) }
}

/** Asks all questions at once, so that one read of the store serves them. */
function decideAll(
  pdp: Pdp,
  of: {
    readonly token: ActiveToken
    readonly context: SearchIn['context']
    readonly organization: string
    readonly subject: AskedSubject
    readonly resource: string
    readonly names: readonly string[]
  },
): Promise<readonly Decision[]> {
  const { token, context, organization, subject, resource, names } = of
  const slices = Array.from({ length: Math.ceil(names.length / CHECKS_PER_QUESTION) }, (_, i) =>
    names.slice(i * CHECKS_PER_QUESTION, (i + 1) * CHECKS_PER_QUESTION),
  )
  return Promise.all(
    slices.map((slice) =>
      pdp.decide({
        organization,
        subject,
        permissions: slice.map((relation) => ({ relation, resource })),
        app: token.app,
        audiences: token.audiences,
        // Groups and acting clients of the token count only for its bearer.
        ...(isSame(subject, token.subject) && token.memberships !== undefined && { memberships: token.memberships }),
        ...(isSame(subject, token.subject) &&
          token.actors.length > 0 && { actors: token.actors, scopes: [...token.scopes] }),
        ...context,
      }),
    ),
  )
}
