/** The worker thread of worker.ts: parses texts one by one and returns results or faults. */
import { parentPort } from 'node:worker_threads'
import { PdpError } from '../../shared/domain/errors.ts'
import { compileModel } from '../decide/language/model-language.ts'
import type { Job, JobResult } from './worker.ts'
import { parseYaml } from './yaml.ts'

const WORK: { readonly [kind in Job['kind']]: (text: string) => unknown } = { model: compileModel, yaml: parseYaml }

function resultOf({ kind, text }: Job): JobResult {
  try {
    return { value: WORK[kind](text) }
  } catch (err) {
    if (err instanceof PdpError) return { issues: err.issues, message: err.message }
    return { issues: [{ place: '1:1', message: 'cannot be read' }], message: 'the text cannot be read' }
  }
}

parentPort?.on('message', (job: Job) => parentPort?.postMessage(resultOf(job)))
