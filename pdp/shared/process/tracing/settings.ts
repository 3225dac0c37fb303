/** Reads the settings of the OpenTelemetry specification (environment variables `OTEL_…`) that say whether and where spans go. */
import type { Attributes, Sampler } from './tracing.ts'

export type TracingSettings = {
  /** The URL to which spans are posted. */
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly timeoutMs: number
  readonly sampler: Sampler
  /** The attributes of the process: service.name and others. */
  readonly resource: Attributes
}

/** The main setting, for `--help`. The specification's other variables count, too. */
export const TRACING_SETTING = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'http or https URL of an OpenTelemetry collector, such as http://collector:4318 (default: no traces)',
] as const

const PATH = '/v1/traces'
const TIMEOUT_MS = 10_000
/** Names of OTEL_TRACES_SAMPLER: whether the argument is the ratio, and whether the caller's choice wins. */
const SAMPLERS: { readonly [name: string]: Sampler | 'ratio' | 'parent ratio' } = {
  always_on: { ratio: 1, parentBased: false },
  always_off: { ratio: 0, parentBased: false },
  traceidratio: 'ratio',
  parentbased_always_on: { ratio: 1, parentBased: true },
  parentbased_always_off: { ratio: 0, parentBased: true },
  parentbased_traceidratio: 'parent ratio',
}

/** The settings; null: no endpoint is set, or OTEL_SDK_DISABLED is true. `service`: the name, unless a variable has another. */
export function readTracing(
  environment: NodeJS.ProcessEnv,
  { service, report }: { readonly service: string; readonly report: (problem: string) => void },
): TracingSettings | null {
  const of = (name: string): string | null => environment[name] || null
  const endpoint = readEndpoint(of, report)
  if (endpoint === null || of('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return null
  const protocol = of('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? of('OTEL_EXPORTER_OTLP_PROTOCOL') ?? 'http/json'
  if (protocol !== 'http/json')
    report(
      `OTEL_EXPORTER_OTLP_PROTOCOL is ${protocol}, but spans are sent as http/json only, which collectors take on port 4318`,
    )
  return {
    url: endpoint,
    headers: readPairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_EXPORTER_OTLP_HEADERS'),
    timeoutMs: readTimeout(of, report),
    sampler: readSampler(of, report),
    resource: {
      'service.name': service,
      ...readPairs('OTEL_RESOURCE_ATTRIBUTES'),
      ...(of('OTEL_SERVICE_NAME') !== null && { 'service.name': of('OTEL_SERVICE_NAME') ?? service }),
    },
  }

  /** `key=value,key=value`, percent-encoded (W3C Baggage). The first of the variables that is set counts. */
  function readPairs(...names: readonly string[]): { [name: string]: string } {
    const name = names.find((candidate) => of(candidate) !== null)
    const pairs: { [name: string]: string } = {}
    for (const part of name === undefined ? [] : (of(name) ?? '').split(',')) {
      const [, key = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(part) ?? []
      // The message leaves out the value, which may be a credential.
      if (key === '') report(`${name} must be key=value, separated by commas`)
      else pairs[key] = decode(value)
    }
    return pairs
  }
}

type Of = (name: string) => string | null
type Report = (problem: string) => void

function readEndpoint(of: Of, report: Report): string | null {
  const [name, path] = of('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
    ? ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '']
    : ['OTEL_EXPORTER_OTLP_ENDPOINT', PATH]
  const text = of(name)
  if (text === null) return null
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    report(`${name} must be an http or https URL, such as http://collector:4318`)
    return null
  }
  return `${text.replace(/\/$/, '')}${path}`
}

function readTimeout(of: Of, report: Report): number {
  const text = of('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT') ?? of('OTEL_EXPORTER_OTLP_TIMEOUT')
  if (text === null) return TIMEOUT_MS
  if (!/^[1-9]\d{0,5}$/.test(text)) report('OTEL_EXPORTER_OTLP_TIMEOUT must be a number of milliseconds')
  return Number(text)
}

function readSampler(of: Of, report: Report): Sampler {
  const name = of('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const sampler = SAMPLERS[name]
  if (sampler === undefined) {
    report(`OTEL_TRACES_SAMPLER must be one of ${Object.keys(SAMPLERS).join(', ')}`)
    return { ratio: 0, parentBased: false }
  }
  if (typeof sampler === 'object') return sampler
  const text = of('OTEL_TRACES_SAMPLER_ARG') ?? '1'
  const ratio = Number(text)
  if (!/^[01]?(?:\.\d+)?$/.test(text) || ratio > 1) report('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  return { ratio, parentBased: sampler === 'parent ratio' }
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
