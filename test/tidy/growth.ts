/**
 * Which functions of the guarded folders no row of a growth table runs. What takes bytes of somebody without a valid token must
 * have a row; what does not is named here with its reason.
 */

/** Folders that read bytes of a request before its sender is known, and the tables that play them. */
const GUARDED: readonly string[] = ['sidecar/request/']
const TABLES = /^test\/(?:pdp|sidecar)\/growth\/[\w-]+\.ts$/

/** Files, and functions as `path:name`, that take no bytes of a request, by what they take. */
const OTHERS: { readonly [place: string]: string } = {}

const EXPORTED = /^export (?:async )?(?:function\*? (\w+)|const (\w+) = (?:async )?(?:<[^=]*>)?\()/gm
const NAMED = /'((?:pdp|sidecar)\/[\w/-]+\.ts:\w+)'/g

/** Functions without a row, and names in tables that no file exports. */
export function withoutGrowth(tree: ReadonlyMap<string, string>): { readonly [place: string]: number } {
  const exported = [...tree].flatMap(([path, text]) =>
    [...text.matchAll(EXPORTED)].map(([, one, other]) => `${path}:${one ?? other}`),
  )
  const named = new Set(
    [...tree].flatMap(([path, text]) =>
      TABLES.test(path) ? [...text.matchAll(NAMED)].map(([, name = '']) => name) : [],
    ),
  )
  const isExcused = (place: string): boolean =>
    Object.hasOwn(OTHERS, place) || Object.hasOwn(OTHERS, place.replace(/:.*/, ''))
  const isGuarded = (place: string): boolean => GUARDED.some((folder) => place.startsWith(folder))
  const missing = exported.filter((place) => isGuarded(place) && !named.has(place) && !isExcused(place))
  const stale = [...named].filter((place) => !exported.includes(place))
  return Object.fromEntries([...missing, ...stale].map((place) => [place, 1]))
}
