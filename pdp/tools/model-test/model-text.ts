/** A model of the ecosystem's files as the one text that a manifest holds: schema 1.1, whatever it was written in. */
import { dirname, join } from 'node:path'
import openfga from '@openfga/syntax-transformer'
import { parsed } from '../../engine/decide/language/model-language.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { ModelSource, ReadText } from './store-file.ts'

type Document = Parameters<typeof openfga.transformer.transformJSONToDSL>[0]

/** @throws PdpError `request_invalid` with every issue; what `read` throws. */
export async function readModelText(source: ModelSource, read: ReadText): Promise<string> {
  if (source.kind === 'inline') return source.text
  const text = await read(source.file)
  if (source.file.endsWith('.json')) return modelTextOf(parsed(() => JSON.parse(text)))
  if (!source.file.endsWith('.mod')) return text
  const { contents, schema } = parsed(() => openfga.transformer.transformModFileToJSON(text))
  const modules: { name: string; contents: string }[] = []
  for (const { value: name, line } of contents.value) {
    const found = await read(join(dirname(source.file), name)).catch(() => null)
    if (found === null) {
      const message = `the module ${name} cannot be read`
      throw new PdpError('request_invalid', message, { issues: [{ place: `${line.start + 1}:1`, message }] })
    }
    modules.push({ name, contents: found })
  }
  return modelTextOf(parsed(() => openfga.transformer.transformModuleFilesToModel(modules, schema.value)))
}

/** The text of a model as OpenFGA's API writes it. The modules that types came from are forgotten. */
export function modelTextOf(document: Document): string {
  return parsed(() => openfga.transformer.transformJSONToDSL({ ...document, schema_version: '1.1' }))
}
