/** The environment variables of the OpenTelemetry specification. */
import { expect, test } from 'vitest'
import { readTracing } from '../../../../../pdp/shared/process/tracing/settings.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

function read(environment: NodeJS.ProcessEnv) {
  const problems: string[] = []
  const settings = readTracing(environment, { service: 'portcullis-pdp', report: (problem) => problems.push(problem) })
  return { settings, problems }
}

test.each([
  {},
  { OTEL_SERVICE_NAME: 'x' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' },
])('%o collects no spans', (environment) => {
  expect(read(environment)).toEqual({ settings: null, problems: [] })
})

test('an endpoint alone is enough', () => {
  expect(read(ENDPOINT)).toEqual({
    settings: {
      url: 'http://collector:4318/v1/traces',
      headers: {},
      timeoutMs: 10_000,
      sampler: { ratio: 1, parentBased: true },
      resource: { 'service.name': 'portcullis-pdp' },
    },
    problems: [],
  })
})

test('the variables for traces win over those for everything', () => {
  const { settings } = read({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://all.example/otel/',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/here',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=Bearer%20x, b = 2',
    OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test,service.name=other',
    OTEL_SERVICE_NAME: 'mine',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  })
  expect(settings).toEqual({
    url: 'https://traces.example/here',
    headers: { authorization: 'Bearer x', b: '2' },
    timeoutMs: 5_000,
    sampler: { ratio: 0.1, parentBased: true },
    resource: { 'service.name': 'mine', 'deployment.environment': 'test' },
  })
})

test('the path for traces is appended to the endpoint for everything', () => {
  expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://all.example/otel/' }).settings?.url).toBe(
    'https://all.example/otel/v1/traces',
  )
})

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, 'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL'],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'ftp://x' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL is grpc'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS must be key=value'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT: '1s' }, 'OTEL_EXPORTER_OTLP_TIMEOUT must be'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, 'OTEL_EXPORTER_OTLP_TIMEOUT must be'],
  [{ ...ENDPOINT, OTEL_TRACES_SAMPLER: 'sometimes' }, 'OTEL_TRACES_SAMPLER must be one of always_on'],
  [
    { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
    'OTEL_TRACES_SAMPLER_ARG must be',
  ],
  [
    { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' },
    'OTEL_TRACES_SAMPLER_ARG must be',
  ],
])('%o is refused, and no value is repeated that may be a credential', (environment, problem) => {
  const { problems } = read(environment)
  expect(problems).toEqual([expect.stringContaining(problem)])
  expect(problems.join()).not.toContain('secret')
})
