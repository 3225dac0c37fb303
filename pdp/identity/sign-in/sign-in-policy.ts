/** When a person is asked to sign in or to agree: oidc-provider's own questions, and ours. */
import { errors, interactionPolicy } from 'oidc-provider'
import type { SecondFactor } from '../factors/second-factor.ts'
import { type Context, paramsOf } from '../oauth/request.ts'
import { splitScope } from '../oauth/scopes.ts'
import { BY_PASSWORD, isAttainable, meets } from './acr.ts'

export function signInPolicy({
  secondFactor,
}: {
  readonly secondFactor: Pick<SecondFactor, 'has'>
}): interactionPolicy.DefaultPolicy {
  const base = interactionPolicy.base()
  const { Check } = interactionPolicy
  const [login, consent] = [base.get('login'), base.get('consent')]
  if (login === undefined || consent === undefined) throw new Error('oidc-provider has no login or consent prompt')
  login.checks.add(
    new Check(
      'signed_out',
      'the sign-in is over',
      'login_required',
      ({ oidc }) => oidc.session?.accountId !== undefined && oidc.account === undefined,
    ),
  )
  login.checks.add(
    new Check('acr_values', 'a stronger sign-in is required', 'login_required', (ctx) => mustStepUp(ctx, secondFactor)),
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

/** RFC 9470 section 5: if no sign-in here can satisfy the request, the client gets an error instead of another sign-in page. */
async function mustStepUp({ oidc }: Context, secondFactor: Pick<SecondFactor, 'has'>): Promise<boolean> {
  const wanted = splitScope(paramsOf(oidc).acr_values)
  if (meets(oidc.acr, wanted)) return false
  const { account, result } = oidc
  // A password is not enough, and this person has nothing else.
  const has = account === undefined || wanted.includes(BY_PASSWORD.acr) || (await secondFactor.has(account.accountId))
  if (!isAttainable(wanted) || !has || result?.login !== undefined) {
    throw new errors.UnmetAuthenticationRequirements('none of the acr_values can be reached here')
  }
  return true
}
