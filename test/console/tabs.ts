/** One world, one browser and the tabs of its people, for one file of tests. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { launchChromium, openTab, type Tab } from './chromium.ts'
import { type OwnWorld, startOwnWorld } from './own-world.ts'

/** The page of a new tab, which ends with the test. `isFresh`: in a new session. */
export type Open = (
  options: BrowserContextOptions & { readonly person: string; readonly isFresh?: true },
) => Promise<Page>

/** `onWorld` is called before the first test. */
export function useTabs(onWorld: (world: OwnWorld) => void): Open {
  let world: OwnWorld
  let browser: Browser
  const tabs: Tab[] = []
  beforeAll(async () => {
    world = await startOwnWorld()
    onWorld(world)
    browser = await launchChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await world?.close()
  })
  /** What a policy refuses, or a script gets wrong, fails the test that saw it. */
  afterEach(async () => {
    const complaints = tabs.flatMap((tab) => tab.complaints)
    await Promise.all(tabs.splice(0).map(({ context }) => context.close()))
    expect(complaints).toEqual([])
  })
  /** Signed in once for each person: most tests are about what comes after. */
  const states = new Map<string, Awaited<ReturnType<BrowserContext['storageState']>>>()
  return async ({ person, isFresh, ...options }) => {
    const known = isFresh ? undefined : states.get(person)
    const signedIn = known === undefined ? { person } : { person: null, storageState: known }
    const tab = await openTab(browser, world, { ...options, ...signedIn })
    tabs.push(tab)
    if (known === undefined) states.set(person, await tab.context.storageState())
    return tab.page
  }
}
