/** Asks a running injector as the API server does, for the chart's test. */
import { request } from 'node:https'
import { StartError } from '../../../pdp/shared/process/exit.ts'
import { ANNOTATION_PORTS, ANNOTATION_ROUTES } from '../pod/annotations.ts'
import { isObject, type Json } from '../pod/json.ts'
import { REVIEW_TIMEOUT_MS } from './webhook.ts'

const ANSWER_BYTES_MAX = 1024 * 1024
const POD: Json = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'example', annotations: { [ANNOTATION_PORTS]: 'http', [ANNOTATION_ROUTES]: 'example-routes' } },
  spec: { containers: [{ name: 'app', image: 'example:1', ports: [{ name: 'http', containerPort: 8080 }] }] },
}

/** Throws StartError if the example Pod gets no sidecar. `origin`: such as `https://portcullis-injector.portcullis.svc`. */
export async function askInjector(origin: string, authority: Buffer): Promise<void> {
  const uid = 'example'
  const question = {
    uid,
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource: 'pods' },
    object: POD,
  }
  const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: question })
  const text = await post(new URL('/inject/enabled', origin), { body, authority })
  const review: unknown = JSON.parse(text)
  const answer = isObject(review) && isObject(review.response) ? review.response : {}
  const patch = typeof answer.patch === 'string' ? Buffer.from(answer.patch, 'base64').toString() : ''
  if (answer.uid !== uid || answer.allowed !== true || !patch.includes('"portcullis-sidecar"'))
    throw new StartError(`The injector did not add a sidecar to the example Pod: ${text.slice(0, 500)}`)
}

function post(url: URL, { body, authority }: { body: string; authority: Buffer }): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const fail = (err: Error): void => reject(new StartError(`${url.origin} does not answer: ${err.message}`))
  const req = request(url, { method: 'POST', ca: authority, timeout: REVIEW_TIMEOUT_MS, agent: false }, (res) => {
    let text = ''
    res.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      if (text.length > ANSWER_BYTES_MAX) res.destroy(new Error('the answer is too long'))
    })
    res.on('error', fail)
    res.on('end', () => resolve(text))
  })
  req.on('timeout', () => req.destroy(new Error('no answer in time')))
  req.on('error', fail)
  req.end(body)
  return promise
}
