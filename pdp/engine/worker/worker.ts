/** Work on texts that may take long, in a thread of its own and with a deadline: everything else goes on meanwhile. */
import { Worker } from 'node:worker_threads'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import type { Model } from '../decide/model.ts'
import { keepModel, ModelPending } from '../decide/models/known-models.ts'

/** `model`: a text in the OpenFGA language. `yaml`: a document. */
export type Job = { readonly kind: 'model' | 'yaml'; readonly text: string }
export type JobResult =
  | { readonly value: unknown }
  | { readonly issues: readonly ValidationIssue[]; readonly message: string }

const DEADLINE_MS = 10_000
const IDLE_MS = 10_000
const WAITING_MAX = 64
const MEMORY_MB_MAX = 512
const MODELS_MAX = 100
/** The thread's program next to this file, with the same extension: source or built. */
const ENTRY = new URL(`./thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

/** The thread was too slow or ended, perhaps because of the machine and not of the text. */
class GivenUpError extends PdpError {}

export type Aside = {
  /** Throws PdpError `request_invalid` with every issue, also for what takes longer than the deadline; `overloaded`. */
  run(job: Job): Promise<unknown>
}

/** Runs jobs one by one in a thread, which ends after a time without jobs. */
export function createAside(options: { readonly deadlineMs?: number } = {}): Aside {
  const { deadlineMs = DEADLINE_MS } = options
  let worker: Worker | null = null
  let idle: NodeJS.Timeout | null = null
  let last: Promise<unknown> = Promise.resolve()
  let waitingCount = 0

  function drop(): void {
    void worker?.terminate()
    worker = null
  }

  async function attempt(job: Job): Promise<unknown> {
    if (idle !== null) clearTimeout(idle)
    worker ??= startWorker()
    const { issues, message, value } = await answerOf(worker, { job, deadlineMs }).catch((err: unknown) => {
      drop()
      throw err
    })
    idle = setTimeout(drop, IDLE_MS)
    idle.unref()
    if (issues === undefined) return value
    throw new PdpError('request_invalid', message ?? 'it is not valid', { issues })
  }

  return {
    run(job) {
      if (waitingCount >= WAITING_MAX) return Promise.reject(new PdpError('overloaded', 'too many texts are waiting'))
      waitingCount += 1
      const mine = last
        .then(() => attempt(job))
        .finally(() => {
          waitingCount -= 1
        })
      last = mine.catch(() => undefined)
      return mine
    },
  }
}

function startWorker(): Worker {
  const worker = new Worker(ENTRY, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX } })
  worker.unref()
  // Catches errors of a thread that fails between two jobs or after we gave it up.
  worker.on('error', () => undefined)
  return worker
}

type Answer = { readonly value?: unknown; readonly issues?: readonly ValidationIssue[]; readonly message?: string }

/** The thread's answer. Rejects when the thread ended or did not answer in time: it must not be used again. */
function answerOf(worker: Worker, { job, deadlineMs }: { job: Job; deadlineMs: number }): Promise<Answer> {
  return new Promise<Answer>((resolve, reject) => {
    const tooMuch = (): void => {
      const message = 'takes more time or memory than there is for it'
      const issues = [{ place: '1:1', message }]
      end(() => reject(new GivenUpError('request_invalid', `the text ${message}`, { issues })))
    }
    const answered = (answer: Answer): void => end(() => resolve(answer))
    function end(settle: () => void): void {
      clearTimeout(timer)
      worker.unref()
      worker.off('message', answered)
      worker.off('error', tooMuch)
      worker.off('exit', tooMuch)
      settle()
    }
    const timer = setTimeout(tooMuch, deadlineMs)
    worker.ref()
    worker.once('message', answered)
    worker.once('error', tooMuch)
    worker.once('exit', tooMuch)
    worker.postMessage(job)
  })
}

/** The thread of this process; the first text that needs it starts it. */
const aside = createAside()
const compiling = new Map<string, Promise<void>>()

export const parseAside = (text: string): Promise<unknown> => aside.run({ kind: 'yaml', text })

/** Runs `work`, again after compiling each model that it lacked. Before success, `work` must have no effect. */
export async function withModels<T>(work: () => T | Promise<T>): Promise<T> {
  for (let models = 0; ; models++) {
    try {
      return await work()
    } catch (err) {
      if (!(err instanceof ModelPending) || models >= MODELS_MAX) throw err
      await compileAside(err.text)
    }
  }
}

/** Continues after work that failed with `err` outside of withModels: compiles the model that it lacked. */
export async function afterModel<T>(err: unknown, work: () => Promise<T>): Promise<T> {
  if (!(err instanceof ModelPending)) throw err
  await compileAside(err.text)
  return withModels(work)
}

function compileAside(text: string): Promise<void> {
  const running = compiling.get(text) ?? compileIn(aside, text).finally(() => compiling.delete(text))
  compiling.set(text, running)
  return running
}

/** Compiles the text and keeps the model or its issues. Throws PdpError `overloaded`, and `request_invalid` when it was given up. */
export async function compileIn(thread: Aside, text: string): Promise<void> {
  try {
    keepModel(text, { model: (await thread.run({ kind: 'model', text })) as Model })
  } catch (err) {
    if (!(err instanceof PdpError) || err.code !== 'request_invalid' || err instanceof GivenUpError) throw err
    keepModel(text, { error: err })
  }
}
