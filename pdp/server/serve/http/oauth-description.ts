/** The identity service's endpoints for the API's description; the RFCs that they name define their meaning. */

const text = (description: string) => ({ type: 'string', description })
const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

const ERROR = {
  description: 'An error (RFC 6749 section 5.2).',
  content: {
    [JSON_TYPE]: {
      schema: {
        type: 'object',
        required: ['error'],
        properties: {
          error: { type: 'string', examples: ['invalid_grant'] },
          error_description: { type: 'string', examples: ['grant request is invalid'] },
        },
        examples: [{ error: 'invalid_grant', error_description: 'grant request is invalid' }],
      },
    },
  },
}
const CLIENT = {
  client_id: text('For clients that do not use HTTP Basic.'),
  client_secret: text('For client_secret_post.'),
  client_assertion_type: { type: 'string', enum: ['urn:ietf:params:oauth:client-assertion-type:jwt-bearer'] },
  client_assertion: text('For private_key_jwt (RFC 7523).'),
}

type Described = {
  readonly summary: string
  readonly form: { readonly [name: string]: object }
  readonly required: readonly string[]
  readonly example: { readonly [name: string]: string }
  /** The schema of the answer; null: no body. */
  readonly answer: object | null
}

const post = (operationId: string, { summary, form, required, example, answer }: Described) => ({
  post: {
    operationId,
    summary,
    tags: ['OAuth'],
    security: [{ client: [] }, {}],
    requestBody: {
      required: true,
      content: {
        [FORM]: { schema: { type: 'object', required, properties: { ...form, ...CLIENT }, examples: [example] } },
      },
    },
    responses: {
      200: {
        description: 'Done.',
        ...(answer === null ? {} : { content: { [JSON_TYPE]: { schema: answer } } }),
      },
      default: ERROR,
    },
  },
})

const TOKEN = {
  type: 'object',
  required: ['access_token', 'token_type'],
  properties: {
    access_token: text('A JWT of type at+jwt (RFC 9068).'),
    token_type: { type: 'string', enum: ['Bearer', 'DPoP', 'N_A'] },
    expires_in: { type: 'integer' },
    scope: { type: 'string' },
    refresh_token: { type: 'string' },
    id_token: { type: 'string' },
    issued_token_type: { type: 'string' },
  },
  examples: [{ access_token: 'eyJ0eXAiOiJhdCtqd3Qi…', token_type: 'Bearer', expires_in: 900, scope: 'invoices:read' }],
}
const INTROSPECTED = {
  type: 'object',
  required: ['active'],
  properties: {
    active: { type: 'boolean' },
    sub: { type: 'string' },
    client_id: { type: 'string' },
    scope: { type: 'string' },
  },
  examples: [{ active: true, sub: 'alice', client_id: 'web', scope: 'invoices:read' }],
}
const reading = (
  { operationId, summary }: { readonly operationId: string; readonly summary: string },
  schema: object,
  { type = JSON_TYPE, error = ERROR }: { readonly type?: string; readonly error?: object } = {},
) => ({
  operationId,
  summary,
  tags: ['OAuth'],
  security: [],
  responses: { 200: { description: 'Done.', content: { [type]: { schema } } }, default: error },
})
const read = (operationId: string, summary: string, schema: object) => ({
  get: reading({ operationId, summary }, schema),
})
/** A problem document (RFC 9457). */
const PROBLEM = {
  description: 'An error.',
  content: {
    'application/problem+json': {
      schema: { type: 'object', required: ['code'], properties: { code: { type: 'string' } } },
    },
  },
}
const USER_CLAIMS = {
  type: 'object',
  required: ['sub'],
  properties: { sub: { type: 'string' } },
  examples: [{ sub: 'alice', email: 'alice@example.com', email_verified: true, org: 'acme', org_role: 'developer' }],
}
const USERINFO = 'Claims about the person of an access token with the scope openid.'
const metadata = (examples: readonly object[]) => ({
  type: 'object',
  required: ['issuer'],
  properties: { issuer: { type: 'string' } },
  examples,
})
const REQUEST = {
  response_type: { type: 'string', enum: ['code'] },
  redirect_uri: { type: 'string' },
  scope: { type: 'string' },
  resource: text('The audience of the token (RFC 8707).'),
  organization: text('The organization that the token is for.'),
  state: { type: 'string' },
  nonce: { type: 'string' },
  code_challenge: { type: 'string' },
  code_challenge_method: { type: 'string', enum: ['S256'] },
}
const AUTHORIZE = {
  response_type: 'code',
  client_id: 'web',
  redirect_uri: 'https://app.example.com/callback',
  scope: 'openid',
  ...{
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    state: 'af0ifjsldkj',
  },
}

/** The OAuth paths of the OpenAPI description. */
export const OAUTH_PATHS = {
  '/oauth/authorize': {
    get: {
      operationId: 'authorize',
      tags: ['OAuth'],
      security: [],
      summary: 'Where an application sends the browser of a person to sign in (RFC 6749 section 4.1.1, with PKCE).',
      parameters: Object.entries({
        client_id: { type: 'string' },
        request_uri: text('From POST /oauth/par.'),
        ...REQUEST,
      }).map(([name, schema]) => ({
        name,
        in: 'query',
        required: name === 'client_id',
        schema,
        ...(name in AUTHORIZE && { example: Object.entries(AUTHORIZE).find(([key]) => key === name)?.[1] }),
      })),
      responses: {
        303: { description: 'To a page of the identity service, or back to redirect_uri with code or error.' },
        default: { description: 'A page that says what is wrong.' },
      },
    },
    // OpenID Connect Core 1.0 section 3.1.2.1: both methods.
    post: {
      operationId: 'authorizeByForm',
      tags: ['OAuth'],
      security: [],
      summary: 'The same with the parameters in a form: it is repeated by GET.',
      requestBody: {
        content: {
          [FORM]: {
            schema: {
              type: 'object',
              examples: [AUTHORIZE],
              properties: { client_id: { type: 'string' }, request_uri: { type: 'string' }, ...REQUEST },
            },
          },
        },
      },
      responses: {
        303: { description: 'To the same address, with what the form says in the query.' },
        default: { description: 'A page that says what is wrong.' },
      },
    },
  },
  '/oauth/par': post('pushAuthorizationRequest', {
    summary: 'Takes an authorization request before the browser is sent (RFC 9126).',
    form: REQUEST,
    required: ['response_type', 'redirect_uri'],
    example: AUTHORIZE,
    answer: {
      type: 'object',
      properties: { request_uri: { type: 'string' }, expires_in: { type: 'integer' } },
      examples: [{ request_uri: 'urn:ietf:params:oauth:request_uri:6esc_11ACC5bwc014ltc14eY22c', expires_in: 60 }],
    },
  }),
  '/oauth/token': post('token', {
    summary: 'Gives tokens for a code, a refresh token, a client, a device, a backchannel request or another token.',
    form: {
      grant_type: {
        type: 'string',
        enum: [
          ...['authorization_code', 'refresh_token', 'client_credentials', 'urn:openid:params:grant-type:ciba'],
          ...['urn:ietf:params:oauth:grant-type:device_code', 'urn:ietf:params:oauth:grant-type:token-exchange'],
          'urn:ietf:params:oauth:grant-type:jwt-bearer',
        ],
      },
      code: text('For authorization_code.'),
      redirect_uri: text('For authorization_code.'),
      code_verifier: text('For authorization_code.'),
      refresh_token: text('For refresh_token.'),
      scope: { type: 'string' },
      resource: text('The audience of the token (RFC 8707).'),
      device_code: text('For device_code.'),
      auth_req_id: text('For ciba.'),
      assertion: text('For jwt-bearer: an identity assertion (ID-JAG).'),
      subject_token: text('For token-exchange.'),
      subject_token_type: text('For token-exchange.'),
    },
    required: ['grant_type'],
    example: { grant_type: 'client_credentials', scope: 'decisions:read' },
    answer: TOKEN,
  }),
  '/oauth/device_authorization': post('authorizeDevice', {
    summary: 'Begins a sign-in on a device without a browser (RFC 8628).',
    form: { scope: { type: 'string' } },
    required: [],
    example: { client_id: 'cli', scope: 'openid' },
    answer: {
      type: 'object',
      properties: {
        device_code: { type: 'string' },
        user_code: { type: 'string' },
        verification_uri: { type: 'string' },
        ...{
          verification_uri_complete: { type: 'string' },
          expires_in: { type: 'integer' },
          interval: { type: 'integer' },
        },
      },
      examples: [
        {
          device_code: 'GmRhmhcxhwAzkoEqiMEg',
          user_code: 'WDJB-MJHT',
          verification_uri: 'https://id.example.com/oauth/device',
          expires_in: 600,
        },
      ],
    },
  }),
  '/oauth/bc-authorize': post('authorizeBackchannel', {
    summary: 'Asks a person to approve on another device (OpenID Connect CIBA).',
    form: { scope: { type: 'string' }, login_hint: { type: 'string' }, binding_message: { type: 'string' } },
    required: ['scope'],
    example: { scope: 'openid', login_hint: 'alice@example.com' },
    answer: {
      type: 'object',
      properties: { auth_req_id: { type: 'string' }, expires_in: { type: 'integer' }, interval: { type: 'integer' } },
      examples: [{ auth_req_id: '1c266114-a1be-4252-8ad1-04986c5b9ac1', expires_in: 300 }],
    },
  }),
  '/oauth/introspect': post('introspect', {
    summary: 'Says whether a token is active, and what it is (RFC 7662).',
    form: { token: { type: 'string' } },
    required: ['token'],
    example: { token: 'eyJ0eXAiOiJhdCtqd3Qi…' },
    answer: INTROSPECTED,
  }),
  '/oauth/revoke': post('revoke', {
    summary: 'Ends a token (RFC 7009). The next decision sees it.',
    form: { token: { type: 'string' } },
    required: ['token'],
    example: { token: 'eyJ0eXAiOiJhdCtqd3Qi…' },
    answer: null,
  }),
  '/oauth/userinfo': {
    get: reading({ operationId: 'userinfo', summary: USERINFO }, USER_CLAIMS, { error: PROBLEM }),
    // OpenID Connect Core 1.0 section 5.3: both methods.
    post: reading({ operationId: 'postUserinfo', summary: USERINFO }, USER_CLAIMS, { error: PROBLEM }),
  },
  '/oauth/jwks': {
    get: reading(
      { operationId: 'jwks', summary: 'The public keys that verify our tokens (RFC 7517).' },
      {
        type: 'object',
        required: ['keys'],
        properties: { keys: { type: 'array', items: { type: 'object' } } },
        examples: [{ keys: [{ kty: 'RSA', kid: 'mE2…', alg: 'RS256', use: 'sig', n: '0vx7…', e: 'AQAB' }] }],
      },
      { type: 'application/jwk-set+json' },
    ),
  },
  '/.well-known/openid-configuration': read(
    'openidConfiguration',
    'Metadata of the issuer (OpenID Connect Discovery).',
    metadata([{ issuer: 'https://id.example.com', token_endpoint: 'https://id.example.com/oauth/token' }]),
  ),
  '/.well-known/oauth-authorization-server': read(
    'serverMetadata',
    'The same for OAuth (RFC 8414).',
    metadata([{ issuer: 'https://id.example.com', token_endpoint: 'https://id.example.com/oauth/token' }]),
  ),
} as const
