/** Which directives of nginx are in force in a location. */
import type { Directive } from '../../read/nginx.ts'

/** A location with everything around it, from the outermost block to itself. */
export type Context = { readonly here: Directive; readonly around: readonly (readonly Directive[])[] }
export type Upstreams = ReadonlyMap<string, readonly string[]>

/** The directives of that name at the nearest level that has one: nginx inherits all of them, or none. */
export function effective({ around }: Context, ...names: readonly string[]): readonly Directive[] {
  for (const level of around.toReversed()) {
    const found = level.filter(({ name }) => names.includes(name))
    if (found.length > 0) return found
  }
  return []
}
export const settingOf = (context: Context, name: string): string | null => effective(context, name)[0]?.args[0] ?? null
/** Of this level only: handlers are not inherited. */
export const own = ({ around }: Context, names: readonly string[]): Directive | null =>
  around.at(-1)?.find(({ name }) => names.includes(name)) ?? null

/** The directives of a block with those of its `if` blocks: a condition may hold. */
export const withConditions = (block: readonly Directive[]): readonly Directive[] =>
  block.flatMap((one) => (one.name === 'if' ? withConditions(one.block ?? []) : [one]))
