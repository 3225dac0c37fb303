/** Edits of printed configurations, and what `check-gateway` says of them. */

import { checkGateways } from '../../../sidecar/gateways/check/check-gateway.ts'
import type { Finding } from '../../../sidecar/gateways/check/finding.ts'
import type { GatewayName } from '../../../sidecar/gateways/gateway-config.ts'
import type { Source } from '../../../sidecar/gateways/read/source.ts'
import { printed } from './printed.ts'

export type Edit = readonly [find: string | RegExp, replace: string]

/** The printed files after the edits, each of which must change something. */
export function edited(gateway: GatewayName, ...edits: readonly Edit[]): readonly Source[] {
  const sources = printed(gateway).map(({ name, text }) => ({ file: name, text }))
  return edits.reduce((files, [find, replace]) => {
    const after = files.map(({ file, text }) => ({ file, text: text.replace(find, replace) }))
    if (JSON.stringify(after) === JSON.stringify(files)) throw new Error(`nothing was replaced: ${find}`)
    return after
  }, sources)
}

/** `code: the line that the finding names`. */
export const saying = (sources: readonly Source[]): readonly string[] =>
  checkGateways(sources).findings.map(({ code, file, line }: Finding) => {
    const text = sources.find((source) => source.file === file)?.text.split('\n')[line - 1] ?? ''
    return `${code}: ${text.trim()}`
  })

export const one = (file: string, text: string): readonly Source[] => [{ file, text }]
