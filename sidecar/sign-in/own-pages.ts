/** Answers the sidecar's own paths: the start and the end of a sign-in, and signing out. */
import type { DenialAnswer } from '../enforce/denial-response.ts'
import { malformed, RequestError } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { choose, goalOf, lead, sendTo } from './begin-sign-in.ts'
import { returned } from './callback.ts'
import { OWN_PATHS, PATHS, type SignInContext } from './context.ts'
import { frameFor, isPrefetch } from './navigation.ts'
import type { OwnCookies } from './session-store.ts'
import { askToSignOut, signedOut, signedOutByIssuer, signOut } from './sign-out.ts'

/** Answers a request for a page of the sign-in. Rejects with RequestError. */
export async function answerOwn(
  options: {
    readonly request: InboundRequest
    readonly own: OwnCookies
    /** The sidecar's cookies, with one map for each value of a repeated name. */
    readonly readings: readonly OwnCookies[]
    /** Reads the body of a form. Rejects with RequestError. */
    readonly readForm: () => Promise<Buffer>
  },
  context: SignInContext,
): Promise<DenialAnswer> {
  const { request, own, readings, readForm } = options
  const { method, target } = request
  const [page = '', name = '', ...more] = target.path.slice(OWN_PATHS.length).split('/')
  const unknown = (): never => {
    throw new RequestError('route_unknown', 'The sidecar has no page of this name')
  }
  const allow = (...methods: readonly string[]): void => {
    if (!methods.includes(method))
      throw new RequestError('method_unsupported', `This page takes ${methods.join(' and ')}`)
    // A prefetch must begin and end nothing, since no person has asked for it.
    if (isPrefetch(request)) throw malformed('This page cannot be fetched ahead')
  }
  const provider = context.providers.get(name)
  const frame = frameFor(request, context.theme)
  const asker = { own, address: request.clientAddress, frame }
  if (more.length > 0 || target.path.endsWith('/') || (name !== '' && provider === undefined)) return unknown()
  switch (page) {
    case PATHS.signIn: {
      allow('GET')
      const goal = goalOf(target.query, context)
      if (provider !== undefined && (name !== '' || context.providers.size === 1))
        return sendTo(provider, goal, asker, context)
      return context.providers.size === 1 ? lead(goal, asker, context) : choose(goal, frame, context)
    }
    case PATHS.callback:
      allow('GET')
      return returned(request, name, { own, frame, context })
    case PATHS.signOut:
      if (name !== '') return unknown()
      allow('GET', 'POST')
      return method === 'GET' ? askToSignOut(frame, context) : signOut(request, { readings, context })
    case PATHS.signedOut:
      if (name !== '') return unknown()
      allow('GET')
      // The page says "signed out" only to people without a session: a link on any site may lead here.
      return (await context.sessions.find(own)) === null ? signedOut(frame, context) : askToSignOut(frame, context)
    case PATHS.backChannel:
      if (provider === undefined) return unknown()
      allow('POST')
      return signedOutByIssuer(await readForm(), provider, context)
    default:
      return unknown()
  }
}
