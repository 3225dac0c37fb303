/** What every page of one request has in common: its language, and the id under which the log has the request. */
import type { IncomingMessage } from 'node:http'
import { type Context, paramsOf } from '../oauth/request.ts'
import { type Words, words } from '../words/words.ts'

export type Frame = { readonly words: Words; readonly requestId: string }
/** `uiLocales`: the parameter of the authorization request that the page belongs to. */
export type FrameOf = (
  req: Pick<IncomingMessage, 'headers' | 'url'>,
  about?: { readonly uiLocales?: string | undefined },
) => Frame

export const createFrames =
  (): FrameOf =>
  (req, { uiLocales } = {}) => ({
    words: words(req, uiLocales),
    // The handler of the routes has put it there.
    requestId: [req.headers['x-request-id']].flat()[0] ?? '',
  })

/** Of a page that oidc-provider asks for, or fails with: it may have read no parameters yet. */
export const frameIn = (frameOf: FrameOf, { req, oidc }: Pick<Context, 'req'> & { oidc?: Context['oidc'] }): Frame =>
  frameOf(req, { uiLocales: oidc === undefined ? undefined : paramsOf(oidc).ui_locales })
