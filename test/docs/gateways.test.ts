import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkGateways } from '../../sidecar/gateways/check/check-gateway.ts'
import { FINDING_CODES } from '../../sidecar/gateways/check/finding.ts'
import { GATEWAYS, gatewayConfig, isGatewayName } from '../../sidecar/gateways/gateway-config.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { PLACES } from '../sidecar/gateways/printed.ts'

const FOLDER = join(import.meta.dirname, '../../docs/gateways')
const NAMES = Object.keys(GATEWAYS).filter(isGatewayName)
const index = readFileSync(join(FOLDER, 'index.md'), 'utf8')
const { file, issues } = parseRouteFile(/```yaml\n([\s\S]*?)```/.exec(index)?.[1] ?? '')

/** After a change of what is printed: `npm test -- test/docs/gateways.test.ts -u`. */
describe('the pages of gateways', () => {
  test('have a route file that is valid', () => expect(issues).toEqual([]))

  test.each(NAMES)('show for %s what gateway-config prints for it, which check-gateway accepts', async (name) => {
    if (file === null) throw new Error('the route file of the index is not valid')
    const path = join(FOLDER, `${name}.md`)
    const page = readFileSync(path, 'utf8')
    const files = gatewayConfig(name, file, PLACES)
    const shown = files.reduce(
      (text, printed) =>
        text.replace(
          new RegExp(`(\n\`${printed.name}\`\n\n\`\`\`\\w+\n)[\\s\\S]*?(\`\`\`)`),
          (_, head: string, end: string) => head + printed.text + end,
        ),
      page,
    )
    for (const printed of files) expect(shown).toContain(printed.text)
    await expect(shown).toMatchFileSnapshot(path)
    expect(checkGateways(files.map((printed) => ({ file: printed.name, text: printed.text }))).findings).toEqual([])
  })

  test('are all in the index, with every code of check-gateway', () => {
    for (const name of NAMES) expect(index).toContain(`(${name}.md)`)
    for (const [code, meaning] of Object.entries(FINDING_CODES))
      expect(index).toMatch(new RegExp(`\`${code}\` \\| ${meaning}`))
  })
})
