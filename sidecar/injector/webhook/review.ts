/** AdmissionReview v1: makes the answer to the API server's question. A question that cannot be evaluated is refused. */
import type { InjectorConfig } from '../pod/config.ts'
import { inject } from '../pod/inject.ts'
import { type Injection, MODES, type Mode } from '../pod/injection.ts'
import { isObject, type Json, type JsonObject } from '../pod/json.ts'
import { STATUS_DENIED } from './status.ts'

export const API_VERSION = 'admission.k8s.io/v1'
const PATH = '/inject/'
// Any client of the webhook chooses these texts in the log. Names of Kubernetes are not longer.
const NAME_CHARS_MAX = 253

/** The mode, from the request's path, which the webhook configuration's selectors choose: so the cluster need not be read. */
export function modeOf(path: string): Mode | null {
  return MODES.find((mode) => path === `${PATH}${mode}`) ?? null
}

export type Reviewed = {
  /** `namespace/name`, or the beginning of a name that the API server will make. */
  readonly pod: string
  readonly injection: Injection
}

/** The answer; null: the text is no AdmissionReview. */
export function answerReview(
  text: string,
  { config, mode }: { config: InjectorConfig; mode: Mode },
): (Reviewed & { readonly body: JsonObject }) | null {
  const request = requestOf(text)
  if (request === null) return null
  const { uid, object, resource, operation, namespace } = request
  if (typeof uid !== 'string' || !isObject(resource)) return null
  const creation = resource.group === '' && resource.resource === 'pods' && operation === 'CREATE' && isObject(object)
  const injection: Injection = creation
    ? inject(object, { config, mode })
    : { verdict: 'deny', code: 'pod_invalid', message: 'this webhook reviews only the creation of Pods' }
  const pod = [namespace, nameOf(object)].map((part) => String(part).slice(0, NAME_CHARS_MAX)).join('/')
  return {
    pod,
    injection,
    body: { apiVersion: API_VERSION, kind: 'AdmissionReview', response: answer(uid, injection) },
  }
}

/** The request in an AdmissionReview; null: the text is none. */
export function requestOf(text: string): JsonObject | null {
  const review = parseObject(text)
  return review?.apiVersion === API_VERSION && isObject(review.request) ? review.request : null
}

function nameOf(object: Json | undefined): Json {
  const metadata = isObject(object) && isObject(object.metadata) ? object.metadata : {}
  return metadata.name ?? metadata.generateName ?? ''
}

function answer(uid: string, injection: Injection): JsonObject {
  if (injection.verdict === 'deny') {
    const message = `portcullis: ${injection.message} (${injection.code})`
    return { uid, allowed: false, status: { code: STATUS_DENIED, reason: 'Forbidden', message } }
  }
  const warnings = injection.warnings.map((warning) => `portcullis: ${warning}`)
  const base = { uid, allowed: true, ...(warnings.length > 0 && { warnings }) }
  if (injection.verdict === 'skip' || injection.operations.length === 0) return base
  const patch = Buffer.from(JSON.stringify(injection.operations)).toString('base64')
  return { ...base, patchType: 'JSONPatch', patch }
}

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
