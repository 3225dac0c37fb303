/** The section about each screen in the book `docs/console.md`. */
export const HELP: { readonly [screen: string]: string } = {
  '': 'start',
  find: 'find-anything',
  ask: 'check-access',
  who: 'who-has-access-what-they-can-reach',
  what: 'who-has-access-what-they-can-reach',
  relationships: 'relationships',
  change: 'before-a-change',
  model: 'model',
  people: 'people',
  organization: 'organization',
  invitations: 'invitations',
  routes: 'sidecars-and-routes',
  streams: 'event-streams',
  decisions: 'decisions',
  changes: 'changes',
}
