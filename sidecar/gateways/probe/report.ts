/** The report of a run of `probe-gateway`, for people and programs. */
import type { Probed, Result } from './probe.ts'

export type Report = {
  readonly held: number
  readonly malformed: number
  readonly passed: readonly Told[]
  readonly unproven: readonly Told[]
  readonly left_out: readonly string[]
}
type Told = {
  readonly method: string
  readonly target: string
  /** Fields besides those that every probe has. */
  readonly fields: readonly string[]
  readonly token: boolean
  readonly route: string
  readonly answer: string
}

const TOLD_MAX = 50

export function reportOf(probed: readonly Probed[], leftOut: readonly string[]): Report {
  const told = (result: Result): readonly Told[] =>
    probed
      .filter((one) => one.result === result)
      .map(({ probe: { method, target, fields, host, route, token }, why }) => {
        const others = fields.filter(([name, value]) => name !== 'host' || value !== host)
        return { method, target, fields: others.map(([name, value]) => `${name}: ${value}`), token, route, answer: why }
      })
  const [held, malformed] = [told('held').length, told('malformed').length]
  return { held, malformed, passed: told('passed'), unproven: told('unproven'), left_out: leftOut }
}

/** True if all probes that were sent were held. */
export const isHeld = ({ held, passed, unproven }: Report): boolean =>
  held > 0 && passed.length === 0 && unproven.length === 0

export function describeReport(report: Report): readonly string[] {
  const { held, malformed, passed, unproven } = report
  return [
    ...listed(passed, 'passed'),
    ...listed(unproven, 'unproven'),
    ...report.left_out.map((what) => `not probed: ${what}`),
    `${held} held, ${malformed} refused by the gateway as malformed, ${passed.length} passed, ${unproven.length} unproven`,
  ]
}

function listed(all: readonly Told[], result: Result): readonly string[] {
  const lines = all.slice(0, TOLD_MAX).map(({ method, target, fields, token, route, answer }) => {
    const sent = [
      `${method} ${JSON.stringify(target).slice(1, -1)}`,
      ...fields,
      token ? 'with the token' : 'without a token',
    ]
    return `${result}: ${sent.join(', ')}: ${answer} (guarded by ${route})`
  })
  return [...lines, ...(all.length > TOLD_MAX ? [`${result}: ${all.length - TOLD_MAX} more, see --json`] : [])]
}
