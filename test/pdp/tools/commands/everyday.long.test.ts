/** The command `portcullis` on a running PDP, as a person and as a script run it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { loginFile } from '../../../../pdp/tools/commands/everyday/saved-login.ts'
import { freePort } from '../../../support/free-port.ts'
import { runOn, type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
let folder: string
beforeAll(async () => {
  served = await servePdp()
  folder = served.folder
})
afterAll(() => served.close())
const run: ServedPdp['run'] = (line, options) => served.run(line, options)
const good: ServedPdp['good'] = (line) => served.good(line)

describe('portcullis', () => {
  test('sets up an organization, its people and what they may do', async () => {
    expect(await good('org put acme --name Acme')).toBe('ID    NAME  PARENT\nacme  Acme  -\n')
    await good('org put lab --parent acme')
    expect(JSON.parse(await good('org list --json'))).toEqual([
      { id: 'acme', name: 'Acme', parent: null },
      { id: 'lab', name: 'lab', parent: 'acme' },
    ])
    await good('user put alice --email alice@example.com --email-verified')
    expect(await good('user get alice')).toMatch(
      /^ID +EMAIL +EMAIL_VERIFIED +NAME\nalice +alice@example\.com +true +-\n$/,
    )
    await good('member put alice -o acme --role admin')
    expect(await good('member list -o acme')).toMatch(/^USER +ROLE +STATUS\nalice +admin +active\n$/)
    await good('role put clerk --permissions invoices:approve,invoices:read')
    const invited = await good('member invite bob@example.com -o acme --role admin --grant clerk')
    expect(await good('member invitations -o acme')).toBe(invited)
    const [, id = ''] = /^([\w-]{36}) +bob@example\.com +admin +service:admin /m.exec(invited) ?? []
    expect(await good(`member uninvite ${id} -o acme`)).toBe(`withdrawn: ${id}\n`)
    expect((await run(`member uninvite ${id} -o acme`)).err).toContain('there is no invitation')
    expect((await run('member invite bob@example.com -o acme --grant none/clerk')).err).toContain('none')
    await good('role grant clerk user:alice -o acme')
    expect(await good('check user:alice invoices:approve organization:lab -o lab')).toMatch(/allowed/)
    expect(await good('role grants -o acme')).toMatch(/clerk +user:alice\n$/)
    await good('role revoke clerk user:alice -o acme')
    expect((await run('check user:alice invoices:approve organization:lab -o lab')).status).toBe(1)
    await good('entitlement put feature.export -o acme')
    expect(await good('entitlement list -o acme')).toMatch(/feature\.export +\{"enabled":true\} +DecisionApi/)
    await good('entitlement delete feature.export -o acme')
    expect(await good('entitlement list -o acme')).toBe('KEY  VALUE  ENFORCEMENT  VERSION\n')
  })

  test('registers the OpenID providers at which people sign in, and never shows their secret', async () => {
    const secret = join(folder, 'corp.secret')
    await writeFile(secret, 'the-secret-of-corp-1234\n')
    const corp = '--issuer https://login.corp.example --client portcullis'
    expect((await run(`identity-provider put corp ${corp}`)).err).toContain('client_secret')
    const put = `identity-provider put corp ${corp} --secret-file ${secret} --email-domains corp.example,corp.test --creates-accounts`
    expect(await good(put)).toBe(
      'ID    NAME  ISSUER                      CLIENT_ID\ncorp  corp  https://login.corp.example  portcullis\n',
    )
    expect(JSON.parse(await good('identity-provider list --json'))).toEqual([
      {
        ...{ id: 'corp', name: 'corp', issuer: 'https://login.corp.example', client_id: 'portcullis' },
        ...{ email_domains: ['corp.example', 'corp.test'], creates_accounts: true },
      },
    ])
    expect(await good(`identity-provider put corp ${corp} --name Corp`)).toContain('Corp')
    expect(await good('identity-provider delete corp')).toBe('deleted: corp\n')
    expect((await run('identity-provider get corp')).err).toContain('no identity provider corp')
  })

  test('shows which other issuers are trusted, and how their security events come in', async () => {
    const token = (await good('token --client-id admin --scope issuers:write')).trim()
    const issuer = 'https://idp.example'
    const ssf = { delivery: 'poll', authorization: { token: 'a-token-that-is-long-enough' } }
    const document = {
      subject_prefix: 'idp:',
      organizations: ['acme'],
      audience: 'https://api.example',
      algorithms: ['RS256'],
    }
    const response = await fetch(`${served.url}/v1/trusted-issuers/${encodeURIComponent(issuer)}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...document,
        jwks_uri: `${issuer}/jwks`,
        ssf: { ...ssf, metadata_uri: 'https://127.0.0.1/' },
      }),
    })
    expect(response.status).toBe(201)
    await vi.waitFor(
      async () => expect(await good('issuer list')).toMatch(/https:\/\/idp\.example +idp: +acme +failing\n/),
      { timeout: 30_000 },
    )
    const shown = await good(`issuer show ${issuer}`)
    expect(shown).toMatch(/^ssf\.delivery +poll$/m)
    expect(shown).toMatch(/^signals\.error +https:\/\/127\.0\.0\.1\/: has an internal address as its host/m)
    expect(JSON.parse(await good(`issuer show ${issuer} --json`))).toMatchObject({
      issuer,
      signals: { stream_id: null },
    })
    expect((await run('issuer show https://nobody.example')).err).toContain(
      'there is no trusted issuer https://nobody.example',
    )
  })

  test('writes tuples and lists what they give', async () => {
    await good('tuple write invoice:1#viewer@user:alice invoice:2#viewer@user:alice -o acme')
    expect(await good('list resources user:alice viewer invoice -o acme')).toBe('invoice:1\ninvoice:2\n')
    expect(await good('list subjects viewer invoice:2 -o acme')).toBe('user:alice\n')
    expect((await run('list resources user:carol viewer invoice -o acme')).err).toBe('no resources found\n')
    expect(await good('explain user:alice viewer invoice:1 -o acme')).toMatch(/invoice:1#viewer@user:alice/)
  })

  test('judges a tuple before it looks for credentials', async () => {
    const { status, err } = await runOn(
      { folder: tmpdir(), url: 'http://127.0.0.1:9' },
      'tuple write doc:1#viewer -o acme',
      {},
    )
    expect([status, err]).toEqual([2, expect.stringContaining('"doc:1#viewer" is not a tuple')])
  })

  test('asks with a context and with tuples of one question, and says what a condition needs', async () => {
    const model = `model
  schema 1.1
type user
type vault
  relations
    define opener: [user, user with by_day]
condition by_day(hour: int) {
  hour > 8
}
`
    await writeFile(join(folder, 'vault.fga'), model)
    await writeFile(join(folder, 'vault.yaml'), 'model_file: vault.fga\n')
    await good(`manifest apply vault ${join(folder, 'vault.yaml')}`)
    const tuple = { object: 'vault:1', relation: 'opener', subject: 'user:alice', condition: { name: 'by_day' } }
    await writeFile(join(folder, 'vault.jsonl'), `${JSON.stringify(tuple)}\n`)
    await good(`tuple import ${join(folder, 'vault.jsonl')} -o acme`)
    for (const where of ['check user:alice opener vault:1 -o acme', 'list subjects opener vault:1 -o acme']) {
      const { status, err } = await run(where)
      expect([where, status, err]).toEqual([where, 2, expect.stringMatching(/--context lacks hour|needs "hour"/)])
    }
    expect(await good('check user:alice opener vault:1 -o acme --context {"hour":9}')).toMatch(/^allowed/)
    expect((await run('check user:alice opener vault:1 -o acme --context {"hour":7}')).status).toBe(1)
    expect(await good('list subjects opener vault:1 -o acme --context {"hour":9}')).toBe('user:alice\n')
    expect(
      await good(
        'list resources user:alice opener vault -o acme --with vault:2#opener@user:alice --context {"hour":9}',
      ),
    ).toBe('vault:1\nvault:2\n')
    expect(
      await good(
        'check user:alice opener vault:2 -o acme --with vault:3#opener@user:bob --with vault:2#opener@user:alice',
      ),
    ).toMatch(/^allowed/)
    const file = join(folder, 'vault.fga')
    expect(await good(`check user:bo opener vault:2 --model ${file} --with vault:2#opener@user:bo`)).toMatch(/^allowed/)
  })

  test('compares who would gain and who would lose, by a model or by tuples, and writes nothing', async () => {
    const model = (viewer: string): string =>
      `model\n  schema 1.1\ntype user\ntype sheet\n  relations\n    define editor: [user]\n    define viewer: ${viewer}\n`
    const [now, next] = [join(folder, 'now.fga'), join(folder, 'next.fga')]
    await writeFile(now, model('[user] or editor'))
    await writeFile(next, model('[user]'))
    await writeFile(join(folder, 'sheets.yaml'), 'model_file: now.fga\n')
    await good(`manifest apply sheets ${join(folder, 'sheets.yaml')}`)
    await good('tuple write sheet:1#editor@user:alice sheet:2#viewer@user:alice -o acme')
    const lost = await run(`compare viewer sheet -o acme --app sheets --model ${next}`)
    expect([lost.status, lost.out]).toEqual([
      1,
      expect.stringMatching(/^1 would lose and 0 would gain.*\n- user:alice viewer sheet:1\n$/),
    ])
    expect(await good(`compare viewer sheet -o acme --app sheets --model ${now}`)).toMatch(/^0 would lose and 0/)
    const rest = await run(`compare viewer sheet -o acme --app sheets --model ${next} --after sheet:1 --seconds 60`)
    expect([rest.status, rest.out]).toEqual([
      2,
      'at least 0 would lose and at least 0 would gain viewer on sheet; 1 looked at\n',
    ])
    await writeFile(join(folder, 'next.yaml'), 'model_file: next.fga\n')
    const tried = await good(`manifest apply sheets ${join(folder, 'next.yaml')} --dry-run`)
    const example =
      'sheet#viewer: a user can lose it. Example: user:anne on sheet:1, with\n    sheet:1#editor@user:anne\n'
    expect(tried).toContain(`sheets would have version 2\n${example}Nobody can gain or lose any of the other 1 of 2`)
    expect(await good(`manifest apply sheets ${join(folder, 'next.yaml')} --dry-run -o acme`)).toMatch(
      /\n1 would lose and 0 would gain viewer on sheet\n- user:alice viewer sheet:1\n$/,
    )
    const other = await run(
      'compare viewer sheet -o acme --with sheet:3#viewer@user:alice --without sheet:2#viewer@user:alice --json',
    )
    expect([other.status, JSON.parse(other.out)]).toEqual([
      1,
      expect.objectContaining({ gains_count: 1, loses_count: 1 }),
    ])
    expect((await run('check user:alice viewer sheet:3 -o acme')).status).toBe(1)
  })

  test('shows the secret of a new client once, which gets a token by it', async () => {
    const made = await good('client put robot --scope directory:write')
    const [, secret = ''] = /secret, shown this once: (\S+)/.exec(made) ?? []
    await writeFile(join(folder, 'robot-secret'), secret)
    expect(await good('client get robot')).not.toContain(secret)
    const file = join(folder, 'robot-secret')
    expect(await good(`token --client-id robot --client-secret-file ${file}`)).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    // Registered for writing alone, it reads by that.
    expect(await good(`org get acme --client-id robot --client-secret-file ${file}`)).toContain('Acme')
    expect((await run(`client list --client-id robot --client-secret-file ${file}`)).err).toMatch(/invalid_scope/)
  })

  test.each([
    ['member list', /name the organization/],
    ['org get nobody', /there is no organization nobody|does not exist/],
    ['entitlement put feature.x {bad -o acme', /must be true, false or a JSON object/],
    ['role revoke clerk user:nobody -o acme', /is not granted clerk/],
    ['user put bob --password-file nowhere', /nowhere does not exist/],
    ['list resources alice viewer invoice -o acme', /the subject must be <type>:<id>/],
    ['check user:alice viewer invoice:1 -o nowhere', /there is no organization nowhere, or client admin may not/],
    ['list subjects viewer invoice:1 -o acme --context 7', /--context must be a JSON object/],
    ['check user:alice viewer invoice:1 -o acme --context {', /--context must be a JSON object/],
    ['check user:alice viewer invoice:1 -o acme --with invoice:1', /--with: "invoice:1" is not a tuple/],
    ['compare viewer sheet -o acme', /say what to compare with/],
    ['compare viewer sheet --with sheet:1#viewer@user:alice', /name an organization/],
    ['compare viewer sheet -o acme --model nowhere.fga', /--model needs --app/],
    ['compare viewer sheet -o acme --app sheets --model nowhere.fga', /--model: nowhere.fga does not exist/],
    [
      'compare viewer sheet -o acme --with sheet:1#viewer@user:alice --seconds 0',
      /--seconds is a whole number above 0/,
    ],
    ['compare viewer sheet -o acme --with sheet:1#viewer@user:alice --after doc:1', /after/],
    ['compare viewer sheet -o acme --with sheet:1', /--with: "sheet:1" is not a tuple/],
    ['compare viewer she#et -o acme --with sheet:1#viewer@user:alice', /type/],
    ['compare viewer sheet -o nowhere --with sheet:1#viewer@user:alice', /organization/],
    ['whoami', /portcullis login/],
  ])('ends with 2 and says why: %s', async (line, why) => {
    const { status, err } = await run(line).catch((err: Error) => ({ status: 2, err: err.message }))
    expect([status, err]).toEqual([2, expect.stringMatching(why)])
  })

  test('begins a sign-in with an address and a code, and keeps nothing of one that ends', async () => {
    await good('client put narrow --public --device --scope openid')
    const said = await run('login --client-id narrow --scope nothing:known')
    expect([said.status, said.err]).toEqual([2, expect.stringMatching(/the sign-in did not begin/)])
    await expect(stat(loginFile({ HOME: folder }, process.platform))).rejects.toThrow(/ENOENT/)
  })

  test('finds nothing wrong with a PDP that is well, and what is with one that is not', async () => {
    const { status, out } = await run('doctor')
    expect([status, out]).toEqual([
      0,
      expect.stringMatching(
        /ok +PDP[\s\S]*ok +clock[\s\S]*ok +issuer[\s\S]*ok +credentials[\s\S]*ok +database[\s\S]*skipped route file/,
      ),
    ])
    const gone = await run('doctor', { env: { PORTCULLIS_URL: `http://127.0.0.1:${await freePort()}` } })
    expect([gone.status, gone.out]).toEqual([
      2,
      expect.stringMatching(/FAILED +PDP: .* cannot be reached \(ECONNREFUSED\)\n +→ start it/),
    ])
    const found = JSON.parse(
      (await run('doctor --json --client-id nobody', { env: { PORTCULLIS_CLIENT_SECRET: 'wrong-secret-12345' } })).out,
    )
    expect(found).toContainEqual(expect.objectContaining({ check: 'credentials', state: 'failed' }))
  })
})

const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).error === undefined

describe('completion', () => {
  test('completes commands, their commands and their options in bash', async () => {
    const script = join(folder, 'completion.bash')
    await writeFile(script, await good('completion bash'))
    const complete = (...words: readonly string[]): string => {
      const asked = `source ${script}; COMP_WORDS=(portcullis ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _portcullis; echo "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', asked], { encoding: 'utf8' }).trim()
    }
    expect(complete('ent')).toBe('entitlement')
    expect(complete('tuple', 'im')).toBe('import')
    expect(complete('org', 'put', 'acme', '--par')).toBe('--parent')
  })

  test.skipIf(!isInstalled('fish'))('completes options of inner commands in fish', async () => {
    const script = join(folder, 'completion.fish')
    await writeFile(script, await good('completion fish'))
    const complete = (line: string): string =>
      execFileSync('fish', ['-c', `source ${script}; complete -C '${line}'`], { encoding: 'utf8' })
    expect(complete('portcullis entit')).toMatch(/^entitlement\t/)
    expect(complete('portcullis org put --par')).toMatch(/^--parent\t/)
    expect(complete('portcullis org list --par').trim()).toBe('')
  })

  test.skipIf(!isInstalled('zsh'))('completes in an interactive zsh, from the first time on', async () => {
    const functions = join(folder, 'functions')
    await mkdir(functions)
    await writeFile(join(functions, '_portcullis'), await good('completion zsh'))
    const asked = `zmodload zsh/zpty
zpty z zsh -f -i
seen() { repeat 300 { zpty -r -t z chunk && out+=$chunk; [[ $out == *$1* ]] && return; sleep 0.05 }; print -r -- "no $1 in $out"; exit 1 }
zpty -w z "fpath=(${functions} \\$fpath); autoload -Uz compinit; compinit -u -D; PS1='re''ady> '"
seen 'ready> '
zpty -w -n z $'portcullis entit\\t'
seen entitlement
zpty -w -n z $' --he\\t'
seen --help`
    expect(execFileSync('zsh', ['-f', '-c', asked], { encoding: 'utf8' })).toBe('')
  })

  test('names every command for fish and zsh, and knows no other shell', async () => {
    expect(await good('completion fish')).toMatch(/-a doctor -d 'Test each/)
    expect(await good('completion zsh')).toMatch(/^#compdef portcullis/)
    await expect(run('completion tcsh')).rejects.toThrow('exit 2')
  })
})
