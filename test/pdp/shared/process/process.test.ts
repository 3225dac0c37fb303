/** The small parts that every process of ours uses. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { problem } from '../../../../pdp/shared/base/problems.ts'
import { startOperations } from '../../../../pdp/shared/process/admin-listener.ts'
import { ConfigError, runCommand, StartError } from '../../../../pdp/shared/process/exit.ts'
import { generatedSecret } from '../../../../pdp/shared/process/generated-secret.ts'
import { serviceDefinition } from '../../../../pdp/shared/process/grpc/service.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { DecideRequestSchema, DecisionService } from '../../../../proto/gen/portcullis/v1/decision_pb.ts'

describe('problem', () => {
  test('has type, title and code, and the members given', () => {
    expect(problem('entitlement_required', { detail: 'no', entitlement: 'feature.x' })).toEqual({
      type: 'urn:portcullis:problem:entitlement_required',
      title: 'The organization lacks a required entitlement',
      code: 'entitlement_required',
      detail: 'no',
      entitlement: 'feature.x',
    })
  })
})

describe('serviceDefinition', () => {
  const definition = serviceDefinition(DecisionService)

  test('names paths and kinds of streaming as the protocol does', () => {
    expect(definition.decide).toMatchObject({
      path: '/portcullis.v1.DecisionService/Decide',
      requestStream: false,
      responseStream: false,
    })
    expect(definition.decideStream).toMatchObject({
      path: '/portcullis.v1.DecisionService/DecideStream',
      requestStream: true,
      responseStream: true,
    })
  })

  test('reads back what it writes', () => {
    const message = create(DecideRequestSchema, {
      token: 't',
      permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
    })
    expect(definition.decide.requestDeserialize(definition.decide.requestSerialize(message))).toEqual(message)
  })

  test('refuses bytes that are not the message', () => {
    expect(() => definition.decide.requestDeserialize(Buffer.from([0x0a, 0xff]))).toThrow()
  })
})

describe('createLog', () => {
  function open() {
    const lines: string[] = []
    const destination = { write: (line: string) => void lines.push(line) }
    return { lines, log: createLog({ service: 'test', level: 'info', destination }) }
  }

  test('writes one JSON object a line and hides what is secret', () => {
    const { lines, log } = open()
    log.info({ event: 'x', authorization: 'Bearer abc', headers: { cookie: 'abc' } })
    log.debug({ event: 'unseen' })
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toContain('abc')
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', service: 'test', event: 'x' })
  })

  test('says of an error what it is and where, without what a library attaches to it', () => {
    const { lines, log } = open()
    const err = Object.freeze(
      Object.assign(new Error('no', { cause: new Error('deep') }), {
        code: 'X',
        command: { name: 'hello', args: ['3', 'AUTH', 'default', 'abc'] },
        detail: 'Key (email)=(abc) already exists.',
        password: 'abc',
      }),
    )
    log.error({ event: 'x', err, token: undefined, list: [{ id: 1 }] })
    log.error({ event: 'y', err: new AggregateError([err], 'all') })
    log.error({ event: 'z', err: { password: 'abc' } })
    expect(lines.join('')).not.toContain('abc')
    const line = JSON.parse(lines[0] ?? '')
    expect(Object.keys(line.err)).toEqual(['type', 'message', 'stack', 'code'])
    expect(line.err).toMatchObject({ type: 'Error', message: 'no: deep', code: 'X' })
    expect(line.err.stack).toContain('process.test.ts')
    expect(line).not.toHaveProperty('token')
    expect(JSON.parse(lines[1] ?? '').err.aggregateErrors).toEqual([line.err])
    expect(err.password).toBe('abc')
  })

  test('says which system calls failed, also deep in an error, and ends with one that holds itself', () => {
    const { lines, log } = open()
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED', address: '::1', port: 1 })
    log.error({ event: 'x', err: new Error('fetch failed', { cause: new AggregateError([refused], '') }) })
    log.error({ event: 'y', err: new Error('fetch failed', { cause: refused }) })
    const round = new AggregateError([], 'round')
    round.errors.push(round)
    log.error({ event: 'z', err: Object.assign(round, { code: { password: 'abc' } }) })
    const [many, one, last] = lines.map((line) => JSON.parse(line).err)
    const where = { code: 'ECONNREFUSED', address: '::1', port: 1 }
    expect(many).toMatchObject({ message: 'fetch failed: AggregateError', aggregateErrors: [where] })
    expect(one).toMatchObject({ message: 'fetch failed: connect', ...where })
    expect([last.message, last.code]).toEqual(['round', undefined])
  })
})

describe('runCommand', () => {
  async function run(err: unknown) {
    const out = { text: '', status: 0 }
    const stderr = {
      write(text: string) {
        out.text += text
      },
    }
    const exit = (status: number): void => {
      out.status = status
    }
    await runCommand(() => Promise.reject(err), { stderr, exit })
    return out
  }

  test('says every mistake of the configuration and exits 64', async () => {
    expect(await run(new ConfigError(['A is wrong', 'B is wrong']))).toEqual({
      text: 'A is wrong\nB is wrong\n',
      status: 64,
    })
  })

  test('says one line for what the operator can mend and exits 1', async () => {
    expect(await run(new StartError('the port is taken'))).toEqual({ text: 'the port is taken\n', status: 1 })
  })

  test('shows the stack of anything else', async () => {
    const { text, status } = await run(new TypeError('a bug'))
    expect(text).toMatch(/TypeError: a bug\n {4}at /)
    expect(status).toBe(1)
  })
})

describe('generatedSecret', () => {
  test('is made once, for its owner alone, also by several starts at once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'secret-'))
    const path = join(directory, 'deep', 'secret')
    const secrets = await Promise.all([generatedSecret(path), generatedSecret(path), generatedSecret(path)])
    expect(new Set(secrets).size).toBe(1)
    expect(await generatedSecret(path)).toBe(secrets[0])
    expect(await readFile(path, 'utf8')).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    // Root's PostgreSQL runs as another user, who may pass through and see nothing.
    const root = process.getuid?.() === 0
    expect((await stat(join(directory, 'deep'))).mode & 0o777).toBe(root ? 0o711 : 0o700)
    await rm(directory, { recursive: true })
  })

  test('says in one line when the place cannot be used', async () => {
    await expect(generatedSecret('/dev/null/secret')).rejects.toThrow(
      new StartError(
        '/dev/null/secret cannot be written: a part of its path is not a folder. Name a folder that this user may write to by PORTCULLIS_DATA_DIR',
      ),
    )
  })
})

describe('startOperations', () => {
  test('answers metrics and probes, and nothing else', async () => {
    const operations = await startOperations({
      listen: { host: '127.0.0.1', port: 0 },
      registry: new Registry(),
      probes: {
        '/livez': () => null,
        '/readyz': async () => 'no keys yet',
        '/startz': () => Promise.reject(new Error('x')),
      },
    })
    const get = async (path: string, method = 'GET') => {
      const response = await fetch(`http://127.0.0.1:${operations.address.port}${path}`, { method })
      return [response.status, await response.text()]
    }
    expect(await get('/livez')).toEqual([200, 'ok\n'])
    expect(await get('/readyz?verbose')).toEqual([503, 'no keys yet\n'])
    expect(await get('/startz')).toEqual([503, 'the probe failed\n'])
    expect((await get('/metrics'))[0]).toBe(200)
    expect((await get('/toString'))[0]).toBe(404)
    expect((await get('/livez', 'POST'))[0]).toBe(405)
    const taken = { listen: operations.address, registry: new Registry(), probes: {} }
    await expect(startOperations(taken)).rejects.toThrow('another process uses this port')
    await operations.close()
  })
})
