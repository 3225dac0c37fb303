/** Runs store files that a test writes, in a folder of their own. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runModelTests } from '../../../../pdp/tools/model-test/model-test.ts'

export type Run = { readonly status: number; readonly lines: readonly string[] }

/** @param files by name; those that are called `….fga.yaml` are run. */
export async function runStores(files: Readonly<Record<string, string>>): Promise<Run> {
  const directory = await mkdtemp(join(tmpdir(), 'model-test-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, name)), { recursive: true })
      await writeFile(join(directory, name), text)
    }
    const stores = Object.keys(files).filter((name) => name.endsWith('.fga.yaml'))
    let text = ''
    const write = (part: string): void => {
      text += part
    }
    const status = await runModelTests(
      stores.map((name) => join(directory, name)),
      { write, directory },
    )
    return { status, lines: text.trimEnd().split('\n') }
  } finally {
    await rm(directory, { recursive: true })
  }
}

const indented = (text: string, by: number): string =>
  text
    .trim()
    .split('\n')
    .map((line) => ' '.repeat(by) + line)
    .join('\n')

/**
 * One store out of short words: types and relations, tuples as `object relation user`, and expectations as
 * `user relation object`, `not user relation object`, `objects user relation type = …` and
 * `users filter relation object = …`.
 */
export function storeText(of: { model: string; tuples: readonly string[]; expect: readonly string[] }): string {
  const tuples = of.tuples.map((tuple) => {
    const [object, relation, user] = tuple.split(' ')
    return `  - {object: '${object}', relation: '${relation}', user: '${user}'}\n`
  })
  return `model: |\n  model\n    schema 1.1\n${indented(of.model, 2)}\ntuples:\n${tuples.join('')}tests:\n${of.expect.map(testText).join('')}`
}

function testText(expectation: string, index: number): string {
  const [left = '', right = ''] = expectation.split(' = ')
  const words = left.split(' ')
  const name = `  - name: '${index}'\n`
  const list = `[${right
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => `'${word}'`)
    .join(', ')}]`
  if (words[0] === 'objects') {
    return `${name}    list_objects:\n      - user: '${words[1]}'\n        type: ${words[3]}\n        assertions: {${words[2]}: ${list}}\n`
  }
  if (words[0] === 'users') {
    const [type, relation] = (words[1] ?? '').split('#')
    const filter = `{type: ${type}${relation === undefined ? '' : `, relation: ${relation}`}}`
    return `${name}    list_users:\n      - object: '${words[3]}'\n        user_filter: [${filter}]\n        assertions: {${words[2]}: {users: ${list}}}\n`
  }
  const denied = words[0] === 'not'
  const [user, relation, object] = denied ? words.slice(1) : words
  return `${name}    check:\n      - user: '${user}'\n        object: '${object}'\n        assertions: {${relation}: ${!denied}}\n`
}
