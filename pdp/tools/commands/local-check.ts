/** `check --model FILE`: answers one question about a store file in this process, as a running PDP would. */

import { createPdp } from '../../engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../engine/store/memory/memory.ts'
import type { AskedSubject, PermissionResult } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { planOpenFga } from '../import/openfga.ts'
import type { Plan } from '../import/plan.ts'
import { unconfined } from '../model-test/confined-files.ts'
import { ValidationIssues } from '../model-test/located-yaml.ts'
import { readModelText } from '../model-test/model-text.ts'
import { readStoreFile } from '../model-test/store-file.ts'
import { CliError } from './errors.ts'
import type { Accompanying } from './question-options.ts'

const ORGANIZATION = 'local'
const context = { actor: 'check', requestId: 'check' }

/** `file`: a store file, or a model alone. Throws CliError. */
export async function checkLocally(
  file: string,
  asked: Accompanying & {
    readonly subject: AskedSubject
    readonly relation: string
    readonly resource: string
  },
): Promise<{ readonly result: PermissionResult; readonly notes: readonly string[] }> {
  const plan = await planOf(file)
  if (plan.refusals.length > 0) throw new CliError([`${file} cannot be served:`, ...plan.refusals].join('\n  '))
  const store = memoryStore()
  const organization = { id: ORGANIZATION, name: ORGANIZATION, parent: null }
  const manifest = { app: 'model', audiences: [], permissions: {}, roles: {}, model: plan.model }
  await store.write(
    ENVIRONMENT,
    [
      { kind: 'organization', id: ORGANIZATION, organization },
      { kind: 'manifest', manifest },
    ],
    { context },
  )
  const changes = plan.tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const)
  if (changes.length > 0) await store.write(ORGANIZATION, changes, { context })
  const { relation, resource, ...question } = asked
  const permissions = [{ relation, resource }]
  const decision = await createPdp({ store }).decide({
    ...question,
    organization: ORGANIZATION,
    permissions,
    explain: true,
  })
  const [result] = decision.permissions
  if (result === undefined) throw new CliError('the question has no answer')
  return { result, notes: plan.notes.filter((note) => note.startsWith('type ')) }
}

async function planOf(file: string): Promise<Plan> {
  try {
    const { source, tuples } = await readFiles(file)
    return planOpenFga(await readModelText(source, unconfined), tuples)
  } catch (err) {
    if (err instanceof PdpError) throw new CliError(`${file}: ${err.message}`, { cause: err })
    if (err instanceof Error && 'code' in err) throw new CliError(fileProblem(file, err))
    throw err
  }
}

async function readFiles(file: string) {
  const issues = new ValidationIssues()
  const store = await readStoreFile(file, { read: unconfined, issues })
  if (store.model === null || issues.lines.length > 0)
    throw new CliError([`${file} cannot be used:`, ...issues.lines].join('\n  '))
  return { source: store.model, tuples: store.tuples }
}
