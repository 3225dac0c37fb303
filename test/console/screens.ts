/** Every screen with something to see on it, and those of which the documentation keeps a picture. */
export const SCREENS: { readonly [name: string]: string } = {
  start: '/console?org=acme',
  'ask-empty': '/console/ask?org=acme',
  'ask-denied': '/console/ask?org=acme&subject=user%3Abob&relation=viewer&resource=doc%3A1',
  'ask-allowed': '/console/ask?org=acme&subject=user%3Abob&relation=viewer&resource=doc%3A2',
  'ask-what-if':
    '/console/ask?org=acme&subject=user%3Abob&relation=viewer&resource=doc%3A2&without=group%3Aaccounting%23member%40user%3Abob',
  who: '/console/who?org=acme&resource=doc%3A5&relation=viewer&type=user',
  what: '/console/what?org=acme&subject=user%3Abob&relation=viewer&type=doc',
  decisions: '/console/decisions?org=acme',
  model: '/console/model?org=acme&app=docs',
  'model-version': '/console/model?org=acme&app=docs&revision=5&compare=1',
  relationships: '/console/relationships?org=acme',
  organization: '/console/organization?org=acme',
  people: '/console/people?org=acme',
  person: '/console/people?org=acme&user=anna',
  invitations: '/console/invitations?org=acme',
  routes: '/console/routes?org=acme',
  'routes-tried': `/console/routes?org=acme&method=GET&target=%2Fdocs%2F2%2Fexport&claims=${encodeURIComponent('{"sub":"bob","org":"acme"}')}`,
  streams: '/console/streams?org=acme',
  stream: '/console/streams?org=acme&stream=stream-of-failing',
  changes: '/console/changes?org=acme',
}
