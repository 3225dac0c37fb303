/** The token hook of the environment. */
import type { FastifyInstance } from 'fastify'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { isLoopback, urlHost } from '../../../shared/process/listen.ts'
import { SECRET, whole } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, EMPTY, found, ok } from './route.ts'

const URL_TEXT = { type: 'string', maxLength: 2_048 }
const HOOK_BODY = whole({
  url: { ...URL_TEXT, description: 'https, or http for a loopback host. Redirects are not followed.' },
  secret: {
    ...SECRET,
    description: 'Key of the HMAC-SHA-256 in Portcullis-Signature. Stored encrypted and never returned.',
  },
})
export function addHooks(app: FastifyInstance, deps: ManagementDeps): void {
  const common = {
    tag: 'Hooks',
    scope: 'hooks:write',
    organizationScope: 'environment',
    path: '/v1/token-hook',
  } as const
  addManagementRoute<{ params: never; body: { url: string; secret: string } }>(app, deps, {
    ...common,
    method: 'PUT',
    operation: 'putTokenHook',
    summary: 'Sets or replaces the service that may add claims to tokens.',
    body: HOOK_BODY,
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at }) => at.hook.read(),
    async handle({ at, body, context }) {
      if (!isHookUrl(body.url)) {
        const message = 'must use https, unless its host is a loopback address, and hold no password'
        throw new RequestProblem('request_invalid', `url ${message}`, { issues: [{ place: '/url', message }] })
      }
      await at.hook.configure(body, context)
      return EMPTY
    },
  })
  addManagementRoute<{ params: never }>(app, deps, {
    ...common,
    method: 'DELETE',
    operation: 'deleteTokenHook',
    summary: 'Removes the token hook: no service adds claims any more.',
    answer: null,
    locks: () => [ENVIRONMENT],
    state: ({ at }) => at.hook.read(),
    async handle({ at, context }) {
      await at.hook.configure(null, context)
      return EMPTY
    },
  })
  addManagementRoute<{ params: never; stored: { url: string } }>(app, deps, {
    ...common,
    method: 'GET',
    operation: 'getTokenHook',
    summary: 'The service that may add claims to tokens, without its secret.',
    answer: whole({ url: URL_TEXT }),
    state: ({ at }) => at.hook.read(),
    handle: async ({ stored }) => ok({ url: found(stored, 'there is no token hook').url }),
  })
}

function isHookUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(urlHost(url)))
}
