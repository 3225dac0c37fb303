/** The relation model that is in force: those of all manifests, compiled once each. */
import type { Manifest } from '../store/contracts.ts'
import { type Model, mergeModels, NO_MODEL } from './model.ts'
import { compileModel } from './model-language.ts'

/** Compiled texts that are kept at most. */
const TEXTS_MAX = 1_000

export type ModelCompiler = (manifests: readonly Manifest[]) => Model

/** Remembers what it compiled, by text, and by the very list of manifests that the caller holds. */
export function createModelCompiler(): ModelCompiler {
  const byText = new Map<string, Model>()
  const byList = new WeakMap<readonly Manifest[], Model>()
  const compiled = (text: string): Model => {
    const known = byText.get(text)
    if (known !== undefined) return known
    if (byText.size >= TEXTS_MAX) byText.clear()
    const model = compileModel(text)
    byText.set(text, model)
    return model
  }
  return (manifests) => {
    const known = byList.get(manifests)
    if (known !== undefined) return known
    const texts = manifests.flatMap((manifest) => (manifest.model === null ? [] : [manifest.model]))
    const model = texts.length === 0 ? NO_MODEL : mergeModels(texts.map(compiled))
    byList.set(manifests, model)
    return model
  }
}
