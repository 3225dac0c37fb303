/** OpenID providers of others at which people may sign in. */
import type { FastifyInstance } from 'fastify'
import {
  AUTH_METHODS,
  type IdentityProvider,
  type ProviderDocument,
} from '../../../../identity/people/upstream-providers/providers.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import { isSafeKeyUrl } from '../../../../shared/token/remote-keys.ts'
import { ID, LABEL, object, SECRET, text } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, EMPTY, ok, put } from '../route.ts'

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
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/
const PROVIDER = object({ id: ID, ...SHOWN }, ['id', 'issuer', 'client_id', 'name'])
const PATH = '/v1/identity-providers/:id'
type Body = ProviderDocument & { readonly client_secret?: string }

export function addIdentityProviders(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Issuers', scope: 'identity-providers:write', organizationScope: 'environment' } as const
  const route: PutRoute<{ params: 'id'; body: Body; stored: IdentityProvider }> = {
    ...common,
    method: 'PUT',
    path: PATH,
    operation: 'putIdentityProvider',
    summary:
      'Lets people sign in at another OpenID provider. Its redirect URI is `<issuer>/account/providers/<id>`. A person there is known by issuer and subject, never by an address.',
    body: BODY,
    answer: PROVIDER,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => providerOf(at, params.id),
    async handle({ at, params: { id }, body, context }) {
      const { client_secret: secret = null, ...document } = body
      requireUsable(id, document)
      const existed = await at.identityProviders.put(id, { ...document, secret }, context)
      return put(existed, (await providerOf(at, id)) ?? {})
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes an identity provider.' })
  addManagementRoute<{ params: 'id' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteIdentityProvider',
    summary: 'Nobody can sign in by it from now on. The connections of people with it stay stored.',
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at, params }) => providerOf(at, params.id),
    async handle({ at, params: { id }, context }) {
      if (await at.identityProviders.remove(id, context)) return EMPTY
      throw missing(id)
    },
  })
  addManagementRoute<{ params: 'id' }>(app, deps, {
    ...common,
    method: 'GET',
    path: PATH,
    operation: 'getIdentityProvider',
    summary: 'One identity provider.',
    answer: PROVIDER,
    state: ({ at, params }) => providerOf(at, params.id),
    async handle({ at, params: { id } }) {
      const found = await providerOf(at, id)
      if (found === null) throw missing(id)
      return ok(found)
    },
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/identity-providers',
    operation: 'listIdentityProviders',
    summary: 'All identity providers.',
    answer: object({ items: { type: 'array', items: PROVIDER } }, ['items']),
    handle: async () => ok({ items: await deps.identityProviders.list() }),
  })
}

async function providerOf({ identityProviders }: ManagementDeps, id: string): Promise<IdentityProvider | null> {
  return (await identityProviders.list()).find((one) => one.id === id) ?? null
}

function requireUsable(id: string, { issuer, organizations, creates_accounts: creates }: ProviderDocument): void {
  const url = URL.parse(issuer)
  const isIssuer = url !== null && isSafeKeyUrl(issuer) && url.search === '' && url.hash === '' && url.username === ''
  const problems: readonly (readonly [string, boolean, string])[] = [
    [':id', NAME.test(id), 'must be 1 to 63 lower-case letters, digits and hyphens'],
    [
      '/issuer',
      isIssuer,
      'must be a URL with https, unless its host is a loopback address, without query and fragment',
    ],
    // A new account belongs to no organization, so its person could not sign in.
    ['/creates_accounts', creates !== true || organizations === undefined, 'cannot be true with organizations'],
  ]
  const issues = problems.flatMap(([place, isRight, message]) => (isRight ? [] : [{ place, message }]))
  if (issues.length === 0) return
  const message = issues.map((issue) => `${issue.place} ${issue.message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { issues })
}

const missing = (id: string): RequestProblem => new RequestProblem('not_found', `there is no identity provider ${id}`)
