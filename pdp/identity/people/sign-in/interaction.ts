/** Signing in and consenting: pages that oidc-provider leaves to us. A cookie of its path identifies each sign-in. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Client, errors, type Interaction, type InteractionResults, type Provider } from 'oidc-provider'
import type { Directory } from '../../../engine/store/directory.ts'
import type { Log } from '../../../shared/process/log.ts'
import { type Choice, consentPage } from '../../html/consent-page.ts'
import { errorPage, type Trouble } from '../../html/error-page.ts'
import { type Frame, type FrameOf, nameOf } from '../../html/frame.ts'
import { send, type View } from '../../html/page.ts'
import type { Devices } from '../../limits/devices.ts'
import { isCrossSite, readForm } from '../../oauth/forms.ts'
import { PATHS } from '../../oauth/paths.ts'
import { paramsOf } from '../../oauth/request.ts'
import { splitScope } from '../../oauth/scopes.ts'
import type { StatusName } from '../../oauth/status.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import { type Assurance, BY_PASSWORD, hasTwoFactors } from './acr.ts'
import { type Consent, organizationFrom } from './consent.ts'
import { isSecond, type PasskeySteps, type Turn } from './passkey-steps.ts'
import type { Elsewhere } from './sign-in.ts'
import { isEmail, type RecoveryUsed, type SignIn, type Waiting } from './sign-in.ts'
import {
  type LoginProblem,
  loginPage,
  outcomeOf,
  type Purpose,
  recoveryUsedPage,
  secondFactorNeededPage,
} from './sign-in-pages.ts'
import { SECOND_FACTOR_REASON, STEP_UP_REASON } from './sign-in-policy.ts'

const RETRY_AFTER_SECONDS = 60

export type InteractionDeps = {
  readonly issuer: string
  /** The provider of the current signing keys. */
  readonly provider: () => Provider
  readonly directory: Pick<Directory, 'user'>
  readonly consent: Consent
  readonly secondFactor: Pick<SecondFactor, 'has'>
  readonly signIn: SignIn
  readonly elsewhere: Elsewhere
  readonly devices: Devices
  readonly recoveryUsed: RecoveryUsed
  readonly passkeySteps: PasskeySteps
  readonly frameOf: FrameOf
  readonly log: Log
}
type Exchange = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly interaction: Interaction
  readonly client: Client
  readonly frame: Frame
}

/** Answers GET and POST of `/oauth/interaction/<uid>`. Throws PdpError `store_unavailable`. */
export async function answerInteraction(
  deps: InteractionDeps,
  exchange: { req: IncomingMessage; res: ServerResponse; uid: string },
): Promise<void> {
  const { req, res, uid } = exchange
  const interaction = await findInteraction(deps.provider(), req, res)
  const client = await deps.provider().Client.find(paramsOf(interaction ?? {}).client_id ?? '')
  // The cookie identifies the interaction; the URL must name the same one.
  if (interaction === null || interaction.uid !== uid || client === undefined) {
    return refuse(res, 'invalid', { frame: deps.frameOf(req), trouble: 'expired' })
  }
  const frame = deps.frameOf(req, { uiLocales: paramsOf(interaction).ui_locales, client })
  const current = { req, res, interaction, client, frame }
  if (req.method !== 'POST') return ask(deps, current)
  const again = `${PATHS.interaction}/${uid}`
  if (isCrossSite(req, deps.issuer)) return refuse(res, 'invalid', { frame, trouble: 'crossSiteForm', again })
  const form = await readForm(req)
  if (form === null) return refuse(res, 'tooLarge', { frame, trouble: 'largeForm', again })
  const action = form.get('action')
  if (action === 'cancel') return finish(deps, current, denied('the person did not continue'))
  if (action === 'switch') return showLogin(deps, current, { email: '', problem: null })
  const answered = ANSWERS.get(action ?? '') ?? (interaction.prompt.name === 'login' ? password : consent)
  return answered(deps, current, form)
}

async function ask(deps: InteractionDeps, exchange: Exchange): Promise<void> {
  const { res, interaction, client, frame } = exchange
  if (interaction.prompt.name === 'login') {
    const handed = deps.elsewhere.handedOver(exchange.req, interaction.uid)
    if (handed !== null) return finish(deps, exchange, { login: { ...handed, amr: [...handed.amr] } })
    const waiting = await steppingUp(deps, exchange)
    if (waiting !== null) return stepUp(deps, exchange, waiting)
    const hint = paramsOf(interaction).login_hint ?? ''
    return showLogin(deps, exchange, { email: isEmail(hint) ? hint : '', problem: null })
  }
  const accountId = interaction.session?.accountId
  const choice = await choiceOf(deps, exchange)
  if (accountId === undefined || choice.kind === 'refused') return finish(deps, exchange, notAMember())
  const user = await deps.directory.user(accountId)
  const person = user?.email ?? user?.name ?? accountId
  const asked = splitScope(paramsOf(interaction).scope)
  const scopes = splitScope(client.portcullis_scope).filter((scope) => asked.includes(scope))
  const from = client.portcullis_document ? { from: placesOf(client, interaction) } : {}
  const page = consentPage(frame, { clientName: nameOf(client), person, scopes, choice, ...from })
  send(res, { outcome: 'shown', page })
}

function placesOf({ clientId }: Client, interaction: Interaction): { readonly host: string; readonly target: string } {
  const { protocol, host } = new URL(paramsOf(interaction).redirect_uri ?? clientId)
  return { host: new URL(clientId).host, target: protocol === 'https:' ? host : `${protocol}//${host}` }
}

/** Asks a signed-in person for the second factor. Without one, the person adds one in the account and returns. */
async function stepUp(deps: InteractionDeps, exchange: Exchange, waiting: Waiting & Assurance): Promise<void> {
  const { interaction, frame, client } = exchange
  if (hasTwoFactors(waiting.acr)) return finish(deps, exchange, { login: { ...waiting, amr: [...waiting.amr] } })
  if (await deps.secondFactor.has(waiting.accountId))
    return askForSecond(deps, exchange, { sealed: null, waiting, problem: null })
  const page = secondFactorNeededPage(frame, { application: nameOf(client), from: interaction.uid })
  send(exchange.res, { outcome: 'shown', page })
}

async function password(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const email = form.get('email') ?? ''
  const client = exchange.client.clientId
  const source = deps.devices.source(exchange.req)
  const outcome = await deps.signIn.password({ email, password: form.get('password') ?? '', client, source })
  if ('problem' in outcome) return showLogin(deps, exchange, { email, problem: outcome.problem })
  if ('waiting' in outcome) {
    const { waiting } = outcome
    const sealed = deps.signIn.seal(waiting, exchange.interaction.uid)
    return askForSecond(deps, exchange, { sealed, waiting, problem: null })
  }
  deps.devices.remember(exchange.res, outcome.accountId)
  return finish(deps, exchange, { login: { ...outcome, amr: [...outcome.amr] } })
}

async function code(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const { sealed, waiting } = await waitingIn(deps, exchange, form)
  if (waiting === null) return showLogin(deps, exchange, { email: '', problem: null })
  const client = exchange.client.clientId
  const source = deps.devices.source(exchange.req)
  const outcome = await deps.signIn.code({ waiting, code: form.get('code') ?? '', client, source })
  if ('problem' in outcome) return askForSecond(deps, exchange, { sealed, waiting, problem: outcome.problem })
  deps.devices.remember(exchange.res, outcome.accountId)
  const { left, ...signedIn } = outcome
  const login = { ...signedIn, amr: [...signedIn.amr] }
  if (left === undefined) return finish(deps, exchange, { login })
  deps.recoveryUsed(login.accountId, { left, words: exchange.frame.words })
  const to = await deps.provider().interactionResult(exchange.req, exchange.res, { login })
  send(exchange.res, { outcome: 'shown', page: recoveryUsedPage(exchange.frame, { left, to }) })
}

async function anotherSecond(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const { sealed, waiting } = await waitingIn(deps, exchange, form)
  if (waiting === null) return showLogin(deps, exchange, { email: '', problem: null })
  return askForSecond(deps, exchange, { sealed, waiting, problem: null })
}

async function passkey(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const after = isSecond(form) ? await waitingIn(deps, exchange, form) : { sealed: null, waiting: null }
  if (isSecond(form) && after.waiting === null) return showLogin(deps, exchange, { email: '', problem: null })
  const turn = turnOf(deps, exchange, after)
  if (form.get('action') === 'passkey') return showStep(exchange, await deps.passkeySteps.ask(turn))
  const taken = await deps.passkeySteps.take({ ...turn, answer: form.get('credential') ?? '' })
  if (!('signedIn' in taken)) return showStep(exchange, taken)
  const { signedIn } = taken
  deps.devices.remember(exchange.res, signedIn.accountId)
  return finish(deps, exchange, { login: { ...signedIn, amr: [...signedIn.amr] } })
}

/** Handlers of the forms' steps, on all pages: on the consent page, too, a person may sign in with another account. */
const ANSWERS: ReadonlyMap<string, typeof password> = new Map([
  ['login', password],
  ['code', code],
  ['app', anotherSecond],
  ['passkey', passkey],
  ['passkey_answer', passkey],
])

type After = { readonly sealed: string | null; readonly waiting: Waiting | null }

/** The person whose password was right, sealed in the form; without this field, the signed-in person. */
async function waitingIn(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<After> {
  const sealed = form.get('password_accepted')
  const waiting =
    sealed === null ? await steppingUp(deps, exchange) : deps.signIn.open(sealed, exchange.interaction.uid)
  return { sealed, waiting }
}

function turnOf(deps: InteractionDeps, exchange: Exchange, { sealed, waiting }: After): Turn {
  const { req, res, frame, client, interaction } = exchange
  return {
    req,
    res,
    frame,
    waiting,
    client: client.clientId,
    at: interaction.uid,
    purpose: purposeOf(exchange),
    hidden: sealed === null ? {} : { password_accepted: sealed },
    source: deps.devices.source(req),
  }
}

async function askForSecond(
  deps: InteractionDeps,
  exchange: Exchange,
  { problem, waiting, ...after }: After & { readonly waiting: Waiting; readonly problem: LoginProblem | null },
): Promise<void> {
  const turn = { ...turnOf(deps, exchange, { ...after, waiting }), waiting }
  return showStep(exchange, await deps.passkeySteps.askForSecond(turn, problem))
}

/**
 * A person who signed in by password and lacks only the code. The time stays that of the password: a code alone is no recent sign-in for a
 * client with max_age.
 */
async function steppingUp(
  deps: InteractionDeps,
  { req, res, interaction }: Exchange,
): Promise<(Waiting & Assurance) | null> {
  const { reasons } = interaction.prompt
  if (!reasons.every((reason) => STEPS_UP.has(reason)) || interaction.session === undefined) return null
  const provider = deps.provider()
  const session = await provider.Session.get(provider.createContext(req, res))
  const { accountId, uid, acr = BY_PASSWORD.acr, amr = [] } = session
  const ts = session.authTime()
  if (accountId === undefined || ts === undefined || uid !== interaction.session.uid) return null
  return { accountId, ts, acr, amr }
}

const STEPS_UP: ReadonlySet<string> = new Set([STEP_UP_REASON, SECOND_FACTOR_REASON])

async function consent(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const { interaction, client } = exchange
  const accountId = interaction.session?.accountId
  const choice = await choiceOf(deps, exchange)
  const organization = organizationFrom(choice, form)
  if (accountId === undefined || organization === undefined) return finish(deps, exchange, notAMember())
  const sessionUid = interaction.session?.uid ?? null
  const params = paramsOf(interaction)
  const grantId = await deps.consent.grant(deps.provider(), { accountId, client, params, organization, sessionUid })
  return finish(deps, exchange, grantId === undefined ? notAMember() : { consent: { grantId } })
}

async function choiceOf(deps: InteractionDeps, { interaction, client }: Exchange): Promise<Choice> {
  const accountId = interaction.session?.accountId
  if (accountId === undefined) return { kind: 'refused' }
  return deps.consent.choose({ accountId, client, asked: paramsOf(interaction).organization ?? null })
}

const denied = (description: string) => ({ error: 'access_denied', error_description: description })
const notAMember = () => denied('no active membership that this sign-in could be bound to')

/** Returns to oidc-provider, with the results of earlier steps of this sign-in. */
async function finish(
  { provider }: InteractionDeps,
  { req, res }: Exchange,
  result: InteractionResults,
): Promise<void> {
  res.setHeader('cache-control', 'no-store')
  await provider().interactionFinished(req, res, result)
}

async function findInteraction(
  provider: Provider,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<Interaction | null> {
  try {
    return await provider.interactionDetails(req, res)
  } catch (err) {
    if (err instanceof errors.SessionNotFound) return null
    throw err
  }
}

function purposeOf({ client }: Exchange): Purpose {
  return { kind: 'application', name: nameOf(client) }
}

const AGAIN: ReadonlySet<string> = new Set(['login_prompt', 'max_age'])

async function showLogin(
  deps: InteractionDeps,
  exchange: Exchange,
  view: { email: string; problem: LoginProblem | null },
): Promise<void> {
  const { elsewhere, passkeySteps } = deps
  const { interaction, client, frame } = exchange
  // True also without a session here: another provider may have signed the person in long ago.
  const fresh = paramsOf(interaction).max_age !== undefined || interaction.prompt.reasons.some((one) => AGAIN.has(one))
  const target = { interaction: interaction.uid, fresh }
  const organization = client.portcullis_organization ?? paramsOf(interaction).organization ?? null
  const buttons = await elsewhere.buttons(frame, target, organization)
  const passkeys = await passkeySteps.offer(turnOf(deps, exchange, { sealed: null, waiting: null }))
  const page = loginPage(frame, {
    purpose: purposeOf(exchange),
    ...view,
    elsewhere: buttons,
    passkeys,
    from: interaction.uid,
  })
  showStep(exchange, { outcome: outcomeOf(view.problem), page })
}

function showStep({ res }: Exchange, view: View): void {
  if (view.outcome === 'tooMany' || view.outcome === 'unavailable') res.setHeader('retry-after', RETRY_AFTER_SECONDS)
  send(res, view)
}

function refuse(
  res: ServerResponse,
  outcome: StatusName,
  { frame, ...why }: { frame: Frame; trouble: Trouble; again?: string },
): void {
  send(res, { outcome, page: errorPage(frame, { ...why, code: 'invalid_request' }) })
}
