/** The paths of the identity service, below its issuer's path. */

export const PATHS = {
  authorize: '/oauth/authorize',
  pushed: '/oauth/par',
  token: '/oauth/token',
  deviceAuthorization: '/oauth/device_authorization',
  device: '/oauth/device',
  backchannel: '/oauth/bc-authorize',
  approve: '/oauth/approve',
  introspect: '/oauth/introspect',
  revoke: '/oauth/revoke',
  userinfo: '/oauth/userinfo',
  jwks: '/oauth/jwks',
  interaction: '/oauth/interaction',
  signedOutElsewhere: '/oauth/backchannel-logout',
  account: '/account',
  accountForgotten: '/account/forgotten',
  accountReset: '/account/reset',
  accountSignIn: '/account/sign-in',
  accountPassword: '/account/password',
  accountAuthenticator: '/account/authenticator',
  accountPasskeys: '/account/passkeys',
  passkeyScript: '/account/passkey.js',
  pageScript: '/account/page.js',
  accountVerification: '/account/verification',
  accountInvitation: '/account/invitation',
  accountProviders: '/account/providers',
  accountDelegations: '/account/delegations',
  accountAccess: '/account/access',
  accountProof: '/account/proof',
  logout: '/oauth/logout',
  logoutConfirm: '/oauth/logout/confirm',
  logoutSuccess: '/oauth/logout/success',
  openidConfiguration: '/.well-known/openid-configuration',
  serverMetadata: '/.well-known/oauth-authorization-server',
  resourceMetadata: '/.well-known/oauth-protected-resource',
  authzenMetadata: '/.well-known/authzen-configuration',
} as const

/** The path of the issuer's URL; empty if the issuer is at the root of its host. */
export const mountOf = (issuer: string): string => new URL(issuer).pathname.replace(/\/$/, '')

/** The public URL of a path of ours. */
export const urlOf = (issuer: string, path: string): string => new URL(mountOf(issuer) + path, issuer).href

/** RFC 9728 section 3.1: the well-known part goes between the host and the issuer's own path. */
export const resourceMetadataUrl = (issuer: string): string =>
  new URL(PATHS.resourceMetadata + mountOf(issuer), issuer).href
