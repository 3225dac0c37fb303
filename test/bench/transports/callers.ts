/** Processes that only ask a PDP, so that what a caller does costs the PDP nothing and no caller's turn gathers all questions. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Loaded, load, type Manner } from '../report/figures.ts'
import { type Asked, waysToAsk } from './ways-to-ask.ts'

type Task = { readonly way: string; readonly manner: Manner }

export function startCallers(asked: Asked, { processes, callers }: { processes: number; callers: number }) {
  const children = Array.from({ length: processes }, () => {
    const words = [JSON.stringify(asked), String(callers)]
    return fork(fileURLToPath(import.meta.url), words, { serialization: 'advanced' })
  })
  const share = (manner: Manner): Manner =>
    'rate' in manner
      ? { ...manner, rate: manner.rate / processes }
      : { ...manner, callers: Math.ceil(manner.callers / processes) }
  return {
    pids: children.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    async load(way: string, manner: Manner): Promise<Loaded> {
      const all = await Promise.all(children.map((child) => played(child, { way, manner: share(manner) })))
      return {
        perSecond: all.reduce((sum, { perSecond }) => sum + perSecond, 0),
        timesMs: all.flatMap(({ timesMs }) => timesMs),
      }
    },
    close(): void {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

function played(child: ChildProcess, task: Task): Promise<Loaded> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a process of callers ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (found) => {
      child.off('exit', ended)
      resolve(found as Loaded)
    })
    child.send(task)
  })
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  const [asked = '', callers = ''] = process.argv.slice(2)
  const { ways } = waysToAsk(JSON.parse(asked), Number(callers))
  process.on('message', async ({ way, manner }: Task) => {
    const { ask } = ways[way] ?? {}
    if (ask === undefined) throw new Error(`there is no way to ask "${way}"`)
    const found = await load(async () => {
      if (!(await ask('1'))) throw new Error(`${way} is wrong`)
    }, manner)
    process.send?.(found)
  })
}
