/** What `org`, `user`, `client` and the others are: path, scope, columns, flags and body of each. */
import { CliError } from '../errors.ts'
import { type Flags, fileText, words } from './flags.ts'

type Flag = readonly [flags: string, meaning: string]
export type Resource = {
  readonly name: string
  readonly description: string
  /** One and many of them in words, such as `an organization` and `organizations`. */
  readonly words: readonly [one: string, many: string]
  /** Of the list, percent-encoded; items are below it. */
  readonly path: (organization: string) => string
  readonly inOrganization: boolean
  readonly id: string
  /** Before `:read` and `:write`. */
  readonly scope: string
  readonly columns: readonly string[]
  /** The list comes whole, and takes no page. */
  readonly isWhole?: true
  readonly flags: readonly Flag[]
  /** An argument after the id. */
  readonly argument?: Flag
  readonly body: (flags: Flags, argument: string | undefined) => object
  /** Scopes that writing this needs besides. */
  readonly given?: (flags: Flags) => readonly string[]
}

/** Scopes of the PDP itself: a client can give only those that it holds. */
const OWN_SCOPE =
  /^(?:(?:decisions|directory|manifest|roles|relationships|entitlements|clients|hooks|issuers|identity-providers|sessions|audit|events|streams):|ssf\.)/
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

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
      ['--parent <id>', 'the organization above it'],
    ],
    body: ({ name, parent, id }) => ({ name: name ?? id, parent }),
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
      ['--email <address>', 'e-mail address'],
      ['--email-verified', 'the address is known to belong to the person'],
      ['--name <name>', 'name'],
      ['--password-file <file>', 'file with the password'],
    ],
    body: ({ email, emailVerified, name, passwordFile }) => ({
      email,
      email_verified: emailVerified,
      name,
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
    scope: 'clients',
    given: ({ scope }) => (words(scope) ?? []).filter((word) => OWN_SCOPE.test(word)),
    columns: ['client_id', 'client_name', 'organization', 'app', 'scope'],
    flags: [
      ['--name <name>', 'name for people'],
      ['--scope <scopes>', 'scopes that it may ask for, separated by spaces'],
      ['--app <app>', 'the app whose roles its tokens carry'],
      ['--public', 'the client cannot keep a secret: a command line, or a page in a browser'],
      ['--device', 'people sign in to it by the device flow'],
      ['--redirect-uri <uri...>', 'people sign in to it in a browser, and return here'],
      ['--secret-file <file>', 'file with its secret; by default a new one'],
    ],
    body: ({ name, scope, app, organization, public: isPublic, device, redirectUri, secretFile }) => ({
      client_name: name,
      scope,
      app,
      organization,
      client_secret: fileText(secretFile),
      redirect_uris: redirectUri,
      token_endpoint_auth_method: isPublic === true ? 'none' : undefined,
      grant_types: [
        ...(redirectUri === undefined ? [] : ['authorization_code', 'refresh_token']),
        ...(device === true ? [DEVICE, ...(redirectUri === undefined ? ['refresh_token'] : [])] : []),
        ...(redirectUri === undefined && device !== true ? ['client_credentials'] : []),
      ],
    }),
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
      ['--secret-file <file>', 'file with the secret from the provider; by default the stored secret stays'],
      ['--name <name>', 'name on the button; by default its id'],
      [
        '--auth-method <method>',
        'client_secret_basic, client_secret_post, private_key_jwt or none (client_secret_basic)',
      ],
      ['--scopes <scopes>', 'scopes to ask for besides openid, separated by spaces (email profile)'],
      ['--email-domains <domains>', 'admit only verified addresses of these domains, separated by commas'],
      ['--organizations <ids>', 'admit only active members of these organizations, separated by commas'],
      ['--creates-accounts', 'a person who is new gets an account, if the address is verified there'],
      ['--trusted-acr <values>', 'values of acr with which a sign-in there counts as two factors, separated by spaces'],
    ],
    body: (flags) => ({
      issuer: flags.issuer,
      client_id: flags.client,
      client_secret: fileText(flags.secretFile),
      name: flags.name ?? flags.id,
      token_endpoint_auth_method: flags.authMethod,
      scopes: words(flags.scopes),
      ...{ email_domains: words(flags.emailDomains), organizations: words(flags.organizations) },
      creates_accounts: flags.createsAccounts,
      trusted_acr: words(flags.trustedAcr),
    }),
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
      ['--role <tier>', 'owner, admin, developer, member or viewer (member)'],
      ['--status <status>', 'active, invited or suspended (active)'],
    ],
    body: ({ role = 'member', status = 'active' }) => ({ role, status }),
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
      ['--permissions <keys>', 'permission keys, separated by commas'],
    ],
    body: ({ name, permissions, id }) => ({ name: name ?? id, permissions: words(permissions) ?? [] }),
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
    flags: [['--claims', 'access tokens carry it, too']],
    argument: ['[value]', 'true, false or a JSON object (true)'],
    body: ({ claims }, value = 'true') => ({
      value: parseValue(value),
      enforcement: claims === true ? 'Claims' : undefined,
    }),
  },
]

function parseValue(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new CliError(`the value must be true, false or a JSON object, not ${JSON.stringify(value)}`)
  }
}
