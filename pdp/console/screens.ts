/** Every screen: where it is, what it shows, and what its forms do. */
import { showAsk } from './screens/ask.ts'
import { showChanges } from './screens/changes.ts'
import { showDecisions } from './screens/decisions.ts'
import { actModel, showModel } from './screens/model.ts'
import { actOrganization, showOrganization } from './screens/organization.ts'
import { actPeople, showPeople } from './screens/people.ts'
import { actRelationships, showRelationships } from './screens/relationships.ts'
import { showRoutes } from './screens/routes.ts'
import { showStart } from './screens/start.ts'
import { actStreams, showStreams } from './screens/streams.ts'
import { showWhat, showWho } from './screens/who.ts'
import type { View, Visit } from './visit.ts'

export type Screen = {
  /** Below `/console/`. */
  readonly path: string
  readonly show: (visit: Visit) => Promise<View>
  /** What a form of the screen does. The sender is known; `act` looks at what they may do. */
  readonly act?: (visit: Visit) => Promise<View>
}

export const SCREENS: readonly Screen[] = [
  { path: '', show: showStart },
  { path: 'ask', show: showAsk },
  { path: 'who', show: showWho },
  { path: 'what', show: showWhat },
  { path: 'decisions', show: showDecisions },
  { path: 'model', show: showModel, act: actModel },
  { path: 'relationships', show: showRelationships, act: actRelationships },
  { path: 'organization', show: showOrganization, act: actOrganization },
  { path: 'people', show: showPeople, act: actPeople },
  { path: 'routes', show: showRoutes },
  { path: 'streams', show: showStreams, act: actStreams },
  { path: 'changes', show: showChanges },
]
