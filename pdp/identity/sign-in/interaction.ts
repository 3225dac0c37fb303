/** Signing in and consenting: what oidc-provider leaves to us, one page each, bound to the cookie of its own path. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Client, errors, type Interaction, type InteractionResults, type Provider } from 'oidc-provider'
import type { Log } from '../../process/log.ts'
import type { Directory } from '../../store/directory.ts'
import { type Choice, consentPage } from '../html/consent-page.ts'
import { errorPage, type Trouble } from '../html/error-page.ts'
import { isCrossSite, readForm } from '../html/forms.ts'
import { type Frame, type FrameOf, nameOf } from '../html/frame.ts'
import type { Page } from '../html/page.ts'
import { paramsOf } from '../oauth/request.ts'
import { splitScope } from '../oauth/scopes.ts'
import { type Outcome, STATUS } from '../oauth/status.ts'
import type { Consent } from './consent.ts'
import type { Devices } from './devices.ts'
import { isEmail, type RecoveryUsed, type SignIn, type Waiting } from './sign-in.ts'
import { codePage, type LoginProblem, loginPage, outcomeOf, type Purpose, recoveryUsedPage } from './sign-in-pages.ts'

const RETRY_AFTER_SECONDS = 60

export type InteractionDeps = {
  readonly issuer: string
  /** The provider of the current signing keys. */
  readonly provider: () => Provider
  readonly directory: Pick<Directory, 'user'>
  readonly consent: Consent
  readonly signIn: SignIn
  readonly devices: Devices
  readonly recoveryUsed: RecoveryUsed
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
  // The cookie says whose interaction this is; the address must name the same.
  if (interaction === null || interaction.uid !== uid || client === undefined) {
    return refuse(res, 'invalid', { frame: deps.frameOf(req), trouble: 'expired' })
  }
  const frame = deps.frameOf(req, { uiLocales: paramsOf(interaction).ui_locales, client })
  const current = { req, res, interaction, client, frame }
  if (req.method !== 'POST') return ask(deps, current)
  if (isCrossSite(req, deps.issuer)) return refuse(res, 'invalid', { frame, trouble: 'foreignForm' })
  const form = await readForm(req)
  if (form === null) return refuse(res, 'tooLarge', { frame, trouble: 'largeForm' })
  const action = form.get('action')
  if (action === 'cancel') return finish(deps, current, denied('the person did not continue'))
  if (action === 'switch') return showLogin(current, { email: '', problem: null })
  // Somebody else may sign in where the one who is signed in was asked for consent.
  if (interaction.prompt.name !== 'login' && action !== 'login' && action !== 'code') {
    return consent(deps, current, form)
  }
  return action === 'code' ? code(deps, current, form) : password(deps, current, form)
}

async function ask(deps: InteractionDeps, exchange: Exchange): Promise<void> {
  const { res, interaction, client, frame } = exchange
  if (interaction.prompt.name === 'login') {
    if ((await steppingUp(deps, exchange)) !== null) return showCode(exchange, { sealed: null, problem: null })
    const hint = paramsOf(interaction).login_hint ?? ''
    return showLogin(exchange, { email: isEmail(hint) ? hint : '', problem: null })
  }
  const accountId = interaction.session?.accountId
  const choice = await choiceOf(deps, exchange)
  if (accountId === undefined || choice.kind === 'refused') return finish(deps, exchange, notAMember())
  const user = await deps.directory.user(accountId)
  const person = user?.email ?? user?.name ?? accountId
  const asked = splitScope(paramsOf(interaction).scope)
  const scopes = splitScope(client.portcullis_scope).filter((scope) => asked.includes(scope))
  show(res, 'shown', consentPage(frame, { clientName: nameOf(client), person, scopes, choice }))
}

async function password(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const email = form.get('email') ?? ''
  const client = exchange.client.clientId
  const source = deps.devices.source(exchange.req)
  const outcome = await deps.signIn.password({ email, password: form.get('password') ?? '', client, source })
  if ('problem' in outcome) return showLogin(exchange, { email, problem: outcome.problem })
  if ('waiting' in outcome) {
    const sealed = deps.signIn.seal(outcome.waiting, exchange.interaction.uid)
    return showCode(exchange, { sealed, problem: null })
  }
  deps.devices.remember(exchange.res, outcome.accountId)
  return finish(deps, exchange, { login: { ...outcome, amr: [...outcome.amr] } })
}

async function code(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const sealed = form.get('password_accepted')
  const waiting =
    sealed === null ? await steppingUp(deps, exchange) : deps.signIn.open(sealed, exchange.interaction.uid)
  if (waiting === null) return showLogin(exchange, { email: '', problem: null })
  const client = exchange.client.clientId
  const source = deps.devices.source(exchange.req)
  const outcome = await deps.signIn.code({ waiting, code: form.get('code') ?? '', client, source })
  if ('problem' in outcome) return showCode(exchange, { sealed, problem: outcome.problem })
  deps.devices.remember(exchange.res, outcome.accountId)
  const { left, ...signedIn } = outcome
  const login = { ...signedIn, amr: [...signedIn.amr] }
  if (left === undefined) return finish(deps, exchange, { login })
  deps.recoveryUsed(login.accountId, { left, words: exchange.frame.words })
  const to = await deps.provider().interactionResult(exchange.req, exchange.res, { login })
  show(exchange.res, 'shown', recoveryUsedPage(exchange.frame, { left, to }))
}

/**
 * Who is signed in by password and lacks only the code. The time of the sign-in stays that of the password: a code alone does
 * not satisfy a client that asks for a fresh sign-in by max_age.
 */
async function steppingUp(deps: InteractionDeps, { req, res, interaction }: Exchange): Promise<Waiting | null> {
  const [reason, ...others] = interaction.prompt.reasons
  if (reason !== 'acr_values' || others.length > 0 || interaction.session === undefined) return null
  const provider = deps.provider()
  const session = await provider.Session.get(provider.createContext(req, res))
  const { accountId, uid } = session
  const ts = session.authTime()
  if (accountId === undefined || ts === undefined || uid !== interaction.session.uid) return null
  return { accountId, ts }
}

async function consent(deps: InteractionDeps, exchange: Exchange, form: URLSearchParams): Promise<void> {
  const { interaction, client } = exchange
  const accountId = interaction.session?.accountId
  const choice = await choiceOf(deps, exchange)
  const organization = organizationFrom(choice, form)
  if (accountId === undefined || organization === undefined) return finish(deps, exchange, notAMember())
  const sessionUid = interaction.session?.uid ?? null
  const params = paramsOf(interaction)
  const grantId = await deps.consent.grant(deps.provider(), { accountId, client, params, organization, sessionUid })
  return finish(deps, exchange, { consent: { grantId } })
}

/** Undefined when the person named none, or one that was not offered. */
function organizationFrom(choice: Choice, form: URLSearchParams): string | null | undefined {
  switch (choice.kind) {
    case 'bound':
      return choice.organization.id
    case 'unbound':
      return null
    case 'choose':
      return choice.from.find(({ id }) => id === form.get('organization'))?.id
    case 'refused':
      return undefined
  }
}

async function choiceOf(deps: InteractionDeps, { interaction, client }: Exchange): Promise<Choice> {
  const accountId = interaction.session?.accountId
  if (accountId === undefined) return { kind: 'refused' }
  return deps.consent.choose({ accountId, client, asked: paramsOf(interaction).organization ?? null })
}

const denied = (description: string) => ({ error: 'access_denied', error_description: description })
const notAMember = () => denied('no active membership that this sign-in could be bound to')

/** Back to oidc-provider, which keeps what earlier steps of this sign-in found out. */
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
  } catch (error) {
    if (error instanceof errors.SessionNotFound) return null
    throw error
  }
}

function purposeOf({ client }: Exchange): Purpose {
  return { kind: 'application', name: nameOf(client) }
}

function showLogin(exchange: Exchange, view: { email: string; problem: LoginProblem | null }): void {
  showStep(exchange, view.problem, loginPage(exchange.frame, { purpose: purposeOf(exchange), ...view }))
}

/** `sealed`: null for who is signed in already. */
function showCode(exchange: Exchange, view: { sealed: string | null; problem: LoginProblem | null }): void {
  const { sealed, problem } = view
  const hidden = sealed === null ? {} : { password_accepted: sealed }
  showStep(exchange, problem, codePage(exchange.frame, { purpose: purposeOf(exchange), hidden, problem }))
}

function showStep({ res }: Exchange, problem: LoginProblem | null, page: Page): void {
  const outcome = outcomeOf(problem)
  if (outcome === 'tooMany' || outcome === 'unavailable') res.setHeader('retry-after', RETRY_AFTER_SECONDS)
  show(res, outcome, page)
}

function refuse(res: ServerResponse, outcome: Outcome, why: { frame: Frame; trouble: Trouble }): void {
  show(res, outcome, errorPage(why.frame, { trouble: why.trouble, code: 'invalid_request' }))
}

function show(res: ServerResponse, outcome: Outcome, page: Page): void {
  res.writeHead(STATUS[outcome], page.headers)
  res.end(page.html)
}
