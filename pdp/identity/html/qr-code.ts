/** A QR code as a picture inside the page, so that its content goes to no other server. */
import { type Html, html } from '../../shared/base/html.ts'

/** The width of the light border, in modules, that readers need to find the code (ISO/IEC 18004). */
const QUIET = 4

export async function qrCode(text: string, alternative: string): Promise<Html> {
  // Loaded when the first code is drawn: most processes never draw one.
  const { encode } = await import('uqr')
  const { data, size } = encode(text, { ecc: 'M', border: 0 })
  const dark = data.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])),
  )
  const side = String(size + 2 * QUIET)
  return html`<svg class="qr" role="img" aria-label="${alternative}" viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${side}v${side}H0z"/><path d="${dark.join('')}"/></svg>`
}
