/** The frame of every page: the brand, the current place, and the screens that the person may open. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { address, alert, field, heading, hidden, link, name, visible } from './parts.ts'
import type { ConsoleVisit } from './visit.ts'

/** `scope`: a person without it sees no link. `everywhere`: it counts only when it is held in the whole environment. */
export type ScreenLink = {
  readonly path: string
  readonly title: string
  readonly scope: string
  readonly everywhere?: true
}

export const SCREEN_LINKS = {
  ask: { path: 'ask', title: 'Ask', scope: 'decisions:read' },
  who: { path: 'who', title: 'Who', scope: 'decisions:read' },
  what: { path: 'what', title: 'What', scope: 'decisions:read' },
  decisions: { path: 'decisions', title: 'Decisions', scope: 'decisions:read' },
  model: { path: 'model', title: 'Model', scope: 'manifest:read', everywhere: true },
  relationships: { path: 'relationships', title: 'Relationships', scope: 'relationships:read' },
  organization: { path: 'organization', title: 'Organization', scope: 'directory:read' },
  person: { path: 'people', title: 'People', scope: 'directory:read' },
  invitations: { path: 'invitations', title: 'Invitations', scope: 'directory:read' },
  routes: { path: 'routes', title: 'Routes', scope: 'decisions:read', everywhere: true },
  streams: { path: 'streams', title: 'Streams', scope: 'streams:read', everywhere: true },
  changes: { path: 'changes', title: 'Changes', scope: 'audit:read' },
} as const satisfies { readonly [key: string]: ScreenLink }

export const mayOpen = (visit: ConsoleVisit, { scope, everywhere }: ScreenLink): boolean =>
  everywhere === true ? visit.mayEverywhere(scope) : visit.may(scope)

const head = (title: string): Html => html`<head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${visible(title)} · Portcullis</title>
<link rel="stylesheet" href="/console/assets/console.css">
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<script type="module" src="/console/assets/live.js"></script></head>`

export function frame(visit: ConsoleVisit, { title, body }: { readonly title: string; readonly body: Html }): string {
  const { organization, organizations, person } = visit
  const missing = visit.isOrganizationMissing
    ? alert(html`There is no organization ${name(organization ?? '')}. Choose another one above.`)
    : EMPTY
  const places = Object.values(SCREEN_LINKS).filter((place) => mayOpen(visit, place))
  const items = [{ path: '', title: 'Start' }, ...places].map(({ path, title: text }) => {
    const to = address(path, { org: organization })
    const here = visit.path === `/console${path === '' ? '' : `/${path}`}`
    return html`<li><a href="${to}"${here ? html` aria-current="page"` : EMPTY}>${text}</a></li>`
  })
  const chooser =
    organization === null
      ? EMPTY
      : html`<form class="chooser" method="get" action="${visit.path}">
${field({ name: 'org', label: 'Organization', value: organization, among: organizations.map(({ id }) => id) })}
<button type="submit" class="plain">Go</button></form>`
  return document(
    title,
    html`<a class="skip" href="#main">Skip to the content</a>
<header><p class="brand">${link('/console', html`<span aria-hidden="true">▦</span> Portcullis`)}</p>${chooser}
<form class="account" method="post" action="/console/sign-out">${hidden('csrf', visit.csrf)}<span>${name(person.name)}</span>
<button type="submit" class="plain">Sign out</button></form></header>
<div class="columns"><nav aria-label="Screens"><ul>${items}</ul></nav>
<main id="main" tabindex="-1">${heading(title)}${missing}${body}</main></div>`,
  )
}

/** A page without the frame, for those who are not signed in. */
export const plainPage = (title: string, body: Html): string =>
  document(title, html`<main id="main" class="alone">${heading(title)}${body}</main>`)

const document = (title: string, body: Html): string =>
  html`<!doctype html>
<html lang="en">${head(title)}
<body>${body}</body></html>
`.toString()
