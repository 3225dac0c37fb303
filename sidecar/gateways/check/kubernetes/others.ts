/** Objects of Kubernetes that are of no gateway known here, and may route past all of them. */
import { entriesOf, get, type Tree, textOf } from '../../read/tree.ts'
import { at, type Finding } from '../finding.ts'
import { groupOf, kindOfObject } from './objects.ts'

/** Groups whose objects route no requests. */
const HARMLESS =
  /^$|^(apps|batch|autoscaling|policy|keda\.sh|bitnami\.com)$|(^|\.)(k8s\.io|cert-[a-z]+\.io|coreos\.com|external-secrets\.io|fluxcd\.io)$/

export const isIngress = (tree: Tree): boolean =>
  kindOfObject(tree) === 'Ingress' && ['networking.k8s.io', 'extensions'].includes(groupOf(tree))

/** `rest`: objects that no check of a gateway takes. */
export function checkOthers(rest: readonly Tree[]): readonly Finding[] {
  return rest.flatMap((tree) => {
    if (isIngress(tree)) return checkIngress(tree)
    if (kindOfObject(tree) === 'ConfigMap') return checkTexts(tree)
    if (kindOfObject(tree) === '' || HARMLESS.test(groupOf(tree))) return []
    return [
      at(tree)(
        'unseen',
        `the kind ${kindOfObject(tree)} of ${groupOf(tree)} is not known here: it may route`,
        'judge it by hand',
      ),
    ]
  })
}

const WORDS = /\b(proxy_pass|grpc_pass|fastcgi_pass|reverse_proxy|forward_auth|http_filters|forwardAuth|entryPoints)\b/

/** A gateway may read its configuration from a ConfigMap. */
const checkTexts = (map: Tree): readonly Finding[] =>
  entriesOf(get(map, 'data'))
    .filter(({ value }) => WORDS.test(textOf(value) ?? ''))
    .map((entry) =>
      at(entry)('unseen', `${entry.key} is the configuration of a gateway`, 'check it as a file of its own, too'),
    )

const OF_NGINX = 'nginx.ingress.kubernetes.io/'

function checkIngress(ingress: Tree): readonly Finding[] {
  const annotations = entriesOf(get(ingress, 'metadata', 'annotations'))
  const asked = annotations.find(({ key, value }) => key === `${OF_NGINX}auth-url` && textOf(value) !== '')
  const fix = 'route it by an HTTPRoute and a gateway that asks: gateway-config gateway-api'
  return [
    asked === undefined
      ? at(ingress)('skips_question', 'nobody is asked about the requests of this Ingress', fix)
      : at(asked)(
          'unseen',
          'ingress-nginx does not say to a door who it is, and what it writes of its annotations is not in the files',
          fix,
        ),
  ]
}
