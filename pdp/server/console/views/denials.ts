/** The latest decisions that this PDP keeps, summed: the routes that were denied most, and a bar for each minute. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { address, link, name, table } from '../parts.ts'
import type { ConsoleVisit } from '../visit.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const MINUTES_SHOWN = 60
const BAR_HEIGHT = 48

type Minute = { allowed: number; denied: number }
type Ranked = { readonly route: string | null; readonly reason: string; hour: number; all: number }

/** `rowsMax`: of the ranking. */
export function denials(visit: ConsoleVisit, rowsMax: number): Html {
  const { organization: org, deps } = visit
  const nowMs = deps.clock()
  const ranks = new Map<string, Ranked>()
  for (const { organization, atMs, permissions, route } of deps.decisions.latest()) {
    if (organization !== org) continue
    for (const { allowed, reasonCode: reason } of permissions) {
      if (allowed) continue
      const key = JSON.stringify([route, reason])
      const rank = ranks.get(key) ?? { route, reason, hour: 0, all: 0 }
      rank.all += 1
      if (nowMs - atMs < HOUR_MS) rank.hour += 1
      ranks.set(key, rank)
    }
  }
  const sorted = [...ranks.values()].sort((one, other) => other.hour - one.hour || other.all - one.all)
  return table({
    caption: 'Denied most, by route and reason',
    columns: ['Route', 'Reason', { title: 'Last hour', number: true }, { title: 'Kept', number: true }],
    rows: sorted
      .slice(0, rowsMax)
      .map(({ route, reason, hour, all }) => [
        route === null
          ? html`<span class="note">not through a route</span>`
          : link(address('decisions', { org, route, outcome: 'denied' }), name(route)),
        link(address('decisions', { org, route, reason, outcome: 'denied' }), reason),
        String(hour),
        String(all),
      ]),
    empty: html`<p>Nothing was denied, as far as this PDP remembers.</p>`,
  })
}

/** The last hour, a bar for each minute. */
export function perMinute({ deps, organization: org }: ConsoleVisit): Html {
  const nowMs = deps.clock()
  const minutes = Array.from({ length: MINUTES_SHOWN }, (): Minute => ({ allowed: 0, denied: 0 }))
  for (const { organization, atMs, permissions } of deps.decisions.latest()) {
    const minute = minutes[MINUTES_SHOWN - 1 - Math.floor((nowMs - atMs) / MINUTE_MS)]
    if (organization !== org || minute === undefined) continue
    for (const { allowed } of permissions) minute[allowed ? 'allowed' : 'denied'] += 1
  }
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
