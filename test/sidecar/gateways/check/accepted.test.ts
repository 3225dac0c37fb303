import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkGateways } from '../../../../sidecar/gateways/check/check-gateway.ts'
import { edited, one, saying } from '../edited.ts'

const CODE = 'fails_open'
const accepting = (comment: string, setting = 'failure_mode_allow: true') =>
  edited('envoy', ['failure_mode_allow: false', `${setting} ${comment}`])

describe('a finding of check-gateway is accepted', () => {
  test('by a comment on its line that names its code and a reason, which the result repeats', () => {
    const { findings, accepted } = checkGateways(accepting(`# portcullis: accept ${CODE} \u2014 a canary without data`))
    expect(findings).toEqual([])
    expect(accepted).toMatchObject([{ code: CODE, file: 'envoy.yaml', reason: 'a canary without data' }])
  })

  test('by a comment right above it, beside other comments', () => {
    const lines = `# portcullis: accept ${CODE}: a canary without data\n    # more of it\n    failure_mode_allow: true`
    const found = checkGateways(edited('envoy', [/ *failure_mode_allow: false/, indented(lines)]))
    expect([found.findings, found.accepted.length]).toEqual([[], 1])
  })

  test('in files of nginx, also included ones, in Caddyfiles and in TOML', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-'))
    try {
      const inner = join(folder, 'inner.inc')
      writeFileSync(
        inner,
        'location / { # portcullis: accept skips_question: static files that are public\n proxy_pass http://a; }',
      )
      const nginx = checkGateways(one(join(folder, 'a.conf'), 'server { listen 80; include inner.inc; }'))
      expect(nginx.accepted.map(({ file, code }) => [file, code])).toEqual([[inner, 'skips_question']])
      const toml = '[tcp.routers.mail] # portcullis: accept skips_question: mail has its own sign-in\nrule = "a"\n'
      expect(checkGateways(one('a.toml', `[http.routers]\n${toml}`)).accepted.length).toBe(1)
      const caddy =
        'http://a.test {\n# portcullis: accept skips_question: static files that are public\n\tfile_server\n}\n'
      expect(checkGateways(one('Caddyfile', caddy)).accepted.length).toBe(1)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('only once for each comment: where a line has two findings of a code, one comment accepts neither', () => {
    const site = 'forward_auth door:1 {\n\t\turi /other\n\t}'
    const alone = saying(one('Caddyfile', `http://a.test {\n\t${site}\n\treverse_proxy b:1\n}\n`))
    const [code = ''] = alone.map((line) => line.split(':')[0]).filter((own, at, all) => all.indexOf(own) !== at)
    const count = alone.filter((line) => line === `${code}: forward_auth door:1 {`).length
    expect(count).toBeGreaterThan(1)
    const comment = `# portcullis: accept ${code}: known since the migration\n\t`
    const withComments = (times: number) =>
      checkGateways(one('Caddyfile', `http://a.test {\n\t${comment.repeat(times)}${site}\n\treverse_proxy b:1\n}\n`))
    expect(withComments(1)).toMatchObject({ accepted: [] })
    expect(withComments(1).findings.length).toBe(alone.length)
    expect(withComments(count).accepted.length).toBe(count)
  })
})

describe('a comment that accepts is refused', () => {
  test.each<[string, string, RegExp]>([
    [
      'with an unknown code',
      '# portcullis: accept everything: a long enough reason',
      /everything is not one of skips_question, /,
    ],
    ['with no code', '# portcullis: accept', /the comment is not of the form # portcullis: accept CODE: the reason/],
    ['with another word', '# portcullis: ignore fails_open: a long enough reason', /is not of the form/],
    ['without a reason', '# portcullis: accept fails_open', /accepts fails_open and does not say why/],
    [
      'with a reason that says nothing',
      '# portcullis: accept fails_open: ok',
      /accepts fails_open and does not say why/,
    ],
    [
      'with a name that every object has',
      '# portcullis: accept toString: a long enough reason',
      /toString is not one of/,
    ],
    [
      'with a code that is not found there',
      '# portcullis: accept forgeable: a long enough reason',
      /accepts forgeable, which is not found at line/,
    ],
  ])('%s', (_what, comment, message) => {
    expect(() => checkGateways(accepting(comment))).toThrow(message)
    expect(() => checkGateways(accepting(comment))).toThrow(/^envoy\.yaml:\d+: /)
  })

  test('when what it accepts is mended, or on another line', () => {
    const comment = '# portcullis: accept fails_open: a canary without data'
    expect(() => checkGateways(accepting(comment, 'failure_mode_allow: false'))).toThrow(/remove the comment/)
    const far = edited(
      'envoy',
      ['failure_mode_allow: false', 'failure_mode_allow: true'],
      ['static_resources:', `static_resources: ${comment}`],
    )
    expect(() => checkGateways(far)).toThrow(
      /envoy\.yaml:1: the comment accepts fails_open, which is not found at line 1/,
    )
  })

  test('a second time for one finding', () => {
    const comment = '# portcullis: accept fails_open: a canary without data'
    const lines = `${comment}\n${comment}\nfailure_mode_allow: true`
    expect(() => checkGateways(edited('envoy', [/ *failure_mode_allow: false/, indented(lines)]))).toThrow(
      /which is not found/,
    )
  })
})

/** As deep as the settings of the filter are. */
const indented = (lines: string): string =>
  lines
    .split('\n')
    .map((line) => `                      ${line.trimStart()}`)
    .join('\n')
