/** A summary of decisions: the routes with most denials, and a bar for each minute. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { reasonText } from '../../../shared/domain/reasons.ts'
import { address, link, name } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'
import { table } from './table.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MINUTE_MS = 60_000
const MINUTES_SHOWN = 60
const BAR_HEIGHT = 48

type Minute = { allowed: number; denied: number }
type Ranked = { readonly route: string; readonly reason: string; hour: number; day: number }

/** `rowsMax`: how many rows the ranking has. */
export async function denials(visit: ConsoleVisit, rowsMax: number): Promise<Html> {
  const { organization: org, deps } = visit
  const isOfAll = deps.archive !== null
  const ranks = deps.archive === null || org === null ? rankedHere(visit) : await deps.archive.ranked(org)
  return table(visit, {
    id: 'denials',
    caption: `Denied most, by route and reason, ${isOfAll ? 'at all PDPs' : 'as far as this PDP remembers'}`,
    columns: ['Route', 'Reason', { title: 'Last hour', number: true }, { title: 'Last day', number: true }],
    rows: ranks
      .slice(0, rowsMax)
      .map(({ route, reason, hour, day }) => [
        route === ''
          ? html`<span class="note">not through a route</span>`
          : link(address('decisions', { org, route, outcome: 'denied' }), name(route)),
        link(address('decisions', { org, route, reason, outcome: 'denied' }), reasonText(reason)),
        String(hour),
        String(day),
      ]),
    empty: html`<p>Nothing was denied in the last day.</p>`,
  })
}

function rankedHere({ organization: org, deps }: ConsoleVisit): readonly Ranked[] {
  const nowMs = deps.clock()
  const ranks = new Map<string, Ranked>()
  for (const { organization, atMs, permissions, route } of deps.decisions.latest()) {
    if (organization !== org || nowMs - atMs > DAY_MS) continue
    for (const { allowed, reasonCode: reason } of permissions) {
      if (allowed) continue
      const key = JSON.stringify([route, reason])
      const rank = ranks.get(key) ?? { route: route ?? '', reason, hour: 0, day: 0 }
      rank.day += 1
      if (nowMs - atMs < HOUR_MS) rank.hour += 1
      ranks.set(key, rank)
    }
  }
  return [...ranks.values()].sort((one, other) => other.hour - one.hour || other.day - one.day)
}

/** The last hour, as a bar for each minute. */
export async function perMinute({ deps, organization: org }: ConsoleVisit): Promise<Html> {
  const nowMs = deps.clock()
  const minutes = Array.from({ length: MINUTES_SHOWN }, (): Minute => ({ allowed: 0, denied: 0 }))
  const add = (atMs: number, { allowed, denied }: Minute): void => {
    const minute = minutes[MINUTES_SHOWN - 1 - Math.floor((nowMs - atMs) / MINUTE_MS)]
    if (minute === undefined) return
    minute.allowed += allowed
    minute.denied += denied
  }
  if (deps.archive !== null && org !== null)
    for (const { minuteMs, ...counts } of await deps.archive.perMinute(org)) add(minuteMs, counts)
  else
    for (const { organization, atMs, permissions } of deps.decisions.latest())
      if (organization === org)
        for (const { allowed } of permissions) add(atMs, { allowed: Number(allowed), denied: Number(!allowed) })
  const sum = (kind: keyof Minute): number => minutes.reduce((all, minute) => all + minute[kind], 0)
  const most = Math.max(1, ...minutes.map(({ allowed, denied }) => allowed + denied))
  const title = `Decisions of the last hour: ${sum('allowed')} allowed, ${sum('denied')} denied; at most ${most} in a minute`
  const bar = (x: number, from: number, count: number, kind: string): Html =>
    count === 0
      ? EMPTY
      : html`<rect class="bar ${kind}" x="${String(x)}" y="${(BAR_HEIGHT - ((from + count) / most) * BAR_HEIGHT).toFixed(1)}" width="5" height="${((count / most) * BAR_HEIGHT).toFixed(1)}"></rect>`
  const bars = minutes.map(
    ({ allowed, denied }, i) => html`${bar(i * 6, 0, denied, 'bad')}${bar(i * 6, denied, allowed, 'good')}`,
  )
  return html`<figure class="chart"><svg viewBox="0 0 ${String(MINUTES_SHOWN * 6)} ${String(BAR_HEIGHT)}" role="img" aria-labelledby="per-minute" preserveAspectRatio="none"><title id="per-minute">${title}</title>${bars}</svg>
<figcaption class="note">${title}.</figcaption></figure>`
}
