/** Checks that the webhook and each rule of the backstop protect every namespace with a mode. Names and labels of objects prove nothing. */
import { MODES, type Mode } from '../pod/injection.ts'
import { type JsonObject, listAt, objectAt, textAt } from '../pod/json.ts'
import { checkBackstop } from './backstop.ts'
import { findInjectors, webhooksOf } from './injectors.ts'
import { coversResources, isEmptySelector, matchesLabels } from './selector.ts'
import { type Finding, finding, type GuardedNamespace, nothing } from './watched.ts'

const POD_CREATION = [{ group: '', resource: 'pods', operation: 'CREATE' }]

/** Throws ShapeError. */
export function checkGuard(
  objects: readonly JsonObject[],
  namespaces: readonly GuardedNamespace[],
): readonly Finding[] {
  const images = new Set(findInjectors(objects).flatMap((injector) => injector.images))
  return MODES.flatMap((mode) => {
    // A made-up namespace: a finding about it holds for all namespaces and is reported once.
    const any: GuardedNamespace = { name: null, mode, labels: new Map([['portcullis.dev/inject', mode]]) }
    const of = namespaces.filter((namespace) => namespace.mode === mode)
    const inGeneral = checkWebhooks(objects, any)
    return [
      ...inGeneral,
      ...(inGeneral.length > 0 ? [] : of.flatMap((namespace) => checkWebhooks(objects, namespace))),
      ...checkBackstop(objects, { any, namespaces: of, images }),
    ]
  }).filter(({ code, object, message }, at, all) => {
    const same = (other: Finding): boolean =>
      other.code === code && other.object === object && other.message === message
    return all.findIndex(same) === at
  })
}

function checkWebhooks(objects: readonly JsonObject[], namespace: GuardedNamespace): readonly Finding[] {
  const hooks = webhooksOf(objects).filter(({ mode }) => mode === namespace.mode)
  const checked = hooks.map((hook) => ({ hook, problem: findProblem(hook.raw, namespace, hook.leadsToInjector) }))
  if (checked.some(({ problem }) => problem === null)) return []
  const [first] = checked
  if (first === undefined || first.problem === null)
    return [nothing('webhook_missing', namespace.name, 'MutatingWebhookConfiguration', missing(namespace.mode))]
  const configuration = { namespace: namespace.name ?? '', name: first.hook.configuration }
  return [finding('webhook_open', configuration, 'MutatingWebhookConfiguration', first.problem)]
}

const missing = (mode: Mode): string => `no webhook of an injector: new Pods get no sidecar where the mode is ${mode}`

function findProblem(hook: JsonObject, { name, labels, mode }: GuardedNamespace, leads: boolean): string | null {
  const where = name === null ? `namespaces with portcullis.dev/inject: ${mode}` : `namespace ${name}`
  if (hook.failurePolicy !== 'Fail') return 'failurePolicy is not Fail'
  if (!coversResources(hook.rules, POD_CREATION)) return 'its rules leave out the creation of Pods'
  if (!matchesLabels(hook.namespaceSelector, labels)) return `its namespaceSelector leaves out ${where}`
  if (!isEmptySelector(hook.objectSelector)) return 'its objectSelector leaves out Pods'
  if (listAt(hook.matchConditions, 'matchConditions').length > 0) return 'its matchConditions leave out Pods'
  return leads ? null : `its Service ${serviceName(hook)} leads to no injector`
}

function serviceName(hook: JsonObject): string {
  const service = objectAt(objectAt(hook.clientConfig, 'clientConfig').service, 'clientConfig.service')
  return `${textAt(service.namespace, 'namespace')}/${textAt(service.name, 'name')}`
}
