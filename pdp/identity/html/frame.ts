/** The parts that every page of one request shares: language, brand, the application, and the request id for the log. */
import type { IncomingMessage } from 'node:http'
import type { Client } from 'oidc-provider'
import { type Brand, type Branding, createBrand, webUrl } from '../../shared/pages/brand.ts'
import { mountOf } from '../oauth/paths.ts'
import { type Context, paramsOf } from '../oauth/request.ts'
import { type Words, words } from './words/words.ts'

/** The application that the page is about (RFC 7591 section 2). */
export type Application = {
  readonly name: string
  readonly logo?: URL
  readonly terms?: string
  readonly privacy?: string
}
export type Frame = {
  readonly words: Words
  readonly issuer: string
  /** Its path, which stands before those of the pages. */
  readonly mount: string
  readonly requestId: string
  readonly brand: Brand
  readonly application: Application | null
  /** People can sign in with passkeys here. */
  readonly passkeys: boolean
}
/** `uiLocales`: the parameter of the authorization request that the page belongs to. */
export type FrameOf = (
  req: Pick<IncomingMessage, 'headers' | 'url'>,
  about?: { readonly uiLocales?: string | undefined; readonly client?: Client | undefined },
) => Frame

export function createFrames(issuer: string, branding: Branding = {}, passkeys = false): FrameOf {
  const brand = createBrand(branding)
  const mount = mountOf(issuer)
  return (req, { uiLocales, client } = {}) => ({
    words: words(req, uiLocales),
    // The handler of the routes has put it there.
    requestId: [req.headers['x-request-id']].flat()[0] ?? '',
    brand,
    issuer,
    mount,
    passkeys,
    application: client === undefined ? null : applicationOf(client),
  })
}

/** Serves a page that oidc-provider asks for, or fails with: it may have read no parameters yet. */
export const frameIn = (frameOf: FrameOf, { req, oidc }: Pick<Context, 'req'> & { oidc?: Context['oidc'] }): Frame =>
  frameOf(req, { uiLocales: oidc === undefined ? undefined : paramsOf(oidc).ui_locales })

/** A client that nobody registered is known by its host, whatever it calls itself. */
export function nameOf({ clientName, clientId, portcullis_document: isFromDocument }: Client): string {
  if (!isFromDocument || clientName === undefined) return clientName ?? clientId
  return `${clientName} (${new URL(clientId).host})`
}

/** The client of a tenant shows no picture: its page could imitate another one on which people type passwords. */
export function applicationOf(client: Client): Application {
  const { logoUri, tosUri, policyUri } = client
  const logo = client.portcullis_organization === null ? webUrl(logoUri) : null
  const [terms, privacy] = [webUrl(tosUri), webUrl(policyUri)]
  return {
    name: nameOf(client),
    ...(logo === null ? {} : { logo }),
    ...(terms === null ? {} : { terms: terms.href }),
    ...(privacy === null ? {} : { privacy: privacy.href }),
  }
}
