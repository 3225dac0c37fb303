/** The ports of a protected Pod that stay open on purpose: by number, and never one that a sidecar covers. */
import { ANNOTATION_UNPROTECTED, type Wishes } from './annotations.ts'
import { type Denial, deny } from './injection.ts'
import type { Container } from './pod.ts'
import { isSidecarPort } from './ports.ts'

type Covering = { readonly portName: string; readonly hiddenName: string }

/** The different port numbers without protection, sorted. `apps`: all containers but sidecars. `first`: the first sidecar port. */
export function openNumbers(
  apps: readonly Pick<Container, 'ports'>[],
  {
    unprotected,
    sidecars,
    first,
  }: { unprotected: Wishes['unprotected']; sidecars: readonly Covering[]; first: number },
): readonly number[] | Denial {
  const covering = new Set(sidecars.flatMap(({ portName, hiddenName }) => [portName, hiddenName]))
  const ports = apps.flatMap((app) => app.ports)
  const covered = new Set(ports.filter(({ name }) => name !== null && covering.has(name)).map(({ number }) => number))
  const named = [...unprotected].map((word) => ({
    word,
    numbers: /^\d+$/.test(word)
      ? [Number(word)]
      : ports.filter(({ name }) => name === word).map(({ number }) => number),
  }))
  const wrong = named.find(
    ({ word, numbers }) =>
      covering.has(word) || numbers.some((number) => covered.has(number) || isSidecarPort(number, first)),
  )
  if (wrong !== undefined)
    return deny(
      'port_covered',
      `annotation ${ANNOTATION_UNPROTECTED} lists ${wrong.word}, which a sidecar protects; remove it there`,
    )
  return [...new Set(named.flatMap(({ numbers }) => numbers))].toSorted((a, b) => a - b)
}
