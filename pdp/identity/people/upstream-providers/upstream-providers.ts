/** Puts together the sign-in at external OpenID providers. */

import type { Directory } from '../../../engine/store/directory.ts'
import type { GuardedPost } from '../../../shared/base/guarded-post.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { KeyRing } from '../../issuer/keys/key-ring.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import { createSharedAttempts } from '../../limits/shared-attempts.ts'
import { MANAGEMENT_APP } from '../../oauth/management-app.ts'
import type { Screen } from '../account/account.ts'
import type { Elsewhere } from '../sign-in/sign-in.ts'
import { createReadAssertion, type ReadAssertion } from './assertions.ts'
import { createUpstreamClient, fetchBy } from './client.ts'
import type { UpstreamDeps } from './deps.ts'
import { createLinks } from './links.ts'
import { createIdentityProviders, type IdentityProviders } from './providers.ts'
import { createElsewhere, upstreamScreens } from './screens.ts'
import { createSealed } from './sealed.ts'
import { createProviderKeys, createSignedOutElsewhere, type SignedOutElsewhere } from './signed-out.ts'

/** How long a return is remembered: longer than the state of a sign-in is accepted. */
const RETURNS_MS = 1_800_000

type Deps = Parameters<typeof createIdentityProviders>[0] &
  Parameters<typeof createLinks>[0] & {
    readonly directory: Pick<Directory, 'isOnlyIn'>
    readonly pdp: Pick<Pdp, 'held'>
    readonly guard: Pick<GuardedPost, 'send'>
    readonly ring: Pick<KeyRing, 'current'>
    readonly clock: () => number
    readonly revocations: Pick<Revocations, 'endUser' | 'revokeSession'>
    readonly log: Log
  }

export function createUpstreamProviders(deps: Deps): {
  readonly elsewhere: Elsewhere
  readonly providers: IdentityProviders
  readonly signedOutElsewhere: SignedOutElsewhere
  readonly readAssertion: ReadAssertion
  screens(path: string): Screen | undefined
} {
  const { sql, clock, ring, revocations, log, guard } = deps
  const providers = createIdentityProviders(deps)
  const links = createLinks(deps)
  const outgoing = fetchBy(guard)
  const client = createUpstreamClient({ guard, clock, signingKey: () => ring.current().privateJwks[0] })
  const parts = { providers, sealed: createSealed(deps), links, client }
  const returns = createSharedAttempts({ sql, clock, windowMs: RETURNS_MS })
  const keysOf = createProviderKeys({
    clock,
    fetch: (url, { signal, headers }) =>
      outgoing(url, { method: 'GET', body: undefined, redirect: 'manual', headers, signal }),
  })
  return {
    elsewhere: createElsewhere(parts),
    providers,
    signedOutElsewhere: createSignedOutElsewhere({
      revocations,
      sql,
      clock,
      log,
      providers,
      links,
      marks: returns,
      keysOf,
    }),
    readAssertion: createReadAssertion({ issuer: deps.issuer, providers, links, keysOf, clock }),
    screens: upstreamScreens({ ...parts, isOnlyIn: onlyIn(deps), returns }),
  }
}

/** True if the person has nothing elsewhere, not even by roles of groups. */
function onlyIn({ directory, pdp }: Pick<Deps, 'directory' | 'pdp'>): UpstreamDeps['isOnlyIn'] {
  return async (user, organization) => {
    if (!(await directory.isOnlyIn(user, organization))) return false
    const { permissions } = await pdp.held({ organization, subject: { type: 'user', id: user }, app: MANAGEMENT_APP })
    return permissions.length === 0
  }
}
