/** Models in OpenFGA's forms: in the language, in JSON, or as an `fga.mod` with its modules, which become one model. */
import { dirname, join } from 'node:path'
import openfga from '@openfga/syntax-transformer'
import {
  invalidModel,
  type ModelDocument,
  parsed,
  readDocument,
  type TypeDefinition,
} from '../../engine/decide/language/document.ts'
import { boundIssues, MODEL_CHARACTERS_MAX } from '../../engine/decide/language/model-bounds.ts'
import { type PlaceOf, placesIn, START } from '../../engine/decide/language/places.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import type { ReadText } from './confined-files.ts'
import type { ModelSource } from './store-file.ts'

/** Longer JSON is written without blanks, since the body of a manifest may be only as long as a model. */
const READABLE_CHARACTERS_MAX = MODEL_CHARACTERS_MAX / 4

/** `text`: the model as a manifest has it. Places are `line:column`, in a modular model after the name of the file. */
export type SourceModel = { readonly text: string; readonly document: ModelDocument; readonly placeOf: PlaceOf }

/** @throws PdpError `request_invalid` with every issue of its form; what `read` throws. */
export async function readSourceModel(source: ModelSource, read: ReadText): Promise<SourceModel> {
  const text = source.kind === 'inline' ? source.text : await read(source.file)
  if (source.kind === 'file' && source.file.endsWith('.mod')) {
    const { document, placeOf } = await readModules(source.file, text, read)
    return { text: modelTextOf(document), document, placeOf }
  }
  const document = readBounded(text)
  const isJson = source.kind === 'file' && source.file.endsWith('.json')
  return { text: isJson ? modelTextOf(document) : text, document, placeOf: placesIn(text) }
}

export const readModelText = async (source: ModelSource, read: ReadText): Promise<string> =>
  (await readSourceModel(source, read)).text

/** The position with its file; in a modular model it already names its module. */
export const placeIn = (file: string, place: string): string =>
  /^\d+:\d+$/.test(place) ? `${file}:${place}` : join(dirname(file), place)

function readBounded(text: string): ModelDocument {
  const issues = boundIssues(text)
  if (issues.length > 0) throw invalidModel(issues)
  return readDocument(text)
}

/** The model as text with exactly the same meaning: in the language, or as JSON where the language cannot express it. */
export function modelTextOf(document: ModelDocument): string {
  const readable = JSON.stringify(document, null, 2)
  return languageTextOf(document) ?? (readable.length > READABLE_CHARACTERS_MAX ? JSON.stringify(document) : readable)
}

function languageTextOf(document: ModelDocument): string | null {
  type Document = Parameters<typeof openfga.transformer.transformJSONToDSL>[0]
  try {
    // The transformer changes its argument, so it gets a copy.
    const given = structuredClone({ ...document, schema_version: '1.1' }) as unknown as Document
    const text = openfga.transformer.transformJSONToDSL(given)
    return meaningOf(readDocument(text)) === meaningOf(document) ? text : null
  } catch {
    return null
  }
}

/** A text that is equal for models with the same meaning, in whatever order and modules. */
function meaningOf({ type_definitions, conditions }: ModelDocument): string {
  return JSON.stringify({ type_definitions, conditions }, (name, value: unknown) => {
    if (name === 'expression') return String(value).trim()
    if (name === 'child' && Array.isArray(value)) return value.toSorted((a, b) => compare(inOrder(a), inOrder(b)))
    return inOrder(value)
  })
}

const compare = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** The members sorted by name, without empty ones. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const members = Object.entries(value).filter(([, one]) => !(Array.isArray(one) && one.length === 0))
  return Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

type Module = { readonly name: string; readonly contents: string }
/** The file of each type, relation and condition. */
type Homes = Map<string, Module>

async function readModules(
  file: string,
  text: string,
  read: ReadText,
): Promise<{ readonly document: ModelDocument; readonly placeOf: PlaceOf }> {
  const { contents, schema } = parsed(() => openfga.transformer.transformModFileToJSON(text), text)
  const homes: Homes = new Map()
  const merged: Merged = { types: [], conditions: {}, extensions: [], issues: [] }
  for (const { value: name, line } of contents.value) {
    const found = await read(join(dirname(file), name)).catch(() => null)
    if (found === null)
      throw invalidModel([{ place: `${line.start + 1}:1`, message: `the module ${name} cannot be read` }])
    addModule({ name, contents: found }, merged, homes)
  }
  for (const { definition, module } of merged.extensions) extend(definition, module, { merged, homes })
  const { types, conditions, issues } = merged
  if (issues.length > 0) throw invalidModel(issues)
  const placeOf: PlaceOf = (spot) => {
    const home = homes.get(spot.relation === undefined ? '' : `${spot.type}#${spot.relation}`)
    const module = home ?? homes.get(spot.condition === undefined ? `${spot.type}` : `with ${spot.condition}`)
    return module === undefined ? START : `${module.name}:${placesIn(module.contents)(spot)}`
  }
  return { document: { schema_version: schema.value, type_definitions: types, conditions }, placeOf }
}

type Merged = {
  readonly types: TypeDefinition[]
  readonly conditions: { [name: string]: ModelDocument['conditions'][string] }
  readonly extensions: { readonly definition: TypeDefinition; readonly module: Module }[]
  readonly issues: ValidationIssue[]
}

function addModule(module: Module, merged: Merged, homes: Homes): void {
  const { name, contents } = module
  const isIn = (issue: ValidationIssue): ValidationIssue => ({ ...issue, place: `${name}:${issue.place}` })
  if (!/^\s*[^#\s]/m.test(contents)) return
  let document: ModelDocument
  try {
    document = readBounded(contents)
  } catch (err) {
    if (!(err instanceof PdpError)) throw err
    merged.issues.push(...err.issues.map(isIn))
    return
  }
  if (document.schema_version !== '')
    merged.issues.push(isIn({ place: START, message: 'it is not a module; begin it with "module <name>"' }))
  const extended = new Set([...contents.matchAll(/^[ \t]*extend[ \t]+type[ \t]+([^\s#]+)/gm)].map(([, type]) => type))
  for (const definition of document.type_definitions) {
    if (extended.has(definition.type)) merged.extensions.push({ definition, module })
    else merged.types.push(definition)
    if (!extended.has(definition.type)) homes.set(definition.type, module)
    for (const relation of Object.keys(definition.relations)) {
      const key = `${definition.type}#${relation}`
      if (!homes.has(key)) homes.set(key, module)
    }
  }
  for (const [condition, definition] of Object.entries(document.conditions)) {
    if (Object.hasOwn(merged.conditions, condition)) {
      const place = placesIn(contents)({ condition })
      merged.issues.push(isIn({ place, message: `condition "${condition}" is defined in another module as well` }))
    }
    merged.conditions[condition] = definition
    homes.set(`with ${condition}`, module)
  }
}

function extend(
  { type, relations, metadata }: TypeDefinition,
  { name, contents }: Module,
  { merged, homes }: { readonly merged: Merged; readonly homes: Homes },
): void {
  const at = merged.types.findIndex((one) => one.type === type)
  const known = merged.types[at]
  const note = (relation: string | null, message: string): void => {
    const place = placesIn(contents)(relation === null ? { type } : { type, relation })
    merged.issues.push({ place: `${name}:${place}`, message })
  }
  if (known === undefined) {
    note(null, `type "${type}" is extended, and no module declares it`)
    return
  }
  for (const relation of Object.keys(relations)) {
    if (Object.hasOwn(known.relations, relation))
      note(
        relation,
        `relation "${relation}" of type "${type}" is defined in ${homes.get(`${type}#${relation}`)?.name} as well`,
      )
  }
  merged.types[at] = {
    type,
    relations: { ...known.relations, ...relations },
    metadata: { relations: { ...known.metadata.relations, ...metadata.relations } },
  }
}
