/** The relation model that is in force: those of all manifests, compiled once each. */
import type { Manifest } from '../domain/manifest.ts'
import { knownModel } from './known-models.ts'
import { type Model, mergeModels, NO_MODEL } from './model.ts'

/** Throws ModelPending where one of them is still to be compiled. */
export type ModelCompiler = (manifests: readonly Manifest[]) => Model

/** Remembers what it merged, by the very list of manifests that the caller holds. */
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
