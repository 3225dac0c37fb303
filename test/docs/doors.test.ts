import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GATEWAYS, gatewayConfig, isGatewayName } from '../../sidecar/gateways/gateway-config.ts'
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { PLACES } from '../sidecar/gateways/printed.ts'

const BOOKS = join(import.meta.dirname, '../../docs')
const page = readFileSync(join(BOOKS, 'doors.md'), 'utf8')
const [, source = ''] = /```yaml\n(portcullis: v1\n[\s\S]*?)```/.exec(page) ?? []
const { file, issues } = parseRouteFile(source)

/** After a change of what is printed: `npm test -- test/docs/doors.test.ts -u`. */
describe('the page of doors', () => {
  test('has a route file that is valid', () => expect(issues).toEqual([]))

  test.each(Object.keys(GATEWAYS).filter(isGatewayName))('leads to what gateway-config prints for %s', async (name) => {
    if (file === null) throw new Error('the route file of the page is not valid')
    for (const printed of gatewayConfig(name, file, PLACES)) {
      expect(page).toContain(`(gateways/${printed.name})`)
      await expect(printed.text).toMatchFileSnapshot(join(BOOKS, 'gateways', printed.name))
    }
  })
})
