import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import type { Mode } from '../../../../sidecar/injector/pod/injection.ts'
import { type Json, type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { parsePod } from '../../../../sidecar/injector/pod/pod.ts'
import { effort } from '../../../support/effort.ts'
import { anyPod, CONFIG } from './pods.ts'

const ORDINARY = { ...CONFIG, nativeSidecars: false, imagePullSecrets: ['registry'] }
const valueAt = (value: Json, path: readonly string[]): Json =>
  path.reduce((parent, part) => objectAt(parent, part)[part] ?? null, value)

describe('for any Pod', () => {
  const options = fc.record({
    mode: fc.constantFrom<Mode>('enabled', 'required'),
    config: fc.constantFrom(CONFIG, ORDINARY),
  })

  test('injecting into what was injected into changes nothing', () => {
    const counts = { inject: 0, skip: 0, deny: 0 }
    fc.assert(
      fc.property(anyPod, options, (pod, given) => {
        const injection = inject(pod, given)
        counts[injection.verdict] += 1
        if (injection.verdict !== 'inject') return
        const once = applyPatch(pod, injection.operations)
        expect(inject(once, given)).toMatchObject({ verdict: 'inject', operations: [] })
      }),
      { numRuns: effort({ short: 2_000, long: 25_000 }), seed: 6 },
    )
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(effort({ short: 10, long: 300 }))
  })

  test('each protected name belongs to one port, a sidecar of ours, and nothing of the app is lost', () => {
    fc.assert(
      fc.property(anyPod, options, (pod, given) => {
        const injection = inject(pod, given)
        if (injection.verdict !== 'inject') return
        const [before, after] = [parsePod(pod), parsePod(applyPatch(pod, injection.operations))]
        const wanted = (before.annotations.get('portcullis.dev/ports') ?? '').split(',').map((name) => name.trim())
        for (const name of wanted) {
          const holders = after.containers.filter(({ ports }) => ports.some((p) => p.name === name))
          expect(holders.map((holder) => holder.raw.image)).toEqual([CONFIG.image])
          expect(holders[0]?.name.startsWith('portcullis-sidecar')).toBe(true)
        }
        const apps = after.containers.filter(({ name }) => !name.startsWith('portcullis-sidecar'))
        expect(apps.map(({ ports }) => ports.map(({ number }) => number))).toEqual(
          before.containers
            .filter(({ name }) => !name.startsWith('portcullis-sidecar'))
            .map(({ ports }) => ports.map(({ number }) => number)),
        )
        // Every probe that found its port by name finds the same number still.
        for (const { name, list, ports, references, raw } of before.containers) {
          const app = apps.find((container) => container.name === name && container.list === list)
          if (before.containers.filter((container) => container.name === name).length > 1) continue
          for (const { path, portName } of references) {
            const number = ports.find((candidate) => candidate.name === portName)?.number
            const now = valueAt(app?.raw ?? raw, path)
            if (number !== undefined)
              expect(typeof now === 'number' ? now : app?.ports.find((p) => p.name === now)?.number).toBe(number)
          }
        }
      }),
      { numRuns: effort({ short: 1_000, long: 5_000 }), seed: 7 },
    )
  })

  test('any JSON at all has an answer', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('metadata', 'spec'), fc.jsonValue()), options, (document, given) => {
        const verdict = inject(document as JsonObject, given).verdict
        expect(['skip', 'deny']).toContain(verdict)
      }),
      { numRuns: effort({ short: 1_000, long: 3_000 }), seed: 8 },
    )
  })
})
