import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GATEWAYS, type GatewayName, gatewayConfig, isGatewayName } from '../../sidecar/gateways/gateway-config.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { PLACES } from '../sidecar/gateways/printed.ts'

const PATH = join(import.meta.dirname, '../../docs/doors.md')
const NAMES = Object.keys(GATEWAYS).filter(isGatewayName)
const page = readFileSync(PATH, 'utf8')
const [, source = ''] = /```yaml\n(portcullis: v1\n[\s\S]*?)```/.exec(page) ?? []
const { file, issues } = parseRouteFile(source)

/** After a change of what is printed: `npm test -- test/docs/doors.test.ts -u`. */
describe('the page of doors', () => {
  test('has a route file that is valid', () => expect(issues).toEqual([]))

  test('shows what gateway-config prints for each gateway, with long lists of removed fields cut', async () => {
    let shown = page
    for (const { name, text } of NAMES.flatMap(printedFor)) {
      const place = new RegExp(`(\n\`${name}\`\n\n\`\`\`\\w+\n)[\\s\\S]*?(\`\`\`)`)
      expect([name, place.test(shown)]).toEqual([name, true])
      shown = shown.replace(place, (_, head: string, end: string) => head + text + end)
    }
    await expect(shown).toMatchFileSnapshot(PATH)
  })
})

function printedFor(name: GatewayName): readonly { readonly name: string; readonly text: string }[] {
  if (file === null) throw new Error('the route file of the page is not valid')
  return gatewayConfig(name, file, PLACES).map((one) => ({ ...one, text: shortened(one.text) }))
}

/** A line of this kind removes a field of clients. */
const REMOVAL = /^(\s*)(?:request_header -|proxy_set_header \S+ "";)/
const [SHOWN_LINES, SHOWN_CHARACTERS] = [3, 100]

/** The first of the lines that remove fields, and the start of an expression that does. */
function shortened(text: string): string {
  const lines = text.split('\n')
  return lines
    .flatMap((line, at) => {
      const isRemoval = (from: number): boolean => REMOVAL.test(lines[from] ?? '')
      if (line.length > SHOWN_CHARACTERS && line.includes('Regex: ')) return [`${line.slice(0, SHOWN_CHARACTERS)}…`]
      if (!isRemoval(at) || !isRemoval(at - SHOWN_LINES) || !isRemoval(at - 1) || !isRemoval(at - 2)) return [line]
      return isRemoval(at + 1) ? [] : [`${REMOVAL.exec(line)?.[1] ?? ''}# … and all others`]
    })
    .join('\n')
}
