/** The objects that `gateway-config` prints, as the API server takes them with the definitions of their projects. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { objectAt } from '../../sidecar/injector/pod/json.ts'
import { printed } from '../sidecar/gateways/printed.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { define, missingFrom, objectsOf, pathOf } from './objects.ts'

const binaries = inject('binaries')
const WANTED = 6
const BODY = '  POST /orders: editor order:{body.id}\n'
const KEPT = '  GET /files/{name}: {check: "viewer file:{name}", encoded_slash: keep}\n'
let plane: ControlPlane

/** Read by istioctl, and no object of the cluster. */
const INSTALLATION = 'IstioOperator'

describe.skipIf(binaries.gatewayDefinitions.length < WANTED)('with the definitions of the gateways', () => {
  beforeAll(async () => {
    plane = await startControlPlane(binaries)
    for (const path of binaries.gatewayDefinitions) await define(plane.kube, path)
    for (const name of ['portcullis', 'istio-system'])
      await plane.kube.must('POST', '/api/v1/namespaces', { metadata: { name } })
  })
  afterAll(() => plane?.close())

  test.each(
    (['istio', 'gateway-api', 'envoy-gateway'] as const).flatMap((name) =>
      [
        ['', 'no body'],
        [BODY, 'a body'],
        [KEPT, 'a slash that is kept'],
      ].map(([lines = '', what = '']) => [name, what, lines] as const),
    ),
  )('what is printed for %s with %s is accepted, every field known to it', async (name, _what, lines) => {
    const objects = printed(name, { lines }).flatMap(({ text }) => objectsOf(text))
    const applied = objects.filter(({ kind }) => kind !== INSTALLATION)
    expect(applied.length).toBeGreaterThan(2)
    for (const object of applied) {
      const path = `${await pathOf(plane.kube, object)}?dryRun=All&fieldValidation=Strict`
      const answer = await plane.kube.send('POST', path, object)
      const what = `${object.kind}/${objectAt(object.metadata, 'metadata').name}`
      expect([what, answer.status, answer.body.message, answer.warnings]).toEqual([what, 201, undefined, []])
      expect([what, missingFrom(object, answer.body)]).toEqual([what, []])
    }
  })

  test('a field that a project does not know is refused, so that the above can fail', async () => {
    const [object] = printed('envoy-gateway').flatMap(({ text }) =>
      objectsOf(text.replace('backendRefs', 'backendReferences')),
    )
    if (object === undefined) throw new Error('nothing was printed')
    const path = `${await pathOf(plane.kube, object)}?dryRun=All&fieldValidation=Strict`
    expect(await plane.kube.send('POST', path, object)).toMatchObject({ status: 400 })
  })
})
