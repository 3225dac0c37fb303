/** Compiled models by their text. A light text is compiled here; any other must be compiled in a thread before it is needed. */
import { PdpError } from '../../../shared/domain/errors.ts'
import type { Manifest } from '../../../shared/domain/manifest.ts'
import { isLight } from '../language/model-bounds.ts'
import { compileModel } from '../language/model-language.ts'
import { type Model, mergeModels, NO_MODEL } from '../model.ts'

/** How many texts, and how many characters in all, are kept: a bound, because callers choose the texts. */
const KEPT_MAX = 1_000
const CHARACTERS_MAX = 16_000_000

/** Thrown when a model is not compiled yet: a caller that can wait compiles it in a thread and tries again. */
export class ModelPending extends Error {
  override readonly name = 'ModelPending'
  readonly text: string
  constructor(text: string) {
    super('a model is still to be compiled')
    this.text = text
  }
}

type Kept = { readonly model: Model } | { readonly error: PdpError }
/** Models by text, for the whole process, since a text always compiles to the same model. */
const kept = new Map<string, Kept>()

/** Throws PdpError `request_invalid` as compileModel does, and ModelPending. */
export function knownModel(text: string): Model {
  let found = kept.get(text)
  if (found === undefined) {
    if (!isLight(text)) throw new ModelPending(text)
    found = attempt(() => compileModel(text))
    keepModel(text, found)
  }
  if ('error' in found) throw found.error
  return found.model
}

export function keepModel(text: string, compiled: Kept): void {
  let characters = text.length
  for (const known of kept.keys()) characters += known.length
  for (const oldest of kept.keys()) {
    if (kept.size < KEPT_MAX && characters <= CHARACTERS_MAX) break
    kept.delete(oldest)
    characters -= oldest.length
  }
  kept.set(text, compiled)
}

function attempt(compile: () => Model): Kept {
  try {
    return { model: compile() }
  } catch (err) {
    if (err instanceof PdpError) return { error: err }
    throw err
  }
}

/** Compiles and merges the models of all manifests. Throws ModelPending when one of them has to be compiled in a thread first. */
export type ModelCompiler = (manifests: readonly Manifest[]) => Model

/** Remembers merged models by the identity of the list of manifests. */
export function createModelCompiler(): ModelCompiler {
  const byList = new WeakMap<readonly Manifest[], Model>()
  return (manifests) => {
    const known = byList.get(manifests)
    if (known !== undefined) return known
    const texts = manifests.flatMap((manifest) => (manifest.model === null ? [] : [manifest.model]))
    const model = texts.length === 0 ? NO_MODEL : mergeModels(texts.map(knownModel))
    byList.set(manifests, model)
    return model
  }
}
