/** The books in docs/ do what they say: each command is run, and prints what is shown. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startForeignProvider } from '../e2e/foreign-issuer.ts'
import { findNpmPackages } from '../mcp/programs.ts'
import { createBrowser, hiddenFields } from '../support/browser.ts'
import { LONG } from '../support/effort.ts'
import { type BookPlayer, openBookPlayer } from './book-player.ts'
import { bookSteps, isPrinted } from './book-steps.ts'
import { postgresBinaries, startSystemPostgres } from './system-postgres.ts'

const page = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

let player: BookPlayer
beforeAll(async () => {
  player = await openBookPlayer()
})
afterEach(async () => {
  await player.end('portcullis-sidecar')
  await player.end('node')
})
afterAll(async () => {
  await player.close()
})
const play = (name: string): Promise<void> => player.play(bookSteps(page(name)))
/** Many programs start in each, one after the other. */
const BOOK = { timeout: 600_000 }

test(
  'start.md leads from a PDP to a gated service, with its own people and with those of another provider',
  BOOK,
  async () => {
    const provider = await startForeignProvider()
    provider.shape = (token) => {
      token.header.typ = 'JWT'
      const { client_id: azp, ...claims } = token.payload
      token.payload = { ...claims, azp, typ: 'Bearer', groups: ['sales'] }
    }
    player.replaced.set('https://sso.example.com/realms/acme', provider.issuer)
    const { access_token: token } = await provider.tokens('ann', 'https://app.example.com')
    player.export('TOKEN', token)
    try {
      await play('start.md')
    } finally {
      await provider.stop()
    }
  },
)

/** The short form plays the first book alone. */
const book = test.skipIf(!LONG)

book.each([
  ['models.md', 'writes a model, tests it, and gets the answers that it shows'],
  ['migrate.md', 'brings in stores of OpenFGA and SpiceDB'],
  ['api.md', 'asks, writes and lists over HTTP'],
  // With the token of the page before it.
  ['authzen.md', 'asks in the words of AuthZEN'],
])('%s %s', BOOK, (name) => play(name))

const runs = (program: string): boolean => spawnSync(program, ['--version']).status === 0
test.skipIf(!LONG || !runs('python3') || !runs('java'))(
  'clients.md asks in the words of AuthZEN from two languages',
  BOOK,
  // With the token of the pages before it.
  () => play('clients.md'),
)

book('signals.md creates a stream, polls it, and looks after it', BOOK, async () => {
  const own = await openBookPlayer()
  try {
    await own.play(bookSteps(page('signals.md')))
  } finally {
    await own.close()
  }
})

const modules = findNpmPackages()
test.skipIf(!LONG || modules === null)(
  'mcp.md gates a server from npm, and ends a call that runs when its permission is taken away',
  BOOK,
  async () => {
    const own = await openBookPlayer()
    const install = /^npm install @model.*$/m.exec(page('mcp.md'))?.[0] ?? ''
    own.replaced
      .set(install, `ln -s ${modules} node_modules`)
      .set('PORT=3000', `PORT=${own.replaced.get(':3000')?.slice(1)}`)
    try {
      await own.play(bookSteps(page('mcp.md')))
    } finally {
      await own.close()
    }
  },
)

book('people.md offboards a person: the preview, what it takes, and what the log has', BOOK, async () => {
  const own = await openBookPlayer()
  try {
    await own.play(bookSteps(/^## An offboarding$[\s\S]*?(?=^## )/m.exec(page('people.md'))?.[0] ?? ''))
  } finally {
    await own.close()
  }
})

book('delegation.md lets an agent act with a part of what it asks for, and takes it back', BOOK, async () => {
  const own = await openBookPlayer()
  try {
    const [asked = '', granted = ''] = page('delegation.md').split(/(?=^## What it may$)/m)
    await own.play(bookSteps(asked))
    await untick(own, 'invoices:write')
    await own.play(bookSteps(granted))
  } finally {
    await own.close()
  }
})

/** The person opens the page to which the agent's request leads, and grants all but one scope. */
async function untick({ person, replaced }: BookPlayer, scope: string): Promise<void> {
  const browser = createBrowser(`http://127.0.0.1${replaced.get(':8080')}`)
  await browser.send('/account/sign-in', { form: { action: 'login', ...person } })
  const asked = { client_id: 'bot', organization: 'acme', scope: 'invoices:read invoices:write' }
  const address = `/account/delegations?${new URLSearchParams(asked)}`
  const html = await (await browser.send(address)).text()
  const [ticked = '', ...others] = [...html.matchAll(/type="checkbox" name="scope" value="([^"]+)" checked/g)]
    .map(([, value = '']) => value)
    .filter((value) => value !== scope)
  expect(others).toEqual([])
  const sent = await browser.send(address, { form: { ...hiddenFields(html), until: 'month', scope: ticked } })
  expect(sent.status).toBe(200)
}

describe('operate.md', () => {
  const [embedded = '', own = ''] = page('operate.md').split(/(?=^## With your own PostgreSQL$)/m)

  let operator: BookPlayer
  beforeAll(async () => {
    operator = await openBookPlayer()
  })
  afterAll(() => operator.close())

  book('backs up and restores an embedded PostgreSQL, and gets over lost and changed secrets', BOOK, () =>
    operator.play(bookSteps(embedded)),
  )

  const binaries = postgresBinaries()
  // Debian's package postgresql has them.
  test.skipIf(!LONG || binaries === null)(
    'backs up and restores a PostgreSQL of the system while the PDP serves',
    BOOK,
    async () => {
      const system = await startSystemPostgres(binaries ?? '')
      try {
        operator.replaced.set('postgresql://portcullis@db.example.com/portcullis', system.url)
        operator.prefer(system.binaries)
        await operator.play(bookSteps(own))
      } finally {
        await operator.end('portcullis-pdp')
        await system.stop()
      }
    },
  )
})

/** Commands that are typed and files that are written. */
const typed = (text: string): readonly string[] =>
  bookSteps(text).flatMap((step) => {
    if (step.kind === 'end') return ['Ctrl-C']
    if (step.kind === 'file') return [step.name]
    return step.mode === 'fails' ? [] : step.script.trim().split('\n')
  })

describe('start.md counts', () => {
  const counted = (journey: string): number =>
    Number(new RegExp(`^\\| ${journey}[^|]* \\| (\\d+)`, 'm').exec(page('start.md'))?.[1])
  const [install = '', own = '', provider = ''] = page('start.md').split(/^## (?:2\.|With your own).*$/m)
  const installed = ['npm ci', 'export PATH'].filter((line) => install.includes(`\n${line}`)).length

  test('the steps to a gated request', () => {
    const steps = typed(own)
    expect(installed).toBe(2)
    expect(counted('first gated request, with people of the PDP')).toBe(
      installed + steps.findIndex((line) => line.startsWith('curl')) + 1,
    )
    const servers = steps.filter((line) => /^(portcullis-pdp|node|portcullis-sidecar run)/.test(line)).length
    const theirs = typed(provider)
    expect(counted("first gated request, with one's own identity provider")).toBe(
      installed + servers + theirs.findIndex((line) => line.startsWith('curl')) + 1,
    )
  })

  test('the steps of a backup and its return', () => {
    const [, section = ''] = page('operate.md').split(/^## (?:Back up and restore|A lost).*$/m)
    const steps = typed(section).filter((line) => /^(Ctrl-C|cp|rm|portcullis-pdp)/.test(line))
    // The first start is not one of them.
    expect(counted('back up and restore')).toBe(steps.length - 1)
  })
})

describe('install.md counts', () => {
  const own = (text: string, title: string): string =>
    new RegExp(`^## ${title}$[\\s\\S]*?\\n\`\`\`\\n([\\s\\S]*?)\`\`\``, 'm').exec(text)?.[1] ?? ''
  /** A command may go on in indented lines. */
  const commands = (block: string): number => block.split('\n').filter((line) => /^\S/.test(line)).length
  const counted = (way: string): number =>
    Number(new RegExp(`^\\| \\[${way}\\][^|]* \\| (\\d+)`, 'm').exec(page('install.md'))?.[1])
  const [, start = ''] = page('start.md').split(/^## (?:2\.|With your own).*$/m)
  const rest = typed(start).findIndex((line) => line.startsWith('curl')) + 1

  test.each(['npm', 'One file', 'Compose'])('the steps by %s', (way) => {
    const more = way === 'Compose' ? 0 : rest
    expect(counted(way.toLowerCase())).toBe(commands(own(page('install.md'), way)) + more)
  })

  test('the steps by Helm', () => {
    const [, guide = '', protect = ''] = page('../charts/portcullis/README.md').split(/^## (?:Install|Protect .*)$/m)
    const [install = '', ...others] = [guide, ...protect.split('Then:')].map(
      (text) => /```\n([\s\S]*?)```/.exec(text)?.[1] ?? '',
    )
    // The route file, a grant and a request.
    expect(counted('Helm')).toBe(commands(install) + others.map(commands).reduce((a, b) => a + b, 0) + 3)
  })
})

describe('a block of a book', () => {
  test.each([
    ['```sh often\nx\n```', /what is sh often/],
    ['```text\nx\n```', /no command prints this/],
    ['```yaml then\nx\n```', /what is yaml then/],
  ])('is refused when nobody could say what it is: %s', (text, why) => {
    expect(() => bookSteps(text)).toThrow(why)
  })

  test('shows what is printed, and … for what differs each time', () => {
    expect(isPrinted('id …\nend', 'id 7\n\nend  \n')).toBe(true)
    expect(isPrinted('id …\nend', 'id 7\nends\n')).toBe(false)
    expect(isPrinted('a.c', 'abc')).toBe(false)
  })
})
