/** Pages for browsers that come from no application: the issuer's root, and unknown paths. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { mountOf, PATHS, urlOf } from '../oauth/paths.ts'
import { STATUS } from '../oauth/status.ts'
import { errorPage } from './error-page.ts'
import type { FrameOf } from './frame.ts'
import { type Page, page } from './page.ts'

/** The page for a path without a route, or for a request with more header fields than the server reads. */
export type PublicPages = (
  req: Parameters<FrameOf>[0] & { readonly url?: string | undefined },
  trouble?: 'oversized',
) => { readonly status: number; readonly page: Page }

export function createPublicPages({ issuer, frameOf }: { issuer: string; frameOf: FrameOf }): PublicPages {
  const mount = mountOf(issuer)
  const roots = new Set(['/', mount, `${mount}/`])
  const link = (path: string, text: string, kind = 'act'): Html =>
    html`<a class="${kind}" href="${urlOf(issuer, path)}">${text}</a>`

  return (req, trouble) => {
    const frame = frameOf(req)
    if (trouble === 'oversized')
      return { status: STATUS.oversized, page: errorPage(frame, { trouble, code: 'headers_too_large' }) }
    const { account, landing, device, approval } = frame.words
    if (!roots.has((req.url ?? '').split('?', 1)[0] ?? '')) {
      return { status: STATUS.missing, page: errorPage(frame, { trouble: 'missing', code: 'not_found' }) }
    }
    const whose = frame.brand.name === undefined ? EMPTY : html`<p><strong>${frame.brand.name}</strong></p>`
    const body = html`${whose}<p>${landing.text}</p>
${link(PATHS.account, account.home.title)}${link(PATHS.device, device.title, 'act plain')}${link(PATHS.approve, approval.title, 'act plain')}`
    return { status: STATUS.shown, page: page(frame, landing.title, body) }
  }
}
