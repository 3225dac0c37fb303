/** What is unsafe in a question of Caddy's JSON: a reverse_proxy that handles the answer. */
import { AUTHORIZE_PATH, CALLER_FIELD, IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import { written } from '../../plan.ts'
import { entriesOf, get, isOn, itemsOf, type Tree, textOf, textsOf } from '../../read/tree.ts'
import { isIdentity } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { believed, checkWritten, unknownKeys, writtenBy } from './json-forwarding.ts'

/** It asks: the method and target of the question are its own, and it handles the answer. */
export const isAsking = (handler: Tree): boolean =>
  textOf(get(handler, 'handler')) === 'reverse_proxy' &&
  get(handler, 'handle_response') !== null &&
  get(handler, 'rewrite', 'uri') !== null

export function checkAsking(auth: Tree): readonly Finding[] {
  const responses = itemsOf(get(auth, 'handle_response'))
  const odd = responses.filter((one) => textsOf(get(one, 'match', 'status_code')).join() !== '2')
  const tls = get(auth, 'transport', 'tls')
  const uri = get(auth, 'rewrite', 'uri')
  const method = get(auth, 'rewrite', 'method')
  const unverified = get(tls, 'insecure_skip_verify')
  const extra = entriesOf(get(auth, 'rewrite')).filter(({ key }) => !['uri', 'method'].includes(key.toLowerCase()))
  return [
    ...unknownKeys(auth),
    ...believed(auth),
    ...odd.map((one) =>
      at(one)('fails_open', 'an answer other than 2xx lets requests pass', 'match status_code [2] only'),
    ),
    ...responses.flatMap(checkAnswer),
    ...checkCopied(auth, responses),
    ...(provesItself(auth, tls)
      ? []
      : [
          at(auth)(
            'forgeable',
            'Caddy does not say who it is to the door, which then answers nobody, or everybody',
            'use a unix socket, a client certificate, or X-Portcullis-Caller',
          ),
        ]),
    ...(textOf(uri) === AUTHORIZE_PATH
      ? []
      : [at(uri ?? auth)('forgeable', `the door answers at ${AUTHORIZE_PATH} only`, `set uri to ${AUTHORIZE_PATH}`)]),
    ...(textOf(method) === 'GET'
      ? []
      : [at(method ?? auth)('other_bytes', 'the question takes the body of the request', 'set method to GET')]),
    ...extra.map((entry) => at(entry)('other_bytes', 'the question is not the one of forward_auth', 'remove it')),
    ...(isOn(unverified) ? [at(unverified)('forgeable', 'the certificate of the door is not verified', 'set ca')] : []),
    ...checkFields(auth),
  ]
}

function provesItself(auth: Tree, tls: Tree | null): boolean {
  const dials = itemsOf(get(auth, 'upstreams')).map((one) => textOf(get(one, 'dial')) ?? '')
  const isSocket = dials.length > 0 && dials.every((dial) => dial.startsWith('unix/'))
  const certified = ['client_certificate_file', 'client_certificate_automate'].some((key) => get(tls, key) !== null)
  const secret = entriesOf(get(auth, 'headers', 'request', 'set')).some(
    ({ key, value }) => key.toLowerCase() === CALLER_FIELD && textsOf(value).join('') !== '',
  )
  return isSocket || certified || secret
}

const OWN = { 'x-forwarded-method': '{http.request.method}', 'x-forwarded-uri': '{http.request.uri}' } as const

/** The question has the client's fields, and what Caddy says about the request. */
function checkFields(auth: Tree): readonly Finding[] {
  const request = get(auth, 'headers', 'request')
  const set = entriesOf(get(request, 'set'))
  const missing = Object.entries(OWN).flatMap(([name, wanted]) => {
    const field = set.find(({ key }) => key.toLowerCase() === name)
    return textsOf(field?.value ?? null).join() === wanted
      ? []
      : [at(field ?? auth)('forgeable', `${written(name)} is not what the client sent`, `set it to ${wanted}`)]
  })
  const known = [...Object.keys(OWN), CALLER_FIELD]
  const others = [
    ...set.filter(({ key }) => !known.includes(key.toLowerCase())),
    ...['add', 'replace'].flatMap((verb) => entriesOf(get(request, verb))),
    ...itemsOf(get(request, 'delete')),
  ]
  return [
    ...missing,
    ...others.map((one) =>
      at(one)('other_bytes', 'the door gets another field than the service', 'change it before the question'),
    ),
  ]
}

/** Each handler below an answer, with whether only some requests come to it. */
function handlersOf(routes: Tree | null, sometimes: boolean): readonly { handler: Tree; sometimes: boolean }[] {
  return itemsOf(routes).flatMap((route) => {
    const matched = sometimes || get(route, 'match') !== null
    return itemsOf(get(route, 'handle')).flatMap((handler) =>
      textOf(get(handler, 'handler')) === 'subroute'
        ? handlersOf(get(handler, 'routes'), matched)
        : [{ handler, sometimes: matched }],
    )
  })
}

/** Only fields that are always deleted from the client's request are gone when the answer has none. */
function checkCopied(auth: Tree, responses: readonly Tree[]): readonly Finding[] {
  const deleted = responses
    .flatMap((one) => handlersOf(get(one, 'routes'), false))
    .filter(({ sometimes }) => !sometimes)
    .flatMap(({ handler }) => textsOf(get(handler, 'request', 'delete')))
    .map((name) => name.toLowerCase())
  const missing = IDENTITY_FIELDS.filter((name) => !deleted.includes(name))
  return missing.length === 0
    ? []
    : [
        at(auth)(
          'forgeable',
          `a client's own ${missing.map(written).join(', ')} would reach the service`,
          'delete every identity field of the request, and set it from the answer',
        ),
      ]
}

/** A permit only copies fields of the door's answer. */
function checkAnswer(response: Tree): readonly Finding[] {
  return handlersOf(get(response, 'routes'), false).flatMap(({ handler }) => {
    const kind = textOf(get(handler, 'handler')) ?? ''
    if (kind === 'vars') return []
    if (kind !== 'headers')
      return [at(handler)('other_bytes', `${kind} is run with what the door allowed`, 'copy fields, and nothing else')]
    return writtenBy(get(handler, 'request')).flatMap((entry) => {
      const { key, value } = entry
      if (!isIdentity(key)) return checkWritten(entry)
      return isOfAnswer(key, textsOf(value))
        ? []
        : [at(entry)('forgeable', `${key} is not what the door said`, 'set it from http.reverse_proxy.header')]
    })
  })
}

const isOfAnswer = (name: string, values: readonly string[]): boolean =>
  values.length === 1 && values[0]?.toLowerCase() === `{http.reverse_proxy.header.${name.toLowerCase()}}`
