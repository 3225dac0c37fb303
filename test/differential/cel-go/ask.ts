/** The CEL implementation that OpenFGA uses, as a program that Go builds once and a test asks. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** `values` as the program reads them: numbers of 64 bits are digits. */
export type CelQuestion = {
  readonly expression: string
  readonly types: { readonly [name: string]: string }
  readonly values: { readonly [name: string]: unknown }
}
/** `refused`: it is no expression of these types. `unfit`: a value is not one of its type. */
export type CelAnswer =
  | { readonly value: unknown }
  | { readonly error: string }
  | { readonly refused: string }
  | { readonly unfit: string }
export type Asker = (questions: readonly CelQuestion[]) => readonly CelAnswer[]

const BUILD_TIMEOUT_MS = 900_000

/** What asks it, or why nothing can be asked. */
export function celGo(): Asker | { readonly missing: string } {
  if (spawnSync('go', ['version'], { stdio: 'ignore' }).status !== 0)
    return { missing: 'there is no Go to build it with' }
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-cel-go')
  mkdirSync(folder, { recursive: true })
  const program = join(folder, 'cel-go')
  const words = ['-n', '19', 'go', 'build', '-trimpath', '-buildvcs=false', '-o', program, '.']
  const { status, stderr } = spawnSync('nice', words, {
    cwd: import.meta.dirname,
    env: { ...process.env, CGO_ENABLED: '0' },
    encoding: 'utf8',
    timeout: BUILD_TIMEOUT_MS,
  })
  if (status !== 0) return { missing: `Go could not build it: ${stderr.trim().slice(-300)}` }
  return (questions) => {
    const input = questions.map((question) => `${JSON.stringify(question)}\n`).join('')
    const { stdout, stderr: problem } = spawnSync(program, { input, encoding: 'utf8', maxBuffer: 2 ** 28 })
    const answers = stdout.trimEnd().split('\n')
    if (answers.length !== questions.length) throw new Error(`cel-go ended early: ${problem.slice(-500)}`)
    return answers.map((line): CelAnswer => JSON.parse(line))
  }
}
