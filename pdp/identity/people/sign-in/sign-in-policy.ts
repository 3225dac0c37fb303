/** Decides when a person must sign in or agree, by oidc-provider's checks and our own. */
import { decodeJwt } from 'jose'
import { errors, interactionPolicy } from 'oidc-provider'
import { type Context, paramsOf } from '../../oauth/request.ts'
import { splitScope } from '../../oauth/scopes.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import { BY_PASSWORD, type Demands, hasTwoFactors, isAttainable, meets } from './acr.ts'

/** The reason to ask a person who is signed in again. */
export const STEP_UP_REASON = 'acr_values'
export const SECOND_FACTOR_REASON = 'second_factor'
const HINT_REASON = 'id_token_hint'

type PolicyDeps = { readonly secondFactor: Pick<SecondFactor, 'has'>; readonly demands: Demands }

export function signInPolicy(deps: PolicyDeps): interactionPolicy.DefaultPolicy {
  const { demands } = deps
  const base = interactionPolicy.base()
  const { Check } = interactionPolicy
  const [login, consent] = [base.get('login'), base.get('consent')]
  if (login === undefined || consent === undefined) throw new Error('oidc-provider has no login or consent prompt')
  // oidc-provider checks the hint only before the sign-in, so any other person could sign in then and continue.
  login.checks.remove(HINT_REASON)
  login.checks.add(
    new Check(HINT_REASON, 'the person of the id_token_hint is not signed in', 'login_required', isSomebodyElse),
  )
  login.checks.add(
    new Check(
      'signed_out',
      'the sign-in is over',
      'login_required',
      ({ oidc }) => oidc.session?.accountId !== undefined && oidc.account === undefined,
    ),
  )
  login.checks.add(
    new Check(STEP_UP_REASON, 'a stronger sign-in is required', 'login_required', (ctx) => mustStepUp(ctx, deps)),
  )
  login.checks.add(
    new Check(
      SECOND_FACTOR_REASON,
      'a second factor is required',
      'login_required',
      ({ oidc }) => oidc.account !== undefined && demands(oidc.client) && !hasTwoFactors(oidc.acr),
    ),
  )
  consent.checks.add(
    new Check(
      'grant_missing',
      'consent is required',
      'consent_required',
      ({ oidc }) => oidc.grant?.jti === undefined, // there is one to look at once the sign-in counts
    ),
  )
  return base
}

/** True if the hint, verified before, names another person than the signed-in one (OpenID Connect Core section 3.1.2.1). */
function isSomebodyElse({ oidc }: Context): boolean {
  const hint = paramsOf(oidc).id_token_hint
  if (hint === undefined || decodeJwt(hint).sub === oidc.session?.accountId) return false
  if (oidc.result?.login === undefined) return true
  throw new errors.LoginRequired('another person signed in than that of the id_token_hint')
}

/** RFC 9470 section 5: if no sign-in here can satisfy the request, the client gets an error instead of another sign-in page. */
async function mustStepUp({ oidc }: Context, { secondFactor, demands }: PolicyDeps): Promise<boolean> {
  const wanted = splitScope(paramsOf(oidc).acr_values)
  if (meets(oidc.acr, wanted)) return false
  const { account, result } = oidc
  // A person without the demanded second factor is asked to add one.
  if (isAttainable(wanted) && demands(oidc.client)) return true
  // The person may be about to sign in with another account.
  if (isAttainable(wanted) && result?.login === undefined && splitScope(paramsOf(oidc).prompt).includes('login'))
    return true
  // The wanted factor is more than a password, and this person has no other.
  const has = account === undefined || wanted.includes(BY_PASSWORD.acr) || (await secondFactor.has(account.accountId))
  if (!isAttainable(wanted) || !has || result?.login !== undefined) {
    throw new errors.UnmetAuthenticationRequirements('none of the acr_values can be reached here')
  }
  return true
}
