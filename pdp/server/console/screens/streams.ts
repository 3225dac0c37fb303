/** Streams: the state of each receiver of security events, and what an operator can do about it. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { SCREEN_LINKS } from '../layout.ts'
import { address, alert, field, hidden, instant, link, name, status } from '../parts.ts'
import { countOf, pageByPage, table } from '../sections/table.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'

type Stream = {
  readonly stream_id: string
  readonly client_id: string
  readonly organization: string | null
  readonly delivery: 'push' | 'poll'
  readonly endpoint_url: string | null
  readonly status: string
  readonly reason: string | null
  readonly lag_seconds: number
  readonly pending: number
  readonly attempts: number
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly last_delivered_at: string | null
  readonly dead_letters: number
  readonly dropped: number
}
type Page = { readonly items: readonly Stream[]; readonly next: string | null }
type Facts = readonly (readonly [title: string, value: Html | string])[]
const DONE: { readonly [action: string]: string } = {
  pause: 'The stream is paused. Its receiver is sent a stream-updated event first.',
  resume: 'The stream is enabled. What it held is sent in order.',
  verify: 'A verification event is on its way. Reload to see whether it arrived.',
}
const OVERTAKEN = 'Nothing was done: the stream changed after the page was shown. It stands below as it is now.'

export async function showStreams(visit: ConsoleVisit): Promise<View> {
  const id = visit.query('stream')
  return id === '' ? list(visit) : details(visit, id)
}

async function list(visit: ConsoleVisit): Promise<View> {
  const { organization: org, query } = visit
  const after = query('after')
  const pageAt = (from: string | null): Promise<Page> =>
    visit.api('GET', `/v1/streams${from === null ? '' : `?after=${encodeURIComponent(from)}`}`)
  const page = await pageAt(after === '' ? null : after)
  const counted = { id: 'streams', next: page.next, pageSize: page.items.length }
  const total = await countOf(visit, counted, pageByPage(pageAt))
  const rows = page.items.map((stream) => [
    html`${link(address('streams', { org, stream: stream.stream_id }), name(stream.client_id))} <span class="note">of ${stream.organization === null ? 'all organizations' : name(stream.organization)}</span>`,
    state(stream),
    lag(stream),
    String(stream.pending),
    stream.last_error === null ? html`<span class="note">none</span>` : name(stream.last_error),
    when(stream.last_delivered_at),
  ])
  return {
    title: SCREEN_LINKS.streams.title,
    body: html`<p>Receivers of security events: sessions that ended, credentials and roles that changed. Decisions wait for none of them.</p>
${table(visit, {
  id: 'streams',
  caption: 'Streams of receivers',
  columns: [
    'Receiver',
    'Status',
    { title: 'Lag', number: true },
    { title: 'Pending', number: true },
    'Last error',
    'Last delivered',
  ],
  rows,
  next: page.next === null ? null : address('streams', { org, after: page.next }),
  total,
  empty: html`<p>${after === '' ? 'No receiver has a stream yet. A client with the scope ssf.manage makes one:' : 'There are no more streams.'}</p><pre tabindex="0"><code>portcullis client put receiver --scope ssf.manage --secret-file receiver-secret</code></pre>`,
})}`,
  }
}

async function details(visit: ConsoleVisit, id: string): Promise<View> {
  const { organization: org, query } = visit
  const stream = await visit.api<Stream>('GET', pathOf(id))
  const here = address('streams', { org, stream: id })
  const facts: Facts = [
    ['Stream', html`<span class="id">${name(stream.stream_id)}</span>`],
    ['Events of', stream.organization === null ? 'all organizations' : name(stream.organization)],
    ['Delivery', stream.endpoint_url === null ? 'poll' : html`push to ${name(stream.endpoint_url)}`],
    ['Status', stream.reason === null ? state(stream) : html`${state(stream)}: ${name(stream.reason)}`],
    [
      'Last error',
      stream.last_error === null ? 'none' : html`${name(stream.last_error)}, ${when(stream.last_error_at)}`,
    ],
    ['Last delivered', when(stream.last_delivered_at)],
  ]
  const numbers: Facts = [
    ['Lag', lag(stream)],
    ['Pending', String(stream.pending)],
    ['Failed since a success', String(stream.attempts)],
    ['Refused', String(stream.dead_letters)],
    ['Dropped', String(stream.dropped)],
  ]
  const done = Object.hasOwn(DONE, query('done')) ? DONE[query('done')] : undefined
  return {
    title: `Stream of ${stream.client_id}`,
    body: html`${query('done') === 'overtaken' ? alert(OVERTAKEN) : EMPTY}${done === undefined ? EMPTY : status(done)}<dl class="numbers">${numbers.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
<dl>${facts.map(([title, value]) => html`<dt>${title}</dt><dd>${value}</dd>`)}</dl>
${stream.status === 'disabled' ? alert('Its receiver disabled it: nothing is sent or held.') : EMPTY}
${visit.mayEverywhere('streams:write') ? actions(visit, stream, here) : EMPTY}
<p class="actions">${link(address('streams', { org }), 'All streams')}</p>`,
  }
}

function actions(visit: ConsoleVisit, { status: now }: Stream, here: string): Html {
  const form = (action: string, fields: Html, button: Html): Html =>
    html`<form method="post" action="${here}"${fields === EMPTY ? EMPTY : html` class="question"`}>${hidden('csrf', visit.csrf)}${hidden('action', action)}${hidden('seen', now)}${fields}${button}</form>`
  const reason = field({
    name: 'reason',
    label: 'Reason',
    value: '',
    hint: 'The receiver reads it. Events are held for 7 days, 100,000 at most.',
  })
  return html`${freshness(visit, here)}
${now === 'enabled' ? form('pause', reason, html`<button type="submit">Pause</button>`) : form('resume', EMPTY, html`<button type="submit">Resume</button>`)}
${now === 'disabled' ? EMPTY : form('verify', EMPTY, html`<button type="submit" class="plain">Send a verification</button>`)}`
}

export async function actStreams(visit: ConsoleVisit): Promise<View> {
  const { organization: org, form, query } = visit
  const stream = query('stream')
  const stale = mustSignInAgain(visit, address('streams', { org, stream }))
  if (stale !== null) return stale
  const action = Object.keys(DONE).find((one) => one === form('action')) ?? 'verify'
  const reason = form('reason').trim()
  const to = (done: string): View => ({ goTo: address('streams', { org, stream, done }) })
  if (action !== 'verify' && form('seen') !== '') {
    const now = await visit.api<Stream>('GET', pathOf(stream))
    // A form that was sent twice has already done its work.
    const isDone =
      action === 'resume' ? now.status === 'enabled' : now.status === 'paused' && (now.reason ?? '') === reason
    if (isDone) return to(action)
    if (now.status !== form('seen')) return to('overtaken')
  }
  if (action === 'verify') await visit.api('POST', `${pathOf(stream)}/verify`)
  else await visit.api('POST', `${pathOf(stream)}/${action}`, reason === '' ? {} : { reason })
  return to(action)
}

const pathOf = (id: string): string => `/v1/streams/${encodeURIComponent(id)}`

/** The state as a word and a sign; the colour only repeats it. */
const state = ({ status: now, attempts }: Stream): Html => {
  if (now === 'enabled' && attempts > 0) return html`<span class="denied">✗ failing</span>`
  return now === 'enabled' ? html`<span class="allowed">✓ enabled</span>` : html`<span class="denied">✗ ${now}</span>`
}

const when = (at: string | null): Html =>
  at === null ? html`<span class="note">never</span>` : instant(Date.parse(at))

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const
function lag({ lag_seconds: seconds }: Stream): string {
  const [size, unit] = UNITS.find(([one]) => seconds >= one) ?? [1, 's']
  return `${seconds === 0 ? '0' : (seconds / size).toFixed(1)} ${unit}`
}
