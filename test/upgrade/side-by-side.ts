/** An earlier version and today's on one database under load, and what stands afterwards. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startDatabase } from './database.ts'
import { dumpOf } from './dump.ts'
import { type Load, startLoad } from './load.ts'
import { credentials, differences, survey } from './survey.ts'
import { type Pdp, type Ports, shortName, startPdp, stopPdp, type Version } from './versions.ts'
import { adminToken, apiOf, makeWorld, ORGANIZATION } from './world.ts'

/** What an earlier version says of a newer schema. */
const REFUSAL = 'was migrated by a newer Portcullis'

type Played = {
  readonly version: Version
  readonly root: string
  readonly folder: string
  readonly seconds: number
}

export async function playUpgrade({ version, root, folder, seconds }: Played): Promise<readonly string[]> {
  const database = await startDatabase(folder)
  const running: Pdp[] = []
  const start = async (name: string, more: { root?: string; issuer?: string; ports?: Ports }): Promise<Pdp> => {
    const pdp = await startPdp({ name, folder, databaseUrl: database.url, ...more })
    running.push(pdp)
    return pdp
  }
  try {
    const old = await start('old', { root })
    const { origin: issuer, ports } = old
    const tokens = await makeWorld(issuer)
    const before = await survey(issuer)
    const load = version.besideToday ? await startLoad([issuer], issuer) : null
    const wait = (share: number): Promise<void> => delay(load === null ? 0 : seconds * 1_000 * share)
    await wait(0.2)
    if (load === null) await stopPdp(old)
    const today = await start('today', { issuer })
    load?.origins.push(today.origin)
    await wait(0.5)
    // As a rolling restart does it: away from the Service, its end, the next one at its place.
    load?.origins.shift()
    await wait(0.1)
    if (load !== null) await stopPdp(old)
    await start('today-again', { issuer, ports })
    load?.origins.push(issuer)
    await wait(0.2)
    await load?.stop()
    report(load)
    return [
      ...((await load?.complaints()) ?? []),
      ...(load === null ? differences(before, await survey(issuer)) : []),
      ...(await credentials(issuer, tokens)),
      ...(await disorder(issuer)),
      ...(await refusesToday({ root, folder, databaseUrl: database.url })),
    ]
  } finally {
    for (const { part } of running) {
      part.signal('SIGKILL')
      await part.ended()
    }
    await database.stop()
  }
}

/** Into `dumps/`. */
export async function makeDump({ version, root, folder }: Omit<Played, 'seconds'>): Promise<readonly string[]> {
  const database = await startDatabase(folder)
  try {
    const old = await startPdp({ name: 'old', folder, databaseUrl: database.url, root })
    await makeWorld(old.origin)
    const said = await survey(old.origin)
    await stopPdp(old)
    const path = join(import.meta.dirname, 'dumps', `${shortName(version)}.sql`)
    writeFileSync(path, await dumpOf(database, { root, said }))
    return []
  } finally {
    await database.stop()
  }
}

function report(load: Load | null): void {
  if (load === null) return
  const { asked, unavailable, wrote, refused, revoked } = load.counts
  console.log(
    `     ${asked} questions (${unavailable} without an answer), ${wrote} writes (${refused} refused), ${revoked} tokens revoked`,
  )
}

/** Events whose versions of entitlements are not in order, in words. */
async function disorder(origin: string): Promise<readonly string[]> {
  const api = apiOf(origin, await adminToken(origin))
  const versions: number[] = []
  for (let after = '0'; ; ) {
    const page = (await api('GET', `/v1/events?after=${after}`)) as { items: Event[]; next: string }
    if (page.items.length === 0) break
    after = page.next
    for (const { type, organization, data } of page.items)
      if (type === 'entitlement.updated' && organization === ORGANIZATION) versions.push(data.version)
  }
  const isMisplaced = versions.findIndex((version, at) => at > 0 && version !== (versions[at - 1] ?? 0) + 1)
  return isMisplaced < 0
    ? []
    : [`event ${isMisplaced} is of version ${versions[isMisplaced]} after ${versions[isMisplaced - 1]}`]
}
type Event = {
  readonly type: string
  readonly organization: string | null
  readonly data: { readonly version: number }
}

/** The earlier version must not start on today's schema, and say why. */
async function refusesToday(at: { root: string; folder: string; databaseUrl: string }): Promise<readonly string[]> {
  try {
    const { part } = await startPdp({ name: 'old-again', ...at })
    part.signal('SIGKILL')
    await part.ended()
    return ['the earlier version started on the newer schema']
  } catch (err) {
    const said = String(err instanceof Error ? err.message : err)
    const log = /see (\S+)$/.exec(said)?.[1] ?? ''
    return log !== '' && readFileSync(log, 'utf8').includes(REFUSAL)
      ? []
      : [`the earlier version ended without a reason: ${said}`]
  }
}
