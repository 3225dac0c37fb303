/** A table of the resources `org`, `user`, `client` and others, with the path, scope, columns, flags and body of each. */
import { CliError } from '../errors.ts'
import { type Flags, fileText, givenText, list, words } from './flags.ts'
import type { Item } from './print.ts'

export type Resource = {
  readonly name: string
  readonly description: string
  /** The words for one item and for several, such as `an organization` and `organizations`. */
  readonly words: readonly [one: string, many: string]
  /** The path of the list, percent-encoded. An item's path is this path and its id. */
  readonly path: (organization: string) => string
  readonly inOrganization: boolean
  readonly id: string
  /** The scope without its end `:read` or `:write`. */
  readonly scope: string
  readonly columns: readonly string[]
  /** The list comes whole, without pages. */
  readonly isWhole?: true
  readonly flags: readonly (readonly [flags: string, meaning: string])[]
  /** An argument after the id. */
  readonly argument?: readonly [flags: string, meaning: string]
  /** Members by the flags: undefined for an absent flag, null for a member to remove. `stored`: the present item; null: a new one. */
  readonly said: (flags: Flags, stored: Item | null, argument: string | undefined) => Item
  /** A new item's members for which there is no flag. */
  readonly fresh?: (flags: Flags) => Item
  /** The item's value is replaced as a whole, since in a patch null would mean to remove members of the value. */
  readonly isWholeValue?: true
  /** More scopes that a write needs. */
  readonly given?: (flags: Flags) => readonly string[]
  /** The meaning of `--organization`, where it is not the organization of the work. */
  readonly organization?: string
}

/** Scopes of the PDP itself: a client can give only those that it holds. */
const OWN_SCOPE =
  /^(?:(?:decisions|directory|manifest|roles|relationships|entitlements|clients|hooks|issuers|identity-providers|sessions|audit|events|streams):|ssf\.)/
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

export const RESOURCES: readonly Resource[] = [
  {
    name: 'org',
    description: 'Organizations.',
    words: ['an organization', 'organizations'],
    path: () => '/v1/organizations',
    inOrganization: false,
    id: 'id',
    scope: 'directory',
    columns: ['id', 'name', 'parent'],
    flags: [
      ['--name <name>', 'its name; by default its id'],
      ['--parent <id>', 'the organization above it; "" for none'],
    ],
    said: ({ name, parent }) => ({ name, parent: givenText(parent) }),
    fresh: ({ id }) => ({ name: id }),
  },
  {
    name: 'user',
    description: 'People who can sign in.',
    words: ['a user', 'users'],
    path: () => '/v1/users',
    inOrganization: false,
    id: 'id',
    scope: 'directory',
    columns: ['id', 'email', 'email_verified', 'name'],
    flags: [
      ['--email <address>', 'e-mail address; a new one counts as not verified; "" for none'],
      ['--email-verified', 'the address is known to belong to the person'],
      ['--no-email-verified', 'it is not known'],
      ['--name <name>', 'name; "" for none'],
      ['--password-file <file>', 'file with the password'],
    ],
    said: ({ email, emailVerified, name, passwordFile }) => ({
      email: givenText(email),
      email_verified: emailVerified,
      name: givenText(name),
      password: fileText(passwordFile),
    }),
  },
  {
    name: 'client',
    description: 'OAuth clients. The secret of a new one is printed once.',
    words: ['a client', 'clients'],
    path: () => '/v1/clients',
    inOrganization: false,
    id: 'client_id',
    organization: 'the organization that the client belongs to and acts in',
    scope: 'clients',
    given: ({ scope }) => (words(scope) ?? []).filter((word) => OWN_SCOPE.test(word)),
    columns: ['client_id', 'client_name', 'organization', 'app', 'scope'],
    flags: [
      ['--name <name>', 'name for people; "" for none'],
      ['--scope <scopes>', 'all scopes that it may ask for, separated by spaces; "" for none'],
      ['--app <app>', 'the app whose roles its tokens carry; "" for none'],
      ['--unbound', 'it leaves its organization, and acts in all of them'],
      ['--public', 'the client cannot keep a secret: a command line, or a page in a browser'],
      ['--device', 'people sign in to it by the device flow'],
      ['--redirect-uri <uri...>', 'people sign in to it in a browser, and return here'],
      ['--post-logout-redirect-uri <uri...>', 'people return here when they have signed out'],
      ['--backchannel-logout-uri <uri>', 'gets a logout token when a session ends; "" for none'],
      ['--jwks-uri <uri>', 'it authenticates by keys that it publishes here (private_key_jwt)'],
      ['--exchange-client <id...>', 'it may exchange tokens of these clients, to act for their people'],
      ['--exchange-resource <uri...>', 'and get tokens for these resources'],
      ['--secret-file <file>', 'file with its secret; a new client gets one that is generated'],
    ],
    said: (flags, stored) => ({
      client_name: givenText(flags.name),
      scope: givenText(flags.scope),
      app: givenText(flags.app),
      organization: flags.unbound === true ? null : flags.organization,
      client_secret: fileText(flags.secretFile),
      redirect_uris: flags.redirectUri,
      post_logout_redirect_uris: flags.postLogoutRedirectUri,
      exchange_clients: flags.exchangeClient,
      exchange_resources: flags.exchangeResource,
      backchannel_logout_uri: givenText(flags.backchannelLogoutUri),
      backchannel_logout_session_required:
        flags.backchannelLogoutUri === undefined ? undefined : flags.backchannelLogoutUri === '' ? null : true,
      jwks_uri: flags.jwksUri,
      token_endpoint_auth_method:
        flags.public === true ? 'none' : flags.jwksUri === undefined ? undefined : 'private_key_jwt',
      grant_types: grantsOf(flags, stored),
    }),
    fresh: () => ({ grant_types: ['client_credentials'] }),
  },
  {
    name: 'identity-provider',
    description: 'OpenID providers at which people may sign in to this PDP.',
    words: ['an identity provider', 'identity providers'],
    path: () => '/v1/identity-providers',
    inOrganization: false,
    id: 'id',
    scope: 'identity-providers',
    isWhole: true,
    columns: ['id', 'name', 'issuer', 'client_id'],
    flags: [
      ['--issuer <url>', 'exactly as its tokens name it'],
      ['--client <id>', 'the client id that the provider gave to Portcullis'],
      ['--secret-file <file>', 'file with the secret from the provider'],
      ['--name <name>', 'name on the button; by default its id'],
      [
        '--auth-method <method>',
        'client_secret_basic, client_secret_post, private_key_jwt or none (client_secret_basic)',
      ],
      ['--scopes <scopes>', 'scopes to ask for besides openid, separated by spaces (email profile)'],
      ['--email-domains <domains>', 'admit only verified addresses of these domains, separated by commas; "": any'],
      ['--organizations <ids>', 'admit only active members of these organizations, separated by commas; "": all'],
      ['--creates-accounts', 'a person who is new gets an account, if the address is verified there'],
      ['--no-creates-accounts', 'only who has an account may sign in'],
      ['--identity-assertions', 'clients get tokens by its identity assertions (ID-JAG)'],
      ['--no-identity-assertions', 'they do not'],
      ['--trusted-acr <values>', 'values of acr with which a sign-in there counts as two factors, separated by spaces'],
    ],
    said: (flags) => ({
      issuer: flags.issuer,
      client_id: flags.client,
      client_secret: fileText(flags.secretFile),
      name: flags.name,
      token_endpoint_auth_method: flags.authMethod,
      scopes: words(flags.scopes),
      email_domains: list(flags.emailDomains),
      organizations: list(flags.organizations),
      creates_accounts: flags.createsAccounts,
      identity_assertions: flags.identityAssertions,
      trusted_acr: list(flags.trustedAcr),
    }),
    fresh: ({ id }) => ({ name: id }),
  },
  {
    name: 'member',
    description: 'Members of an organization.',
    words: ['a membership', 'members of an organization'],
    path: (organization) => `/v1/organizations/${organization}/members`,
    inOrganization: true,
    id: 'user',
    scope: 'directory',
    columns: ['user', 'role', 'status'],
    flags: [
      ['--role <tier>', 'owner, admin, developer, member or viewer; of a new one: member'],
      ['--status <status>', 'active, invited or suspended; of a new one: active'],
    ],
    said: ({ role, status }) => ({ role, status }),
    fresh: () => ({ role: 'member', status: 'active' }),
  },
  {
    name: 'role',
    description: 'Roles that no app owns; apps declare theirs in manifests.',
    words: ['an organization-wide role', 'organization-wide roles'],
    path: () => '/v1/roles',
    inOrganization: false,
    id: 'key',
    scope: 'roles',
    columns: ['key', 'name', 'permissions'],
    flags: [
      ['--name <name>', 'name for people; by default its key'],
      ['--permissions <keys>', 'all its permission keys, separated by commas; "" for none'],
    ],
    said: ({ name, permissions }) => ({ name, permissions: words(permissions) }),
    fresh: ({ id }) => ({ name: id, permissions: [] }),
  },
  {
    name: 'entitlement',
    description: 'Entitlements of an organization.',
    words: ['an entitlement', 'entitlements of an organization'],
    path: (organization) => `/v1/organizations/${organization}/entitlements`,
    inOrganization: true,
    id: 'key',
    scope: 'entitlements',
    columns: ['key', 'value', 'enforcement', 'version'],
    flags: [
      ['--claims', 'access tokens carry it, too'],
      ['--no-claims', 'only answers of the PDP have it'],
    ],
    argument: ['[value]', 'true, false or a JSON object; of a new one: true'],
    isWholeValue: true,
    said: ({ claims }, _stored, value) => ({
      value: value === undefined ? undefined : parseValue(value),
      enforcement: claims === undefined ? undefined : claims === true ? 'Claims' : 'DecisionApi',
    }),
    fresh: () => ({ value: true }),
  },
]

/** The grants of a client, with those that its flags need added; undefined: they stay as they are. */
function grantsOf({ redirectUri, device, exchangeClient }: Flags, stored: Item | null): readonly string[] | undefined {
  const signsIn = redirectUri !== undefined || device === true
  if (!signsIn && exchangeClient === undefined) return undefined
  const had = stored === null ? [] : Array.isArray(stored.grant_types) ? stored.grant_types : ['authorization_code']
  const more = [
    ...(redirectUri === undefined ? [] : ['authorization_code']),
    ...(device === true ? [DEVICE] : []),
    ...(exchangeClient === undefined ? [] : [EXCHANGE]),
    ...(signsIn ? ['refresh_token'] : []),
  ]
  return [...new Set([...had, ...more])]
}

function parseValue(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new CliError(`the value must be true, false or a JSON object, not ${JSON.stringify(value)}`)
  }
}
