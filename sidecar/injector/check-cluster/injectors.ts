/** Finds the injectors of a cluster by their connections: a webhook's path, its Service, and the program in the Service's Pods. */
import { MODES, type Mode } from '../pod/injection.ts'
import { isObject, type JsonObject, listAt, objectAt, textAt, textsAt } from '../pod/json.ts'
import { parsePod } from '../pod/pod.ts'
import { type Named, ofKind } from './watched.ts'

/** The webhooks that inject sidecars. Throws ShapeError. */
export function webhooksOf(objects: readonly JsonObject[]): readonly {
  /** The name of its webhook configuration. */
  readonly configuration: string
  readonly mode: Mode
  /** The namespace of its Service. */
  readonly namespace: string
  readonly leadsToInjector: boolean
  readonly raw: JsonObject
}[] {
  return ofKind(objects, 'MutatingWebhookConfiguration').flatMap(({ name, raw }) =>
    listAt(raw.webhooks, 'webhooks')
      .filter(isObject)
      .flatMap((hook) => {
        const service = objectAt(objectAt(hook.clientConfig, 'clientConfig').service, 'clientConfig.service')
        const mode = MODES.find((known) => service.path === `/inject/${known}`)
        const target = { namespace: textAt(service.namespace, '') ?? '', name: textAt(service.name, '') ?? '' }
        if (mode === undefined) return []
        const leadsToInjector = injectorsAt(objects, target).length > 0
        return [{ configuration: name, mode, namespace: target.namespace, leadsToInjector, raw: hook }]
      }),
  )
}

/** Throws ShapeError. */
export function findInjectors(objects: readonly JsonObject[]): readonly { readonly images: readonly string[] }[] {
  return webhooksOf(objects).flatMap(({ raw }) => {
    const { namespace, name } = objectAt(objectAt(raw.clientConfig, '').service, '')
    return injectorsAt(objects, { namespace: textAt(namespace, '') ?? '', name: textAt(name, '') ?? '' })
  })
}

function injectorsAt(
  objects: readonly JsonObject[],
  target: { readonly namespace: string; readonly name: string },
): readonly { readonly images: readonly string[] }[] {
  const here = (object: Named): boolean => object.namespace === target.namespace
  const service = ofKind(objects, 'Service').find((object) => here(object) && object.name === target.name)
  const selector = textsAt(objectAt(service?.raw.spec, 'spec').selector, 'spec.selector')
  if (selector.size === 0) return []
  return ofKind(objects, 'Deployment')
    .filter(here)
    .map(({ raw }) => parsePod(objectAt(objectAt(raw.spec, 'spec').template, 'spec.template')))
    .filter(({ labels }) => [...selector].every(([name, value]) => labels.get(name) === value))
    .map(({ containers }) => containers.filter(({ raw }) => listAt(raw.args, 'args')[0] === 'injector'))
    .filter((programs) => programs.length > 0)
    .map((programs) => ({ images: programs.map(({ raw }) => textAt(raw.image, 'image') ?? '') }))
}
