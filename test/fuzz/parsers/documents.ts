/** What operators and the Kubernetes API bring: route files and questions about Pods. */

import { MODES } from '../../../sidecar/injector/pod/injection.ts'
import { answerReview } from '../../../sidecar/injector/webhook/review.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { CONFIG, podWith } from '../../sidecar/injector/pod/pods.ts'
import { routeFile } from '../../sidecar/support/harness.ts'
import { must, type Parser } from '../play.ts'

const fileOf = (routes: string, extra = ''): string =>
  routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')

const routes: Parser = {
  name: 'routes',
  seeds: [
    fileOf('GET /health: public\nGET /invoices/{id}: viewer invoice:{id}'),
    fileOf('POST /a/**: scope invoices:write', 'hosts: [app.test]\ntrusted_proxies: [10.0.0.0/8]'),
  ],
  words: [
    'GET ',
    'public',
    '{id}',
    '**',
    ': ',
    '- ',
    '\n  ',
    '&a',
    '*a',
    '!!js/function',
    '<<: ',
    'scope ',
    'viewer invoice:',
    'hosts',
    '|',
    '{',
    '}',
    '"',
    '?',
  ],
  read(text) {
    const { file, issues } = parseRouteFile(text)
    must((file === null) === issues.length > 0, 'there is neither a file nor what is wrong with it')
    for (const { line, column, message } of issues)
      must(line >= 1 && column >= 1 && message !== '', 'an issue has no place')
    if (file === null) return false
    for (const { id } of file.routes) must(/^\S+ \S*\/\S*$/.test(id), `a route is called ${id}`)
    const again = parseRouteFile(`${text}\n# the end\n`).file
    must(
      again !== null && JSON.stringify(again.routes) === JSON.stringify(file.routes),
      'a comment at the end changes it',
    )
    return true
  },
}

const reviewOf = (object: object): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u-1',
      operation: 'CREATE',
      namespace: 'default',
      resource: { group: '', version: 'v1', resource: 'pods' },
      object,
    },
  })

const admission: Parser = {
  name: 'admission',
  seeds: [
    reviewOf(podWith({})),
    reviewOf(podWith({ labels: { app: 'x' }, spec: { hostNetwork: false } })),
    reviewOf(podWith({ annotations: {} })),
  ],
  words: ['"uid"', '"object"', 'null', '[]', '{}', '"containers"', '"portcullis.dev/ports"', '"http"', '8080', '15083'],
  read(text) {
    const answers = MODES.map((mode) => answerReview(text, { config: CONFIG, mode }))
    const [first] = answers
    if (first === undefined || first === null) return false
    const { request } = JSON.parse(text) as { request: { uid: string } }
    for (const answer of answers) {
      const response = answer?.body.response as { uid: string; allowed: boolean; patch?: string } | undefined
      must(response?.uid === request.uid && typeof response.allowed === 'boolean', 'it is no answer to this question')
      must(response?.patch === undefined || response.allowed, 'what is refused is changed')
      const operations: unknown =
        response?.patch === undefined ? [] : JSON.parse(Buffer.from(response.patch, 'base64').toString())
      must(
        Array.isArray(operations) && operations.every(({ op, path }) => typeof op === 'string' && path.startsWith('/')),
        'the change is no JSON Patch',
      )
      must(
        answer?.injection.verdict !== 'inject' || response?.patch !== undefined || !response?.allowed,
        'a Pod that asked has no sidecar',
      )
    }
    return true
  },
}

export const DOCUMENTS: readonly Parser[] = [routes, admission]
