/** External OpenID providers where people may sign in. */
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import {
  AUTH_METHODS,
  type IdentityProvider,
  type ProviderDocument,
} from '../../../../identity/people/upstream-providers/providers.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import { isSafeKeyUrl } from '../../../../shared/token/remote-keys.ts'
import { isWithin, type ManagementClient, reachOf, requireWithin } from '../../authentication/authenticate.ts'
import { ID, LABEL, object, SECRET, text, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps, Reach } from '../deps.ts'
import { requireOwnName } from '../own-names.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, put } from '../route.ts'

const SHOWN = {
  issuer: { type: 'string', maxLength: 512, description: 'Exactly as its metadata and its ID tokens name it.' },
  client_id: text('^[\\x20-\\x7e]{1,256}$', '1 to 256 ASCII characters'),
  name: { ...LABEL, description: 'On the button: "Sign in with <name>".' },
  token_endpoint_auth_method: {
    type: 'string',
    enum: AUTH_METHODS,
    description: 'How we authenticate there. Default: `client_secret_basic`.',
  },
  scopes: {
    type: 'array',
    maxItems: 20,
    uniqueItems: true,
    items: text('^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,128}$', 'a scope (RFC 6749 section 3.3)'),
    description: 'Besides `openid`. Default: `email` and `profile`.',
  },
  email_domains: {
    type: 'array',
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    items: text('^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$', 'a domain in lower case'),
    description: 'Only people whose address is verified there and of one of these domains may sign in.',
  },
  organizations: {
    type: 'array',
    minItems: 1,
    maxItems: 1_000,
    uniqueItems: true,
    items: ID,
    description:
      'Only active members of one of these may sign in by it, and only their pages offer it. Absent: everybody.',
  },
  organization: {
    ...ID,
    description:
      'The organization whose own clients manage it; for a bound client, its own. Nobody signs in by it who has a membership, a role or a relationship outside, or manages Portcullis.',
  },
  creates_accounts: {
    type: 'boolean',
    description:
      'A person who is new here gets an account, if the provider has verified the address and no account has it. Default: false.',
  },
  identity_assertions: {
    type: 'boolean',
    description:
      'Clients with the grant type `urn:ietf:params:oauth:grant-type:jwt-bearer` get tokens by its identity assertions (ID-JAG), for people who are connected with it. Default: false.',
  },
  trusted_acr: {
    type: 'array',
    minItems: 1,
    maxItems: 20,
    uniqueItems: true,
    items: text('^[\\x21-\\x7e]{1,256}$', '1 to 256 visible ASCII characters'),
    description:
      'Values of `acr` with which a sign-in there counts as one with a second factor. Otherwise ours is asked for.',
  },
}
const BODY = object(
  {
    ...SHOWN,
    client_secret: {
      ...SECRET,
      writeOnly: true,
      description: 'Stored encrypted and never shown. Absent: the stored one stays.',
    },
  },
  ['issuer', 'client_id', 'name'],
)
/** Matches a name, before whose `~` is a bound client's organization. */
const NAME = /^(?:[\w.-]{1,128}~)*[a-z0-9][a-z0-9-]{0,62}$/
const PROVIDER = object({ id: ID, ...SHOWN }, ['id', 'issuer', 'client_id', 'name'])
const PATH = '/v1/identity-providers/:id'

export function addIdentityProviders(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Issuers', scope: 'identity-providers:write', organizationScope: 'call' } as const
  const route: PutRoute<{
    params: 'id'
    body: ProviderDocument & { readonly client_secret?: string }
    stored: IdentityProvider
  }> = {
    ...common,
    method: 'PUT',
    path: PATH,
    operation: 'putIdentityProvider',
    summary:
      'Lets people sign in at another OpenID provider. Its redirect URI is `<issuer>/account/providers/<id>`. A person there is known by issuer and subject, never by an address.',
    body: BODY,
    answer: PROVIDER,
    locks: () => [ENVIRONMENT],
    state: ({ at, caller, params }) => providerOf(at, caller, params.id),
    async handle({ at, caller, params: { id }, body, stored, context }) {
      const { client_secret: secret = null, ...wanted } = body
      requireUsable(id, wanted)
      const document = await ownDocument(at, caller, { id, wanted, stored })
      const existed = await at.identityProviders.put(id, { ...document, secret }, context)
      return put(existed, (await providerOf(at, caller, id)) ?? {})
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes an identity provider.' })
  addManagementRoute<{ params: 'id'; stored: IdentityProvider }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteIdentityProvider',
    summary: 'Nobody can sign in by it from now on. The connections of people with it stay stored.',
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at, caller, params }) => providerOf(at, caller, params.id),
    async handle({ at, params: { id }, stored, context }) {
      return done(stored !== null && (await at.identityProviders.remove(id, context)), missing(id))
    },
  })
  addManagementRoute<{ params: 'id'; stored: IdentityProvider }>(app, deps, {
    ...common,
    method: 'GET',
    path: PATH,
    operation: 'getIdentityProvider',
    summary: 'One identity provider.',
    answer: PROVIDER,
    state: ({ at, caller, params }) => providerOf(at, caller, params.id),
    handle: async ({ params: { id }, stored }) => ok(found(stored, missing(id))),
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/identity-providers',
    operation: 'listIdentityProviders',
    summary: 'All identity providers; for a bound client, those of the organizations that it manages.',
    answer: whole({ items: { type: 'array', items: PROVIDER } }),
    handle: async ({ at, caller }) => ok({ items: await providersFor(at, caller) }),
  })
}

/** The providers that the caller may see: a bound client sees those of its organization and of organizations below it. */
async function providersFor(at: Reach, caller: ManagementClient): Promise<readonly IdentityProvider[]> {
  const all = await at.identityProviders.list()
  const seen: IdentityProvider[] = []
  for (const one of all) if (await isWithin(caller, one.organization ?? null, at.pdp)) seen.push(one)
  return seen
}

const providerOf = async (at: Reach, caller: ManagementClient, id: string): Promise<IdentityProvider | null> =>
  (await providersFor(at, caller)).find((one) => one.id === id) ?? null

/**
 * The document for a bound client's provider: its organizations' people only, no trust for a second factor, no tokens. Throws
 * RequestProblem.
 */
async function ownDocument(
  at: Reach,
  caller: ManagementClient,
  of: { readonly id: string; readonly wanted: ProviderDocument; readonly stored: IdentityProvider | null },
): Promise<ProviderDocument> {
  const { id, wanted, stored } = of
  const reach = await reachOf(caller, at.pdp)
  if (reach !== null && !('within' in reach)) return wanted
  // A provider of another organization stays hidden, but its id is taken.
  if (stored === null) {
    await requireOwnName(at, caller, id)
    if ((await at.identityProviders.list()).some((one) => one.id === id)) throw denied('the id is taken')
  }
  const { organization = reach?.within, organizations } = wanted
  if (organization === undefined) throw denied('this client is bound to two organizations')
  for (const one of [organization, ...(organizations ?? [])]) await requireWithin(caller, one, at.pdp)
  if (wanted.identity_assertions === true) throw denied('identity_assertions are allowed by the operator only')
  const isKept = stored?.issuer === wanted.issuer && isDeepStrictEqual(stored.trusted_acr, wanted.trusted_acr)
  if (wanted.trusted_acr !== undefined && !isKept) throw denied('trusted_acr is set by the operator only')
  return { ...wanted, organization, organizations: organizations ?? [organization] }
}

const denied = (message: string): RequestProblem => new RequestProblem('permission_denied', message)

function requireUsable(id: string, document: ProviderDocument): void {
  const { issuer, organization, organizations, creates_accounts: creates, identity_assertions: assertions } = document
  const url = URL.parse(issuer)
  const isIssuer = url !== null && isSafeKeyUrl(issuer) && url.search === '' && url.hash === '' && url.username === ''
  const problems: readonly (readonly [string, boolean, string])[] = [
    [':id', NAME.test(id), 'must be 1 to 63 lower-case letters, digits and hyphens'],
    [
      '/issuer',
      isIssuer,
      'must be a URL with https, unless its host is a loopback address, without query and fragment',
    ],
    // A provider with organizations could not sign in a new account, which belongs to none yet.
    [
      '/creates_accounts',
      creates !== true || (organizations ?? organization) === undefined,
      'cannot be true with organizations',
    ],
    // Forbidden, because the assertion's person may have rights outside the organization to which the token is bound.
    ['/identity_assertions', assertions !== true || organization === undefined, 'cannot be true with organization'],
  ]
  const issues = problems.flatMap(([place, isRight, message]) => (isRight ? [] : [{ place, message }]))
  if (issues.length === 0) return
  const message = issues.map((issue) => `${issue.place} ${issue.message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { issues })
}

const missing = (id: string): string => `there is no identity provider ${id}`
