/** All screens: the path of each, the function that shows it, and the one that handles its forms. */
import { html } from '../../shared/base/html.ts'
import { STATUS } from '../serve/http/status.ts'
import { showHelp } from './help/help.ts'
import { SCREEN_LINKS, type ScreenLink } from './layout.ts'
import { address, link, name } from './parts.ts'
import { showAsk } from './screens/ask.ts'
import { showChanges } from './screens/changes.ts'
import { showDecisions } from './screens/decisions.ts'
import { showFound } from './screens/find.ts'
import { actInvitations, showInvitations } from './screens/invitations.ts'
import { actModel, showModel } from './screens/model.ts'
import { actOrganization, showOrganization } from './screens/organization.ts'
import { showPeople } from './screens/people.ts'
import { actPerson } from './screens/person.ts'
import { actRelationships, showRelationships } from './screens/relationships.ts'
import { actEndingChange, showEndingChange } from './screens/role-until.ts'
import { showRoutes } from './screens/routes.ts'
import { showStart } from './screens/start.ts'
import { actStreams, showStreams } from './screens/streams.ts'
import { showWhat, showWho } from './screens/who.ts'
import type { ConsoleVisit, View } from './visit.ts'

export type Screen = {
  /** The path below `/console/`. */
  readonly path: string
  readonly show: (visit: ConsoleVisit) => Promise<View>
  /** Handles a form of the screen. The form's sender is verified; `act` checks the rights. */
  readonly act?: (visit: ConsoleVisit) => Promise<View>
}

/** Answers 404 for an organization that does not exist, with links to others. */
const known =
  ({ path, title, scope }: ScreenLink, show: Screen['show']): Screen['show'] =>
  async (visit) => {
    if (!visit.isOrganizationMissing || !visit.mayEverywhere(scope)) return show(visit)
    const others = visit.organizations.map(({ id }) => html`<li>${link(address(path, { org: id }), name(id))}</li>`)
    const body = others.length === 0 ? NO_ORGANIZATION : html`<ul class="cards">${others}</ul>`
    return { title, status: STATUS.not_found.http, body }
  }

/** If there is no organization yet, a person who may look everywhere learns how to create one. */
const within = (place: ScreenLink, show: Screen['show']): Screen['show'] =>
  known(place, async (visit) =>
    visit.organization === null && visit.mayEverywhere(place.scope)
      ? { title: place.title, body: NO_ORGANIZATION }
      : show(visit),
  )

const NO_ORGANIZATION = html`<div class="empty"><p>There is no organization yet. Make the first one:</p>
<pre tabindex="0"><code>portcullis org put acme --name Acme</code></pre></div>`

export const SCREENS: readonly Screen[] = [
  { path: '', show: showStart },
  { path: 'find', show: showFound },
  { path: 'ask', show: within(SCREEN_LINKS.ask, showAsk) },
  { path: 'who', show: within(SCREEN_LINKS.who, showWho) },
  { path: 'what', show: within(SCREEN_LINKS.what, showWhat) },
  { path: 'decisions', show: known(SCREEN_LINKS.decisions, showDecisions) },
  { path: 'model', show: showModel, act: actModel },
  { path: 'relationships', show: within(SCREEN_LINKS.relationships, showRelationships), act: actRelationships },
  { path: 'organization', show: within(SCREEN_LINKS.organization, showOrganization), act: actOrganization },
  { path: 'people', show: showPeople, act: actPerson },
  { path: 'change', show: showEndingChange, act: actEndingChange },
  { path: 'invitations', show: within(SCREEN_LINKS.invitations, showInvitations), act: actInvitations },
  { path: 'routes', show: showRoutes },
  { path: 'streams', show: showStreams, act: actStreams },
  { path: 'changes', show: known(SCREEN_LINKS.changes, showChanges) },
  { path: 'help', show: showHelp },
  { path: 'help/:page', show: showHelp },
]
