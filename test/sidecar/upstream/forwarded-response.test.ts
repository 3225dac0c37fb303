/** Tables of `forward()` with a fake client and a scripted upstream: what of a response reaches the client. */
import { describe, expect, test } from 'vitest'
import { type Exchange, type Script, send } from '../support/forwarding.ts'

describe('the client gets', () => {
  const answering =
    (fields: readonly string[], ...chunks: readonly string[]): Script =>
    ({ head, data, end }) => {
      head(200, ...fields)
      for (const chunk of chunks) data(chunk)
      end('X-Sum', '1', 'Connection', 'close')
    }

  test.each<[string, readonly string[], Partial<Exchange>, readonly string[]]>([
    ['the fields of the service', ['X-A', '1', 'Set-Cookie', 'b=2'], {}, ['X-A', '1', 'Set-Cookie', 'b=2']],
    ['none that belongs to the connection', ['Connection', 'x-a', 'X-A', '1', 'Keep-Alive', '5'], {}, []],
    ['ours after them', ['X-A', '1'], { forwarding: { answerFields: ['x-b', '2'] } }, ['X-A', '1', 'x-b', '2']],
    [
      'no cookie of the sidecar from the service, where browsers sign in',
      ['Set-Cookie', '__Host-portcullis-session=x', 'Set-Cookie', 'b=2'],
      { deps: { keepsCookies: true } },
      ['Set-Cookie', 'b=2'],
    ],
  ])('%s', async (_name, fields, one, expected) => {
    const { forwarded, answer } = await send({ ...one, scripts: [answering(fields)] })
    expect([forwarded, answer.status]).toEqual([{ kind: 'answered', status: 200 }, 200])
    expect([answer.fields, answer.trailers]).toEqual([expected, [['X-Sum', '1']]])
  })

  test('no trailer that may be in a header section only', async () => {
    const script: Script = ({ head, end }) => {
      head(200)
      end(
        ...['Set-Cookie', '__Host-portcullis-session=x', 'Content-Length', '5', 'content_type', 'text/html'],
        ...['Cache-Control', 'public', 'WWW-Authenticate', 'Basic', 'grpc-status', '0', 'X-Sum', '1'],
      )
    }
    for (const version of [undefined, '2'] as const) {
      const { answer } = await send({ ...(version && { version }), scripts: [script] })
      expect(answer.trailers).toEqual([
        ['grpc-status', '0'],
        ['X-Sum', '1'],
      ])
    }
  })

  test('informational responses but 100, without what is for the connection, and the one that follows', async () => {
    const script: Script = ({ head, end }) => {
      head(100, 'X-A', '1')
      head(103, 'Link', '</a.css>', 'Connection', 'x-b', 'X-B', '1', 'Content-Length', '3')
      for (let count = 0; count < 30; count += 1) head(102)
      head(204)
      end()
    }
    for (const version of [undefined, '2'] as const) {
      const { forwarded, answer } = await send({ ...(version && { version }), scripts: [script] })
      expect([forwarded, answer.fields]).toEqual([{ kind: 'answered', status: 204 }, []])
      expect(answer.informed.slice(0, 2)).toEqual([[103, 'Link', '</a.css>'], [102]])
      expect(answer.informed.length).toBe(15)
    }
    const { answer } = await send({ client: { version: '1.0' }, scripts: [script] })
    expect(answer.informed).toEqual([])
  })

  test('the names of trailers that pass, where there may be trailers', async () => {
    const announced = ['Trailer', 'X-Sum, Set-Cookie', 'trailer', 'grpc-status']
    const kept = ['trailer', 'x-sum, grpc-status']
    const fieldsOf = async (one: Partial<Exchange>, ...fields: string[]) => {
      const { answer } = await send({ ...one, scripts: [answering([...announced, ...fields], 'ab')] })
      return answer.fields
    }
    expect(await fieldsOf({})).toEqual(kept)
    expect(await fieldsOf({ version: '2' })).toEqual(kept)
    expect(await fieldsOf({ client: { version: '1.0' } })).toEqual([])
    expect(await fieldsOf({ client: { method: 'HEAD' } })).toEqual([])
    expect(await fieldsOf({}, 'Content-Length', '2')).toEqual(['Content-Length', '2'])
  })

  test('nothing of an answer that breaks before its first byte is sent', async () => {
    const script: Script = ({ head, fail }) => {
      head(200, 'X-A', '1')
      fail(new Error('bad chunk'))
    }
    for (const version of [undefined, '2'] as const) {
      const { forwarded, answer, requests } = await send({ ...(version && { version }), scripts: [script] })
      expect(forwarded).toMatchObject({ kind: 'failed', code: 'upstream_unavailable' })
      expect([answer.headersSent, answer.destroyed, requests.length]).toEqual([false, false, 1])
    }
  })

  test.each<[string, readonly string[], readonly string[], readonly number[]]>([
    ['a small body of known length in one piece with its end', ['Content-Length', '3'], ['a\xe9b'], [3]],
    ['a body in parts as they come', ['Content-Length', '4'], ['ab', 'cd'], [2, 2, 0]],
    ['a body of unknown length as it comes', [], ['ab'], [2, 0]],
    ['a body of 16 KiB in one piece', ['Content-Length', '16384'], ['a'.repeat(16_384)], [16_384]],
    ['a larger body as it comes', ['Content-Length', '16385'], ['a'.repeat(16_385)], [16_385, 0]],
  ])('%s', async (_name, fields, chunks, lengths) => {
    for (const version of [undefined, '2'] as const) {
      const { answer } = await send({ ...(version && { version }), scripts: [answering(fields, ...chunks)] })
      expect([answer.body, answer.chunks.map(({ length }) => length)]).toEqual([chunks.join(''), lengths])
    }
  })

  test('a small body over HTTP/2 before the end of the response, which may be late', async () => {
    const script: Script = ({ head, data }) => {
      head(200, 'Content-Length', '2')
      data('ab')
    }
    const { answer } = await send({ version: '2', scripts: [script] })
    expect([answer.body, answer.writableFinished]).toEqual(['ab', false])
  })

  test('no more than it reads: the service waits until the client has drained', async () => {
    const paused: boolean[] = []
    const script: Script = ({ head, data, answer, controller }) => {
      head(200)
      answer.takes = false
      data('ab')
      paused.push(controller.paused)
      answer.emit('drain')
      paused.push(controller.paused)
    }
    await send({ scripts: [script] })
    expect(paused).toEqual([true, false])
  })

  const EVENTS = ['Content-Type', 'text/event-stream']
  test('the header section of an event stream before its first event', async () => {
    const { answer, cancellation } = await send({ scripts: [({ head }) => head(200, ...EVENTS)] })
    expect([answer.flushed, cancellation.endless]).toEqual([true, true])
  })

  const ENDED = { 'portcullis-problem': 'token_expired' }
  test.each<[string, Partial<Exchange>, readonly string[], object | null]>([
    ['an event stream, with the reason as a trailer', {}, EVENTS, ENDED],
    [
      'a gRPC call, with a status',
      { version: '2' },
      ['Content-Type', 'application/grpc'],
      { 'grpc-status': '16', ...ENDED },
    ],
    ['a download, by closing the connection', {}, ['Content-Length', '9'], null],
    ['an event stream with a length, by closing the connection', {}, [...EVENTS, 'Content-Length', '9'], null],
  ])('the end of the permission in %s', async (_name, one, fields, trailers) => {
    const script: Script = ({ head, data, cancellation }) => {
      head(200, ...fields)
      data('ab')
      cancellation.cancel('token_expired')
    }
    const { answer, aborted, forwarded } = await send({ ...one, scripts: [script] })
    expect([forwarded, aborted]).toEqual([{ kind: 'answered', status: 200 }, ['cancelled: token_expired']])
    if (trailers === null) expect(answer.destroyed).toBe(true)
    else expect(Object.fromEntries(answer.trailers)).toMatchObject(trailers)
    expect(answer.writableFinished).toBe(trailers !== null)
  })

  test('nothing of a response that comes after the end of the permission', async () => {
    const script: Script = ({ head, data, end, cancellation }) => {
      cancellation.cancel('permission_denied')
      head(200, 'X-A', '1')
      data('secret')
      end()
    }
    const { answer, forwarded } = await send({ scripts: [script] })
    expect(forwarded).toMatchObject({ kind: 'failed', code: 'permission_denied' })
    expect([answer.headersSent, answer.body]).toEqual([false, ''])
  })
})
