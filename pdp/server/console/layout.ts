/** The frame of every page: the brand, the current place, and the screens that the person may open. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { visible } from '../../shared/base/invisible.ts'
import { type Branding, picture } from '../../shared/pages/brand.ts'
import { HELP } from './help/targets.ts'
import { address, alert, called, field, heading, hidden, link, name } from './parts.ts'
import type { ConsoleVisit } from './visit.ts'

const GROUPS = ['Access', 'Directory', 'Enforcement', 'Activity'] as const
/** `scope`: a person without it sees no link. `everywhere`: the person must hold it in the whole environment. */
export type ScreenLink = {
  readonly path: string
  readonly title: string
  readonly group: (typeof GROUPS)[number]
  readonly scope: string
  readonly everywhere?: true
}

export const SCREEN_LINKS = {
  ask: { path: 'ask', title: 'Check access', group: 'Access', scope: 'decisions:read' },
  who: { path: 'who', title: 'Who has access', group: 'Access', scope: 'decisions:read' },
  what: { path: 'what', title: 'What they can reach', group: 'Access', scope: 'decisions:read' },
  relationships: { path: 'relationships', title: 'Relationships', group: 'Access', scope: 'relationships:read' },
  model: { path: 'model', title: 'Model', group: 'Access', scope: 'manifest:read', everywhere: true },
  person: { path: 'people', title: 'People', group: 'Directory', scope: 'directory:read' },
  organization: { path: 'organization', title: 'Organization', group: 'Directory', scope: 'directory:read' },
  invitations: { path: 'invitations', title: 'Invitations', group: 'Directory', scope: 'directory:read' },
  routes: {
    path: 'routes',
    title: 'Sidecars and routes',
    group: 'Enforcement',
    scope: 'decisions:read',
    everywhere: true,
  },
  streams: { path: 'streams', title: 'Event streams', group: 'Enforcement', scope: 'streams:read', everywhere: true },
  decisions: { path: 'decisions', title: 'Decisions', group: 'Activity', scope: 'decisions:read' },
  changes: { path: 'changes', title: 'Changes', group: 'Activity', scope: 'audit:read' },
} as const satisfies { readonly [key: string]: ScreenLink }

export const mayOpen = (visit: ConsoleVisit, { scope, everywhere }: ScreenLink): boolean =>
  everywhere === true ? visit.mayEverywhere(scope) : visit.may(scope)

const head = (title: string, { name: brand = 'Portcullis' }: Branding): Html => html`<head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${visible(title)} · ${visible(brand)}</title>
<link rel="stylesheet" href="/console/assets/console.css">
<link rel="stylesheet" href="/console/assets/brand.css">
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<script type="module" src="/console/assets/live.js"></script></head>`

export function frame(visit: ConsoleVisit, { title, body }: { readonly title: string; readonly body: Html }): string {
  const { organization, organizations, person } = visit
  const missing = visit.isOrganizationMissing
    ? alert(html`There is no organization ${name(organization ?? '')}. Choose another one above.`)
    : EMPTY
  const chooser =
    organization === null
      ? EMPTY
      : html`<form class="chooser" method="get" action="${visit.path}">
${field({ name: 'org', label: 'Organization', value: organization, among: organizations.map(({ id }) => id) })}
<button type="submit" class="plain">Go</button></form>`
  return document(
    visit.deps.branding,
    title,
    html`<a class="skip" href="#main">Skip to the content</a>
<header><button type="button" class="plain menu" popovertarget="screens">Menu</button>
<p class="brand">${link(address('', { org: organization }), brandOf(visit.deps.branding))}</p>${chooser}
<form class="find" role="search" method="get" action="/console/find">${hidden('org', organization ?? '')}<label class="for-readers" for="find">Find people, resources, requests and routes</label>
<input id="find" name="q" type="search" value="${visit.path === '/console/find' ? visit.query('q') : ''}" placeholder="Find: bob, invoice:7, a request id" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="512" aria-keyshortcuts="/ Control+K"></form>
<form class="account" method="post" action="/console/sign-out">${hidden('csrf', visit.csrf)}<span>${called(person.name)}</span>
<button type="submit" class="plain">Sign out</button></form></header>
<div class="columns"><nav id="screens" aria-label="Screens" popover>${menu(visit)}</nav>
<main id="main" tabindex="-1"><div class="titled">${heading(title)}${helpLink(visit)}</div>${missing}${body}${body.toString().includes(' data-zone>') ? zoneForm(visit) : EMPTY}</main></div>`,
  )
}

/** A form for the time zone, on screens where people write days. With scripts, the browser sends its zone by itself. */
const zoneForm = ({ csrf, url, reading: { zone } }: ConsoleVisit): Html =>
  html`<noscript><form class="question zone" method="post" action="/console/zone">${hidden('csrf', csrf)}${hidden('to', url ?? '')}
${field({ name: 'zone', label: 'Your time zone', value: zone, hint: 'Such as Europe/Berlin. “Friday” is a day of it; times are shown in UTC.' })}
<button type="submit" class="plain">Use it</button></form></noscript>`

/** A link to what the books say about the screen. */
function helpLink({ path, organization: org }: ConsoleVisit): Html {
  const screen = path.slice('/console/'.length)
  const section = Object.hasOwn(HELP, screen) ? HELP[screen] : undefined
  return section === undefined ? EMPTY : link(`${address('help/console', { org })}#${section}`, 'Help')
}

/** The menu: the start page, and in each group the screens that the person may open. */
function menu(visit: ConsoleVisit): Html {
  const item = ({ path, title }: Pick<ScreenLink, 'path' | 'title'>): Html => {
    const isHere = visit.path === `/console${path === '' ? '' : `/${path}`}`
    return html`<li><a href="${address(path, { org: visit.organization })}"${isHere ? html` aria-current="page"` : EMPTY}>${title}</a></li>`
  }
  const places: readonly ScreenLink[] = Object.values(SCREEN_LINKS)
  const groups = GROUPS.map((group) => {
    const shown = places.filter((place) => place.group === group && mayOpen(visit, place))
    return shown.length === 0 ? EMPTY : html`<li><span class="group">${group}</span><ul>${shown.map(item)}</ul></li>`
  })
  return html`<ul>${item({ path: '', title: 'Start' })}${groups}${item({ path: 'help', title: 'Help' })}</ul>`
}

const MARK = html`<svg class="mark" viewBox="0 0 16 16" width="18" height="18" aria-hidden="true"><path d="M2 14V6a6 6 0 0 1 12 0v8M5 3v11M8 1v13M11 3v11M2 7.5h12M2 11h12"></path></svg>`

/** A page without the frame, for people who are not signed in. */
export const plainPage = (branding: Branding, title: string, body: Html): string =>
  document(branding, title, html`<main id="main" class="alone">${heading(title)}${body}</main>`)

/** The operator's logo and name, or ours. */
const brandOf = ({ logo, name: brand = 'Portcullis' }: Branding): Html =>
  html`${logo === undefined ? MARK : picture(logo, '')} ${brand}`

const document = (branding: Branding, title: string, body: Html): string =>
  html`<!doctype html>
<html lang="en">${head(title, branding)}
<body>${body}</body></html>
`.toString()
