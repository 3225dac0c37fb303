/** What people see of the console by their roles: nothing of others, of other tenants, or of what lies above them. */
import { describe, expect, test } from 'vitest'
import type { OwnWorld } from './own-world.ts'
import { SCREENS } from './screens.ts'
import { useTabs } from './tabs.ts'

let world: OwnWorld
const open = useTabs((made) => {
  world = made
})

/** All screens but the start page and the books, which everybody who is signed in may read. */
const SHUT = Object.entries(SCREENS).flatMap(([name, path]) => (/^(?:start|help)/.test(name) ? [] : [path]))

describe('people see what their roles let them see', () => {
  test('somebody without a role sees neither a link nor data, and what would help', async () => {
    const page = await open({ person: 'bob' })
    expect(await page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allInnerTexts()).toEqual([
      'Start',
      'Help',
    ])
    expect(await page.locator('main').innerText()).toContain('portcullis role grant auditor user:bob -o ORGANIZATION')
    for (const path of SHUT) {
      const response = await page.goto(path)
      expect({ path, status: response?.status() }).toEqual({ path, status: 403 })
      expect(await page.locator('main').innerText()).not.toMatch(/anna|finance|feature\.export/)
    }
  })

  test('two tenants see nothing of each other', async () => {
    const page = await open({ person: 'tom' })
    await page.goto('/console/relationships')
    expect(await page.locator('main').innerText()).toContain('secret-of-globex')
    expect(await page.content()).not.toContain('acme')
    for (const path of SHUT) {
      const response = await page.goto(path)
      expect({ path, status: response?.status() }).toEqual({ path, status: 403 })
      expect(await page.locator('main').innerText()).not.toMatch(/anna|finance|feature\.export/)
    }
  })

  test('who reads the roles of an organization does not see those that were given above it or everywhere', async () => {
    await world.manage('PUT', '/v1/organizations/acme~eu/members/anna', { role: 'member', status: 'active' })
    const grants = '/v1/organizations/acme~eu/role-grants'
    const given = { app: 'portcullis', role: 'auditor', subject: 'user:tom' }
    const { id } = await world.manage('POST', grants, given)
    const page = await open({ person: 'tom' })
    await page.goto('/console/people?org=acme~eu&user=anna')
    const seen = await page.locator('main').innerText()
    const of = await open({ person: 'root' })
    await of.goto('/console/people?org=acme~eu&user=anna')
    const whole = await of.locator('main').innerText()
    await world.manage('DELETE', `${grants}/${id}`)
    await world.manage('DELETE', '/v1/organizations/acme~eu/members/anna')
    expect(whole).toMatch(/portcullis \/ editor\s+directly\s+acme, above/)
    expect(seen).toContain('those granted where you may not look are left out')
    expect(seen).not.toContain('editor')
  })

  test('a person who may write nothing is offered nothing to write', async () => {
    const page = await open({ person: 'tom' })
    await page.goto('/console/relationships?org=globex')
    expect(await page.getByRole('button', { name: 'Preview' }).count()).toBe(0)
  })
})
