/** CIBA: the page on which a signed-in person approves or refuses what clients ask for without a browser. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type BackchannelAuthenticationRequest, errors, type Session } from 'oidc-provider'
import type { Directory, Queries } from '../../../engine/store/directory.ts'
import type { MasterKeys } from '../../../shared/base/encryption.ts'
import { errorPage, type Trouble } from '../../html/error-page.ts'
import { nameOf as clientName, type Frame, type FrameOf } from '../../html/frame.ts'
import { send } from '../../html/page.ts'
import type { RecordSecrets } from '../../issuer/keys/record-secrets.ts'
import type { IsSignedIn } from '../../issuer/sign-in-validity.ts'
import { isCrossSite, readForm } from '../../oauth/forms.ts'
import { PATHS } from '../../oauth/paths.ts'
import { paramsOf } from '../../oauth/request.ts'
import { splitScope } from '../../oauth/scopes.ts'
import type { StatusName } from '../../oauth/status.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import { type Demands, hasTwoFactors, meets } from './acr.ts'
import { approvalPage, type PendingRequest } from './approval-pages.ts'
import {
  type ApprovalSignInDeps,
  type ApprovalVisit,
  askForSecond,
  askToSignIn,
  type Step,
  takeCode,
  takePasskey,
  takePassword,
} from './approval-sign-in.ts'
import { type Consent, organizationFrom } from './consent.ts'
import { formToken, hasFormToken } from './form-token.ts'
import type { Waiting } from './sign-in.ts'

const SHOWN_MAX = 20
const PENDING = `
  select id, payload from oidc_record where kind = 'BackchannelAuthenticationRequest' and payload ->> 'accountId' = $1
    and payload ->> 'grantId' is null and payload ->> 'error' is null and consumed_at is null and expires_at > now()
  order by expires_at limit ${SHOWN_MAX}`

export type ApprovalDeps = ApprovalSignInDeps & {
  readonly issuer: string
  readonly sql: Queries
  readonly directory: Pick<Directory, 'user'>
  readonly isSignedIn: IsSignedIn
  readonly frameOf: FrameOf
  readonly secondFactor: Pick<SecondFactor, 'has'>
  readonly demands: Demands
  readonly consent: Consent
  readonly recordSecrets: Pick<RecordSecrets, 'open'>
  /** Master keys, from which the key that signs forms is derived. */
  readonly masterKeys: MasterKeys
}
/** A request with its person and client, which are always known. */
type BackchannelRequest = BackchannelAuthenticationRequest & { readonly accountId: string; readonly clientId: string }

/** Answers GET and POST. Throws PdpError `store_unavailable`. */
export async function answerApproval(deps: ApprovalDeps, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const provider = deps.provider()
  const session = await provider.Session.get(provider.createContext(req, res))
  const frame = deps.frameOf(req)
  const visit = { req, res, session, frame }
  if (req.method !== 'POST') return list(deps, visit, null)
  if (isCrossSite(req, deps.issuer)) return refuse(res, 'invalid', { frame, trouble: 'crossSiteForm' })
  const form = await readForm(req)
  if (form === null) return refuse(res, 'tooLarge', { frame, trouble: 'largeForm' })
  if (form.get('action') === 'login') return show(deps, visit, await takePassword(deps, visit, form))
  if (form.get('action') === 'switch') return show(deps, visit, await askToSignIn(deps, visit, 'session'))
  const isOurs = hasFormToken(form, deps.masterKeys, session.uid)
  const take = SECOND_STEPS.get(form.get('action') ?? '')
  if (take !== undefined) {
    const waiting = isOurs ? await signedIn(deps, session) : null
    return show(deps, visit, await take(deps, visit, { form, waiting }))
  }
  if (!isOurs) return refuse(res, 'invalid', { frame, trouble: 'oldForm' })
  return decide(deps, visit, form)
}

const SECOND_STEPS: ReadonlyMap<string, typeof takeCode> = new Map([
  ['code', takeCode],
  ...['app', 'passkey', 'passkey_answer'].map((action) => [action, takePasskey] as const),
])

/** Shows the page of a step, or the requests that wait for the person who is signed in now. */
async function show(deps: ApprovalDeps, visit: ApprovalVisit, step: Step): Promise<void> {
  if ('session' in step) return list(deps, { ...visit, session: step.session }, null)
  return send(visit.res, step)
}

/** The signed-in person; null: the sign-in is missing or has ended. */
async function signedIn({ isSignedIn }: ApprovalDeps, session: Session): Promise<Waiting | null> {
  const { accountId } = session
  const ts = session.authTime()
  if (accountId === undefined || ts === undefined || !(await isSignedIn(accountId, ts))) return null
  return { accountId, ts }
}

async function list(
  deps: ApprovalDeps,
  visit: ApprovalVisit,
  done: Parameters<typeof approvalPage>[1]['done'],
): Promise<void> {
  const { accountId } = (await signedIn(deps, visit.session)) ?? { accountId: null }
  const user = accountId === null ? null : await deps.directory.user(accountId)
  if (accountId === null || user === null) return show(deps, visit, await askToSignIn(deps, visit, 'session'))
  const presented = await Promise.all((await pending(deps, accountId)).map((request) => presentRequest(deps, request)))
  const requests = presented.filter((request) => request !== null)
  const person = user.email ?? user.name ?? accountId
  const xsrf = formToken(deps.masterKeys, visit.session.uid)
  send(visit.res, { outcome: 'shown', page: approvalPage(visit.frame, { person, xsrf, requests, done }) })
}

async function decide(deps: ApprovalDeps, visit: ApprovalVisit, form: URLSearchParams): Promise<void> {
  const { session } = visit
  const provider = deps.provider()
  const waiting = await signedIn(deps, session)
  if (waiting === null) return show(deps, visit, await askToSignIn(deps, visit, 'session'))
  const { accountId } = waiting
  const name = form.get('request')
  const request = (await pending(deps, accountId)).find(({ jti }) => nameOf(jti) === name)
  if (request === undefined) return list(deps, visit, 'gone')
  if (form.get('action') !== 'approve') {
    await provider.backchannelResult(request, new errors.AccessDenied('the person refused'))
    return list(deps, visit, 'denied')
  }
  if (isTooOld(session, request)) return show(deps, visit, await askToSignIn(deps, visit, 'fresh'))
  const client = await provider.Client.find(request.clientId)
  const isDemanded = deps.demands(client) && !hasTwoFactors(session.acr)
  if (isDemanded || !meets(session.acr, splitScope(paramsOf(request).acr_values))) {
    if (await deps.secondFactor.has(accountId)) {
      const hidden = { xsrf: formToken(deps.masterKeys, session.uid) }
      return show(deps, visit, await askForSecond(deps, visit, { waiting, hidden }))
    }
    await provider.backchannelResult(request, new errors.AccessDenied('the person has no authenticator'))
    return list(deps, visit, 'unmet')
  }
  const choice = client === undefined ? null : await choiceOf(deps, request)
  const organization = choice === null ? undefined : organizationFrom(choice, form)
  if (client === undefined || organization === undefined)
    return refuse(visit.res, 'invalid', { frame: visit.frame, trouble: 'organization' })
  const grantId = await deps.consent.grant(provider, {
    accountId: request.accountId,
    client,
    params: { ...paramsOf(request), ...(request.resource === undefined ? {} : { resource: request.resource }) },
    organization,
    sessionUid: session.uid,
  })
  if (grantId === undefined) return refuse(visit.res, 'invalid', { frame: visit.frame, trouble: 'organization' })
  const { acr, amr } = session
  await provider.backchannelResult(request, grantId, {
    acr,
    amr,
    authTime: session.authTime(),
    sessionUid: session.uid,
  })
  return list(deps, visit, 'approved')
}

/** True if the request demands a newer sign-in. oidc-provider turns max_age=0 into prompt=login: a sign-in after the request. */
function isTooOld(session: Session, request: BackchannelRequest): boolean {
  const { max_age: maxAge, prompt } = paramsOf(request)
  if (maxAge !== undefined && session.past(maxAge)) return true
  return splitScope(prompt).includes('login') && (session.authTime() ?? 0) < request.iat
}

async function pending(deps: ApprovalDeps, accountId: string): Promise<readonly BackchannelRequest[]> {
  const rows = await deps.sql.query<{ id: string; payload: object }>(PENDING, [accountId])
  const ids = rows.flatMap(({ id, payload }) => {
    const opened = deps.recordSecrets.open('BackchannelAuthenticationRequest', id, payload)
    return opened !== null && 'jti' in opened && typeof opened.jti === 'string' ? [opened.jti] : []
  })
  const found = await Promise.all(ids.map((id) => deps.provider().BackchannelAuthenticationRequest.find(id)))
  return found.filter(isOfPerson)
}

const isOfPerson = (request: BackchannelAuthenticationRequest | undefined): request is BackchannelRequest =>
  request?.accountId !== undefined && request.clientId !== undefined

/** The request as the person sees it. Null: the person has left the client's tenant, so its message is not shown. */
async function presentRequest(deps: ApprovalDeps, request: BackchannelRequest): Promise<PendingRequest | null> {
  const client = await deps.provider().Client.find(request.clientId)
  if (client === undefined) return null
  const choice = await choiceOf(deps, request)
  if (choice === null && client.portcullis_organization !== null) return null
  const registered = splitScope(client.portcullis_scope)
  return {
    name: nameOf(request.jti),
    clientName: clientName(client),
    bindingMessage: paramsOf(request).binding_message ?? null,
    scopes: splitScope(paramsOf(request).scope).filter((scope) => registered.includes(scope)),
    choice,
  }
}

/** The organization that the approval is for; null: the person may not answer for the requested one. */
async function choiceOf(deps: ApprovalDeps, request: BackchannelRequest) {
  const client = await deps.provider().Client.find(request.clientId)
  if (client === undefined) return null
  const asked = paramsOf(request).organization ?? null
  const choice = await deps.consent.choose({ accountId: request.accountId, client, asked })
  return choice.kind === 'refused' ? null : choice
}

/** A name for the request. Pages use its digest, because the id is half of the credential that redeems the request. */
const nameOf = (id: string): string => createHash('sha256').update(id).digest('base64url')

function refuse(res: ServerResponse, outcome: StatusName, why: { frame: Frame; trouble: Trouble }): void {
  const page = errorPage(why.frame, { trouble: why.trouble, code: 'invalid_request', again: PATHS.approve })
  send(res, { outcome, page })
}
